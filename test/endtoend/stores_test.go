package endtoend_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/lockstore"
	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testetcd"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// stuck is a lock of a store other than Redis that nobody will free, with one waiter.
type stuck struct {
	source    string // the metrics label
	key       string
	rule      string
	severity  string
	alsoEnds  string        // another lock that the release ends; "" if there is none
	firesIn   time.Duration // at most
	proceeded <-chan error  // the waiter's attempt, which ends when it has the lock
}

// governed takes a stuck lock through the whole agent: its finding, metrics, webhook, a previewed
// request, the approval of another person, the release, the waiter, the audit trail and the end of
// the alert.
func governed(t *testing.T, f *fixture, l stuck) {
	t.Helper()
	f.await(l.firesIn, "the webhook has a signed message", func() bool { return len(f.sink.of("firing")) > 0 })
	if e := f.sink.of("firing"); len(e) != 1 || e[0].Rule != l.rule || e[0].Key.Key != l.key || e[0].Severity != l.severity || e[0].Team != "checkout" {
		t.Errorf("reported: %+v", e)
	}
	f.await(within, "the metrics have the finding", func() bool {
		samples, err := testagent.Scrape(t.Context(), f.agent.MetricsAddr().String())
		has := func(series string) bool {
			return slices.ContainsFunc(samples, func(s testagent.Sample) bool { return s.Series == series && s.Value == 1 })
		}
		return err == nil && has(`locksteward_target_info{source="`+l.source+`",target="main"}`) &&
			has(`locksteward_findings{class="orders",risk="deadlock",rule="`+l.rule+`",severity="`+l.severity+`",target="main"}`)
	})

	asked := api.CreateRequest{Target: "main", Key: api.NewKey(l.key), Reason: "its process is gone"}
	dry, err := f.ana.DryRun(t.Context(), asked)
	if err != nil || !dry.Found || dry.Refusal != "" || dry.Script == "" {
		t.Fatalf("preview: %+v, %v", dry, err)
	}
	if ends := slices.ContainsFunc(dry.Warnings, func(w string) bool { return strings.Contains(w, "also ends") && strings.Contains(w, l.alsoEnds) }); ends != (l.alsoEnds != "") {
		t.Errorf("the preview warns %q, want %q as what ends too", dry.Warnings, l.alsoEnds)
	}
	r, err := f.ana.CreateRequest(t.Context(), asked)
	if err != nil || !slices.Contains(r.Evidence.Findings, l.rule) {
		t.Fatalf("request with findings %q, %v", r.Evidence.Findings, err)
	}
	if _, err := f.ana.Approve(t.Context(), r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash}); err == nil {
		t.Error("who asked may approve")
	}
	if p, err := f.bo.Preview(t.Context(), r.ID); err != nil || !p.Found || len(p.Differences) != 0 {
		t.Errorf("preview of the request: %+v, %v", p, err)
	}
	select {
	case err := <-l.proceeded:
		t.Fatalf("the waiter does not wait: %v", err)
	default:
	}
	r, err = f.bo.Approve(t.Context(), r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash})
	if err != nil || r.State != string(locksteward.RequestReleased) {
		t.Fatalf("approve: %s %q, %v", r.State, r.Outcome, err)
	}
	select {
	case err := <-l.proceeded:
		if err != nil {
			t.Errorf("the waiter: %v", err)
		}
	case <-time.After(within):
		t.Fatal("the waiter does not get the lock")
	}
	f.await(within, "the webhook is notified of the end", func() bool { return len(f.sink.of("resolved")) > 0 })
	if fired, ended := f.sink.of("firing"), f.sink.of("resolved"); len(fired) != 1 || len(ended) != 1 || ended[0].Fingerprint != fired[0].Fingerprint {
		t.Errorf("reported: %+v, then %+v", fired, ended)
	}

	trail, err := f.bo.Audit(t.Context(), 100)
	var entries []string
	for _, e := range slices.Backward(trail.Entries) { // the newest is first
		if e.Subject == r.ID {
			entries = append(entries, fmt.Sprint(e.Action, " ", e.Outcome, " by ", e.Actor, " of ", e.Key.Key))
		}
	}
	want := []string{
		release.ActionRequest + " pending by ana of " + l.key,
		release.ActionApprove + " refused by ana of " + l.key,
		release.ActionApprove + " approved by bo of " + l.key,
		release.ActionExecute + " intent by agent of " + l.key,
		release.ActionExecute + " released by agent of " + l.key,
	}
	if err != nil || !slices.Equal(entries, want) {
		t.Errorf("the audit trail has\n%s\nwant\n%s\n%v", strings.Join(entries, "\n"), strings.Join(want, "\n"), err)
	}
}

