package scanner_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/redisproc"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/scanner"
	redissource "github.com/locksteward/locksteward/source/redis"
)

// factsOf is a FactStore of a test.
type factsOf struct {
	mu   sync.Mutex
	text string
	fail error
}

func (f *factsOf) SaveFacts(_ context.Context, _, facts string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail == nil {
		f.text = facts
	}
	return f.fail
}

func (f *factsOf) LoadFacts(context.Context, string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text, f.fail
}

// once runs a scanner as the agent does, for one sweep.
func once(t *testing.T, s *scanner.Scanner) (got locksteward.Sweep) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	must(t, s.Run(ctx, func(_ context.Context, sweep locksteward.Sweep) {
		got = sweep.Collect()
		cancel()
	}))
	return got
}

// happened gives the events of a kind that were seen to happen.
func happened(got locksteward.Sweep, kind locksteward.ServerEventKind) []locksteward.ServerEvent {
	return slices.DeleteFunc(slices.Clone(got.Events), func(e locksteward.ServerEvent) bool {
		return e.Kind != kind || e.After.IsZero()
	})
}

func silenceOf(t *testing.T, got locksteward.Sweep, id string) locksteward.MissingHeartbeat {
	t.Helper()
	i := slices.IndexFunc(got.Silent, func(s locksteward.MissingHeartbeat) bool { return s.Instance.ID == id })
	if i < 0 {
		t.Fatalf("%s is not silent: %+v", id, got.Silent)
	}
	return got.Silent[i]
}

