package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// SweepOn says which servers are asked for the names of all keys, which is nearly
// all that a sweep costs.
type SweepOn string

const (
	// SweepMasters asks the masters.
	SweepMasters SweepOn = "masters"
	// SweepReplicas asks a replica of each master for the names, and the master for
	// what those hold that may be locks: nothing is reported of a lock that a
	// replica alone says. A master without a replica that is in step is asked itself.
	SweepReplicas SweepOn = "replicas"
)

// A replica is in step once it has everything that its master had written when the
// pass began; for how long that is awaited, and how often it is asked.
const (
	stepPatience = 3 * time.Second
	firstStep    = 10 * time.Millisecond
	mostStep     = 200 * time.Millisecond
)

var (
	errNotInStep = errors.New("it is not in step with its master")
	errResynced  = errors.New("the replica that was swept was replaced or synchronised anew during the pass")
)

// scanSource is the server over whose keyspace a pass goes.
type scanSource struct {
	client *redis.Client
	addr   string
	pace   *pace.Server
	// replica is what a replica said of itself at first; nil for the master.
	replica info
	// asOf is the replication offset of the master up to which the replica had
	// everything before it was asked for its keys: what a pass over the master that
	// began then would have met is met.
	asOf int64
}

// chooseSource decides over which server the pass goes.
func (p *pass) chooseSource(ctx context.Context) error {
	p.source = scanSource{client: p.master.Client, addr: p.master.Addr, pace: p.pace}
	if p.s.cfg.SweepOn != SweepReplicas {
		return nil
	}
	why := errors.New("it names no replica that is online")
	for _, addr := range p.replicas() {
		w, err := p.follow(ctx, addr)
		if err == nil {
			p.source = w
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		why = fmt.Errorf("replica %s: %s", addr, reasonOfReplica(err))
	}
	p.s.caps.instead(p.master.Addr, fmt.Sprintf("the master %s is swept itself, though sweep_on says replicas: %s", p.master.Addr, why))
	return nil
}

func reasonOfReplica(err error) string {
	if errors.Is(err, errNotInStep) {
		return err.Error()
	}
	return connect.Explain(err)
}

// replicas are the addresses of the master's replicas, the one furthest in step
// first: as the Cluster announces them, else as the master knows them.
func (p *pass) replicas() []string {
	if p.master.Slots != nil {
		return p.master.Replicas
	}
	return p.info.replicas()
}

// follow waits until the replica at addr has everything that the master had when it
// was asked who it is.
func (p *pass) follow(ctx context.Context, addr string) (scanSource, error) {
	client, err := p.s.conn.Node(addr)
	if err != nil {
		return scanSource{}, err
	}
	w := scanSource{client: client, addr: addr, pace: p.s.server(addr), asOf: p.info.integer("master_repl_offset")}
	if w.asOf < 0 {
		return scanSource{}, fmt.Errorf("%w: INFO is refused on the master", errNotInStep)
	}
	waiting, cancel := context.WithTimeout(ctx, stepPatience)
	defer cancel()
	for wait := firstStep; ; wait = min(2*wait, mostStep) {
		text, err := p.infoOf(waiting, w)
		if err != nil {
			return scanSource{}, err
		}
		w.replica = parseInfo(text)
		behind, why := w.replica.behind(p.info, w.asOf)
		switch {
		case why != "":
			return scanSource{}, fmt.Errorf("%w: %s", errNotInStep, why)
		case !behind:
			return w, nil
		}
		if source.Sleep(waiting, wait) != nil {
			return scanSource{}, fmt.Errorf("%w: %d bytes behind after %s", errNotInStep, w.asOf-w.replica.integer("slave_repl_offset"), stepPatience)
		}
	}
}

// behind says whether a replica lacks something of what its master had written at
// offset; why is for one whose data cannot be the master's.
func (i info) behind(master info, offset int64) (behind bool, why string) {
	switch {
	case !i.replica():
		return false, "it does not say that it is a replica"
	case i.loading(), i.flag("master_sync_in_progress"):
		return false, "it is reading its data"
	case i["master_link_status"] != "up":
		return false, "its link to the master is down"
	case i["master_replid"] != master["master_replid"]:
		return false, "it follows another master"
	}
	return i.integer("slave_repl_offset") < offset, ""
}

// replicas are the addresses of the replicas that a master has online, the one that
// has confirmed most first.
func (i info) replicas() []string {
	type known struct {
		addr   string
		offset int64
	}
	var list []known
	for n := 0; ; n++ {
		line, ok := i["slave"+strconv.Itoa(n)]
		if !ok {
			break
		}
		fields := map[string]string{}
		for field := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(field, "=")
			fields[name] = value
		}
		offset, err := strconv.ParseInt(fields["offset"], 10, 64)
		if err != nil || fields["state"] != "online" {
			continue
		}
		list = append(list, known{net.JoinHostPort(fields["ip"], fields["port"]), offset})
	}
	slices.SortStableFunc(list, func(a, b known) int { return cmp.Compare(b.offset, a.offset) })
	addrs := make([]string, len(list))
	for n, k := range list {
		addrs[n] = k.addr
	}
	return addrs
}

// checkSource checks that a replica had all the time the data that it had at first: one
// that is synchronised anew is empty for a while.
func (p *pass) checkSource(ctx context.Context) error {
	if p.source.replica == nil {
		return nil
	}
	text, err := p.infoOf(ctx, p.source)
	if err != nil {
		return err
	}
	stats, err := p.askInfo(ctx, "stats")
	if err != nil {
		return err
	}
	i, synced := parseInfo(text), parseInfo(stats).integer("sync_full")
	same := i["run_id"] == p.source.replica["run_id"] && i.replica() && !i.loading() && !i.flag("master_sync_in_progress") &&
		i["master_replid"] == p.source.replica["master_replid"] && synced >= 0 && synced == p.info.integer("sync_full")
	if !same {
		return fmt.Errorf("%w: %s", errResynced, p.source.addr)
	}
	return nil
}

// infoOf asks the server that is walked.
func (p *pass) infoOf(ctx context.Context, w scanSource) (text string, err error) {
	err = p.callAt(ctx, w.pace, 1, func() (err error) {
		text, err = w.client.Info(ctx).Result()
		return err
	})
	if err != nil {
		return "", fmt.Errorf("ask for info: %w", err)
	}
	return text, notLong(text, w.addr)
}