// A session of PostgreSQL that does nothing holds two advisory locks, and a deploy waits for one:
// ending the session is approved, with the roles that `locksteward acl` prints.
func TestStrandedSessionThroughTheAgent(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: needs an address of its own in 127.0.0.0/8")
	}
	addr := fmt.Sprintf("127.78.%d.%d", os.Getpid()>>8&0xff, os.Getpid()&0xff)
	server := testpg.Start(t, "listen_addresses="+addr)
	connectAs := func(application string) *pgx.Conn {
		t.Helper()
		cfg, err := pgx.ParseConfig(server.DSN())
		if err != nil {
			t.Fatal(err)
		}
		if application == "migrate" {
			cfg.User = "app" // sessions of superusers cannot be ended
		}
		cfg.RuntimeParams["application_name"] = application
		conn, err := pgx.ConnectConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) }) // the agent may have ended it
		return conn
	}
	execute := func(conn *pgx.Conn, statement string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	admin := connectAs("admin")
	url := "postgres://" + addr + ":5432/postgres?sslmode=disable"
	rights, err := lockstore.Rights(t.Context(), connect.Config{URL: strings.Replace(url, "://", "://postgres@", 1)}, lockstore.RightsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	execute(admin, rights)
	execute(admin, "CREATE ROLE app LOGIN")
	f := newFixture(t, "url: '"+url+"', username: locksteward, release_credentials: {username: locksteward_release}", "advisory:*", "")
	f.awaitSweep()

	execute(connectAs("migrate"), "SELECT pg_advisory_lock(1000), pg_advisory_lock(1001)")
	deploy, proceeded := connectAs("deploy"), make(chan error, 1)
	go func() {
		_, err := deploy.Exec(t.Context(), "SELECT pg_advisory_lock(1000)")
		proceeded <- err
	}()
	governed(t, f, stuck{
		source: "postgres", key: "advisory:postgres:1000", rule: "holder/stranded", severity: "warning",
		alsoEnds: "advisory:postgres:1001", firesIn: 3 * within, proceeded: proceeded,
	})
}

// A lock in etcd was written without a lease by a program that is gone.
func TestKeyWithoutLeaseThroughTheAgent(t *testing.T) {
	t.Parallel()
	server := testetcd.Start(t)
	client := server.Client(t)
	f := newFixture(t, "url: '"+server.URL()+"', release_credentials: {}", "lock:order:*", "")
	f.awaitSweep()

	const key = "lock:order:4711"
	// acquire puts the key if it does not exist, else it awaits its deletion.
	acquire := func(ctx context.Context, value string, opts ...clientv3.OpOption) error {
		for {
			got, err := client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(clientv3.OpPut(key, value, opts...)).Commit()
			if err != nil || got.Succeeded {
				return err
			}
			watch, stop := context.WithCancel(ctx)
			for r := range client.Watch(watch, key, clientv3.WithRev(got.Header.Revision+1), clientv3.WithFilterPut()) {
				if len(r.Events) > 0 {
					break
				}
			}
			stop()
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	if err := acquire(t.Context(), "worker-7"); err != nil {
		t.Fatal(err)
	}
	lease, err := client.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	proceeded := make(chan error, 1)
	go func() { proceeded <- acquire(t.Context(), "worker-8", clientv3.WithLease(lease.ID)) }()
	governed(t, f, stuck{source: "etcd", key: key, rule: "ttl/none", severity: "critical", firesIn: within, proceeded: proceeded})
}