// firing says which rules about servers fire.
func firing(e *rules.Engine) string {
	var out []string
	for _, f := range e.Findings() {
		if strings.HasPrefix(f.Rule, "server/") {
			out = append(out, f.Rule)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// Fault 43, 48, 27 and 26 of the list, as a sweep tells them: evictions, a flush,
// a restart, and a server that was restarted while the agent was not there.
// fault: 27, 43
func TestSweepTellsWhatHappenedToTheServer(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithConfig("maxmemory-policy allkeys-random"))
	c := srv.Client(t)
	ctx := t.Context()
	store := &factsOf{}
	r := fast(srv.URL())
	r.opts.Facts = store
	s := r.build(t)
	e, err := rules.New(nil, nil, nil)
	must(t, err)

	must(t, c.Set(ctx, "lock:a", "tok", time.Hour).Err())
	first := sweep(t, s)
	if len(first.Nodes) != 1 || first.Nodes[0].RunID == "" || first.Nodes[0].Uptime < 0 || first.Nodes[0].AOF || first.Nodes[0].Replicas != 0 {
		t.Fatalf("nodes %+v", first.Nodes)
	}
	e.Evaluate(first)
	if got := firing(e); got != "server/not-durable" {
		t.Errorf("a bare server: %q", got)
	}
	must(t, c.ConfigSet(ctx, "maxmemory", "2mb").Err())
	fill(t, c, 40_000)
	got := sweep(t, s)
	if evicted := happened(got, locksteward.ServerEvicted); len(evicted) != 1 || evicted[0].Count == 0 || !evicted[0].Pause.IsZero() {
		t.Errorf("after evictions: %+v", got.Events)
	}
	e.Evaluate(got)
	if got := firing(e); got != "server/evicts-locks server/not-durable" {
		t.Errorf("a server that evicts: %q", got)
	}
	must(t, c.ConfigSet(ctx, "maxmemory", "0").Err())
	must(t, c.Del(ctx, "lock:a").Err()) // if it is not among the evicted, the flush must not take it
	sweep(t, s)
	must(t, c.FlushDB(ctx).Err())
	if flushed := happened(sweep(t, s), locksteward.ServerFlushed); len(flushed) != 1 || flushed[0].Count != 1 {
		t.Errorf("after a flush: %+v", flushed)
	}

	last := once(t, s)
	runID := last.Nodes[0].RunID
	srv.Restart()
	// Another agent, which knows what the first one saved.
	again := once(t, r.build(t))
	restarted := happened(again, locksteward.ServerRestarted)
	if len(restarted) != 1 || again.Nodes[0].RunID == runID || restarted[0].After.IsZero() || !restarted[0].Pause.After(again.At) {
		t.Fatalf("after a restart: %+v", again.Events)
	}
	e.Evaluate(again)
	if got := firing(e); got != "server/not-durable server/restarted" {
		t.Errorf("a server that was restarted: %q", got)
	}
	if _, why, paused := e.Paused("test", again.At); !paused || !strings.Contains(why, "was restarted between") {
		t.Errorf("paused %v: %s", paused, why)
	}
}

// Fault 31: a failover is seen as one, with the server before it.
// fault: 31
func TestSweepTellsOfAFailover(t *testing.T) {
	t.Parallel()
	sentinel := testredis.StartSentinel(t)
	s := fast(sentinel.URL()).build(t)
	before := sweep(t, s)
	if n := before.Nodes[0]; n.Replicas == 0 {
		t.Errorf("replicas of the master: %+v", n)
	}
	sentinel.Failover(t)
	var got locksteward.Sweep
	testredis.Eventually(t, 20*time.Second, func() bool {
		var err error
		got, err = s.Sweep(t.Context())
		return err == nil && got.Complete() && len(happened(got, locksteward.ServerFailedOver)) > 0
	}, "no failover seen")
	over := happened(got, locksteward.ServerFailedOver)
	if len(over) != 1 || over[0].Was != before.Nodes[0].Addr || over[0].Node != got.Nodes[0].Addr || over[0].Node == over[0].Was {
		t.Errorf("failover %+v", over)
	}
	if again := happened(sweep(t, s), locksteward.ServerFailedOver); len(again) != 1 {
		t.Errorf("reported again: %+v", again)
	}
	e, err := rules.New(nil, nil, nil)
	must(t, err)
	e.Evaluate(got)
	if !strings.Contains(firing(e), "server/failover") {
		t.Errorf("firing %q", firing(e))
	}
}

// Fault 2: kill -9 of a process that holds a lock. While it is merely frozen its
// connection stands; then nothing listens, and a process that was started later
// in the same slot proves its death.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	s := fast(srv.URL()).build(t)
	process, id := startChild(t, srv.URL(), "lock:job", "pod-0")
	heartbeat := record.InstanceKey(record.DefaultPrefix, id)
	testredis.Eventually(t, 5*time.Second, func() bool {
		return c.Exists(ctx, heartbeat).Val() == 1 && c.PubSubNumSub(ctx, heartbeat).Val()[heartbeat] == 1
	}, "the child has no heartbeat")
	got := sweep(t, s)
	if l := find(t, got.Locks, "lock:job"); l.Instance == nil || l.Instance.Slot != "pod-0" || len(got.Silent) != 0 {
		t.Fatalf("while it lives: %+v, silent %+v", l.Instance, got.Silent)
	}

	must(t, redisproc.Freeze(process))
	// The clock moves: the heartbeat is about to run out, as far as the agent sees.
	must(t, c.PExpire(ctx, heartbeat, 3*time.Second).Err())
	sweep(t, s)
	testredis.Eventually(t, 30*time.Second, func() bool { return c.Exists(ctx, heartbeat).Val() == 0 }, "the heartbeat stays")
	frozen := silenceOf(t, sweep(t, s), id)
	if frozen.Listeners != 1 || frozen.Looks != 1 || frozen.Deleted || frozen.Successor != nil || frozen.Instance.Host != "h7" {
		t.Errorf("while it is frozen: %+v", frozen)
	}

	must(t, process.Kill())
	testredis.Eventually(t, 5*time.Second, func() bool { return silenceOf(t, sweep(t, s), id).Listeners == 0 }, "it still listens")
	_, next := startChild(t, srv.URL(), "lock:other", "pod-0")
	var dead locksteward.MissingHeartbeat
	testredis.Eventually(t, 5*time.Second, func() bool {
		got = sweep(t, s)
		dead = silenceOf(t, got, id)
		return dead.Successor != nil && dead.Looks >= 3 // since it is not connected any more
	}, "no successor")
	if dead.Successor.ID != next || dead.For <= 0 {
		t.Errorf("after a successor: %+v", dead)
	}

	// What a minute of it makes of the lock; the server's youth, which pauses
	// verdicts, is over then.
	e, err := rules.New(nil, nil, nil)
	must(t, err)
	for i := range got.Silent {
		got.Silent[i].For = time.Minute
	}
	got.Events = nil
	e.Evaluate(got)
	findings := e.FindingsFor("test", 0, "lock:job")
	if len(findings) != 1 || findings[0].Rule != rules.HolderDead || findings[0].Proof != locksteward.Proven {
		t.Errorf("findings %+v", findings)
	}
	got.Silent[0].Successor = nil
	e.Evaluate(got)
	if f := e.FindingsFor("test", 0, "lock:job"); len(f) != 1 || f[0].Proof != locksteward.Presumed {
		t.Errorf("without a successor: %+v", f)
	}
	if f := e.FindingsFor("test", 0, "lock:other"); len(f) != 0 {
		t.Errorf("the successor itself: %+v", f)
	}
}

// A client that closes without locks deletes its heartbeat; one that closes with
// locks leaves it.
func TestDeletedHeartbeatIsSeen(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	s := fast(srv.URL()).build(t)
	client, err := lock.New(c, lock.Options{App: "test"})
	must(t, err)
	h, err := client.Acquire(ctx, "lock:job", lock.Lease{TTL: time.Hour})
	must(t, err)
	heartbeat := record.InstanceKey(record.DefaultPrefix, client.Instance())
	testredis.Eventually(t, 5*time.Second, func() bool { return c.Exists(ctx, heartbeat).Val() == 1 }, "no heartbeat")
	meta := record.Companion(record.DefaultPrefix, record.KindHold, "lock:job")
	sweep(t, s)

	// The release is lost on its way back and undone by a failover, for instance:
	// the lock stands, and its holder believes that it does not.
	stand := map[string]string{"lock:job": c.Dump(ctx, "lock:job").Val(), meta: c.Dump(ctx, meta).Val()}
	must(t, h.Release(ctx))
	must(t, client.Close())
	for key, dump := range stand {
		must(t, c.Restore(ctx, key, time.Hour, dump).Err())
	}
	if q := silenceOf(t, sweep(t, s), client.Instance()); !q.Deleted || q.Listeners != 0 {
		t.Errorf("after a deleted heartbeat: %+v", q)
	}

	// A client that closes with a lock.
	other, err := lock.New(c, lock.Options{App: "test"})
	must(t, err)
	_, err = other.Acquire(ctx, "lock:held", lock.Lease{TTL: time.Hour})
	must(t, err)
	testredis.Eventually(t, 5*time.Second, func() bool {
		return c.Exists(ctx, record.InstanceKey(record.DefaultPrefix, other.Instance())).Val() == 1
	}, "no heartbeat")
	must(t, other.Close())
	got := sweep(t, s)
	if slices.ContainsFunc(got.Silent, func(q locksteward.MissingHeartbeat) bool { return q.Instance.ID == other.Instance() }) {
		t.Error("a client that closes with a lock took its heartbeat with it")
	}
}

// Without PUBSUB NUMSUB nothing is said of connections, and the agent says what
// it lacks and how to grant it.
func TestListenersAreUnknownWithoutNumsub(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL("user scan on >pw ~* &* "+strings.Join(slices.DeleteFunc(redissource.ACL(), func(rule string) bool {
		return rule == "+pubsub|numsub" || strings.HasPrefix(rule, "&") || strings.HasPrefix(rule, "%")
	}), " ")))
	take(t, srv.Client(t), "lock:a", record.Meta{ID: "1", Instance: "GONE"}, time.Hour)
	r := fast(srv.URL())
	r.connect.Username, r.connect.Password = "scan", "pw"
	s := r.build(t)
	if q := silenceOf(t, sweep(t, s), "GONE"); q.Listeners >= 0 || q.Looks != 1 {
		t.Errorf("got %+v", q)
	}
	if got := s.Stats().Degraded; !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "grant +pubsub|numsub") }) {
		t.Errorf("degraded: %q", got)
	}
}
