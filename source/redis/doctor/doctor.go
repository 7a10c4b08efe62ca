package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/plural"
	"github.com/locksteward/locksteward/scanner"
	redissource "github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/acl"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// Options say what to look at.
type Options struct {
	Target  string // name on the report
	Connect connect.Config
	// Scan is how the target would be swept; Classes which keys are locks.
	Scan    scanner.Config
	Redis   redissource.Config
	Classes *class.Set
	// Release is how the releaser logs in; nil without one.
	Release *connect.Config
	// PushTest writes one key that lives for two seconds, to see that a push of it
	// arrives: as the releaser if there is one, else as the scanner.
	PushTest bool
}

// exam is one look at one target.
type exam struct {
	Options
	conn    *connect.Conn
	masters []connect.Master
	user    string // that the scanner logs in with
	report  Report
	// quick is the best round trip of a PING to each master.
	quick   map[string]time.Duration
	infos   map[string]info
	samples map[string]*sample
}

// Examine looks at one target. It does not fail: failures are in the
// report. When ctx ends, what was not looked at by then is missing and it says so.
func Examine(ctx context.Context, o Options) Report {
	e := &exam{Options: o, quick: map[string]time.Duration{}, infos: map[string]info{}, samples: map[string]*sample{}}
	e.report = Report{Target: o.Target, Status: OK, Checks: []Check{}}
	if e.Classes == nil {
		e.Classes = &class.Set{}
	}
	conn, err := connect.Open(o.Connect)
	if err != nil {
		e.report.add("connection", Fail, "", "the settings are wrong: "+oneLine(err.Error()), "correct them")
		return e.report
	}
	defer func() { _ = conn.Close() }() // nothing is lost by a connection that does not close well
	e.conn, e.user = conn, conn.Username()
	e.report.URL = conn.Spec().String()
	if !e.connect(ctx) {
		return e.report
	}
	e.topology(ctx)
	for _, m := range e.masters {
		e.server(ctx, m)
	}
	e.rights(ctx)
	e.releaser(ctx)
	for _, m := range e.masters {
		e.latency(ctx, m)
	}
	e.sampleAll(ctx)
	for _, m := range e.masters {
		e.tracking(ctx, m)
	}
	e.forecast(ctx)
	if cause := context.Cause(ctx); cause != nil {
		e.report.add("connection", Fail, "", "the examination was cut short: "+cause.Error(), "run it again")
	}
	return e.report
}

// connect finds the masters; without any there is nothing to look at.
func (e *exam) connect(ctx context.Context) bool {
	began := time.Now()
	masters, err := e.conn.Masters(ctx)
	if err != nil {
		e.report.add("connection", Fail, "", "cannot be reached", connect.Explain(err))
		return false
	}
	for _, m := range masters {
		if err := m.Client.Ping(ctx).Err(); err != nil {
			e.report.add("connection", Fail, m.Addr, "does not answer", connect.Explain(err))
			continue
		}
		e.masters = append(e.masters, m)
	}
	if len(e.masters) == 0 {
		return false
	}
	encrypted := "without TLS"
	if e.conn.Spec().TLS {
		encrypted = "with TLS"
	}
	e.report.add("connection", OK, "", fmt.Sprintf("%s reached in %s, %s, as user %s",
		plural.Count(len(e.masters), "master"), round(time.Since(began)), encrypted, orDefault(e.user)), "")
	return true
}

// server looks at one master's own account of itself.
func (e *exam) server(ctx context.Context, m connect.Master) {
	text, err := m.Client.Info(ctx).Result()
	if err != nil {
		e.infos[m.Addr] = info{}
		e.report.add("version", Warn, m.Addr, "INFO is refused: version, persistence, memory and replicas are not known", connect.Explain(err))
		return
	}
	in := parseInfo(text)
	e.infos[m.Addr] = in
	e.version(m, text)
	e.persistence(m, in)
	e.eviction(m, in)
	e.replication(m, in)
}

func (e *exam) version(m connect.Master, text string) {
	v, ok := acl.VersionOf(text)
	switch {
	case !ok:
		e.report.add("version", Warn, m.Addr, "the server does not tell its version: a proxy, or not Redis", "point the target at the servers themselves; a proxy has no watch, and may have no scripts")
	case !v.AtLeast(2, 8):
		e.report.add("version", Fail, m.Addr, v.String()+" has no SCAN", "update the server to 6.2 or later")
	case !v.AtLeast(6, 0):
		e.report.add("version", Warn, m.Addr, v.String()+" has no client tracking and no ACLs: locks are found by sweeps alone, and every user may do everything", "update the server to 6.2 or later")
	case !v.AtLeast(6, 2):
		e.report.add("version", Warn, m.Addr, v.String()+" cannot be asked about its tracking, and its ACLs know no channels: locks are found by sweeps alone", "update the server to 6.2 or later")
	default:
		has := []string{"tracking", "ACLs with channels"}
		lacks := []string{}
		for _, f := range []struct {
			name         string
			major, minor int
		}{{"exact expiry times", 7, 0}, {"sharded pub/sub", 7, 0}, {"read-only key patterns", 7, 0}, {"reads that leave no trace (NO-TOUCH)", 7, 2}} {
			if v.AtLeast(f.major, f.minor) {
				has = append(has, f.name)
			} else {
				lacks = append(lacks, f.name)
			}
		}
		found := v.String() + ": " + strings.Join(has, ", ")
		if len(lacks) > 0 {
			found += "; not: " + strings.Join(lacks, ", ")
		}
		e.report.add("version", OK, m.Addr, found, "")
	}
}

// topology says what the deployment is like.
func (e *exam) topology(ctx context.Context) {
	switch e.conn.Mode() {
	case locksteward.ModeCluster:
		if gaps := connect.Uncovered(e.masters); len(gaps) > 0 {
			slots := 0
			for _, g := range gaps {
				slots += g.Last - g.First + 1
			}
			e.report.add("topology", Fail, "", fmt.Sprintf("a Cluster of which no reachable master serves %s", plural.Count(slots, "slot")), "repair it: redis-cli --cluster check")
			return
		}
		e.report.add("topology", OK, "", fmt.Sprintf("a Cluster of %s that serve all slots", plural.Count(len(e.masters), "master")), "")
	case locksteward.ModeSentinel:
		e.sentinels(ctx)
	default:
		e.report.add("topology", OK, "", "one server", "")
	}
}

// sentinels asks each of them alone: who is asked only when the first is dead
// may have been dead for long.
func (e *exam) sentinels(ctx context.Context) {
	spec := e.conn.Spec()
	silent := []string{}
	for _, addr := range spec.Addrs {
		cfg := e.Connect
		cfg.URL = strings.Replace(spec.String(), strings.Join(spec.Addrs, ","), addr, 1)
		one, err := connect.Open(cfg)
		if err == nil {
			_, err = one.Masters(ctx)
			err = errors.Join(err, one.Close())
		}
		if err != nil {
			silent = append(silent, addr+": "+connect.Explain(err))
		}
	}
	known := fmt.Sprintf("master %q behind %s", spec.MasterName, plural.Count(len(spec.Addrs), "Sentinel"))
	switch {
	case len(silent) > 0:
		e.report.add("topology", Warn, "", known+", of which "+strings.Join(silent, "; "), "start or correct them: the others may not be enough for a failover")
	case len(spec.Addrs) < 3:
		e.report.add("topology", Warn, "", known, "name three or more: with fewer one dead Sentinel stops the agent from following a failover")
	default:
		e.report.add("topology", OK, "", known+", all of which answer", "")
	}
}

// isReply says that a server answered, with an error.
func isReply(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}

// denied says that the server's ACL refused it.
func denied(err error) bool { return redis.HasErrorPrefix(err, "NOPERM") }

// isMissingCommand reports whether the server does not have the command.
func isMissingCommand(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "unknown command") || strings.Contains(err.Error(), "nknown subcommand"))
}
