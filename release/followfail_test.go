package release_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/release"
)

// acts asks for what follows a release on a key and lets the agent die before or
// after each: "before", "after", or "" for one that is reported its outcome.
type acts struct {
	e *env
	t *testing.T
}

func (a acts) dying(stage string, act func() (locksteward.Request, error)) locksteward.Request {
	a.t.Helper()
	a.e.exec.set(func(g *gate) { g.loseBefore, g.loseAfter = stage == "before", stage == "after" })
	defer a.e.exec.set(func(g *gate) { g.loseBefore, g.loseAfter = false, false })
	r, err := act()
	if err != nil {
		a.t.Fatal(err)
	}
	want := locksteward.RequestExecuting
	if stage == "" {
		want = locksteward.RequestReleased
	}
	a.e.want(a.t, r, want)
	return r
}

func (a acts) release(key string) locksteward.Request {
	a.t.Helper()
	return a.dying("", func() (locksteward.Request, error) { return a.e.approve(a.t, ben, a.e.request(a.t, ana, key)), nil })
}

func (a acts) takeOver(stage, key string) locksteward.Request {
	a.t.Helper()
	return a.dying(stage, func() (locksteward.Request, error) {
		return a.e.approve(a.t, ben, a.e.ask(a.t, ana, release.RequestInput{Key: key, TakeOver: 15 * time.Minute})), nil
	})
}

func (a acts) undo(stage string, of locksteward.Request) locksteward.Request {
	a.t.Helper()
	return a.dying(stage, func() (locksteward.Request, error) { return a.e.service.Undo(a.t.Context(), ben, of.ID, "x") })
}

func (a acts) lift(stage string, of locksteward.Request) locksteward.Request {
	a.t.Helper()
	return a.dying(stage, func() (locksteward.Request, error) { return a.e.service.Lift(a.t.Context(), ben, of.ID, "x") })
}

// settled is what became of requests, by the key of each.
func (e *env) settled(t *testing.T, all map[locksteward.RequestState][]locksteward.Request) {
	t.Helper()
	// Its own time limits may end before the new master is known to everybody.
	testredis.Eventually(t, 20*time.Second, func() bool { return e.service.Recover(t.Context()) == nil }, "what was left open is settled")
	for want, list := range all {
		for _, r := range list {
			got, err := e.service.Get(t.Context(), r.ID)
			if err != nil {
				t.Fatal(err)
			}
			if got.State != want {
				t.Errorf("%s of %s: %s (%s), want %s", got.Evidence.Act, got.Evidence.Key, got.State, got.Outcome, want)
			}
		}
	}
}

func (e *env) stands(t *testing.T, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if got := e.standing(t, key); got != value {
			t.Errorf("under %s stands %q, want %q", key, got, value)
		}
	}
}

// TestFailoverDuringWhatFollowsARelease: the master dies while the agent does not
// know what became of a take-over, an undo and a lift. What was replicated is
// read on the new master; what was not did not happen there, which is true there;
// and an act on what a take-over left never touches the lock that a lost take-over
// brought back.
func TestFailoverDuringWhatFollowsARelease(t *testing.T) {
	t.Parallel()
	s := testredis.StartSentinel(t, testredis.WithACL(releaserLine(), "scanner on >"+scannerPassword+" ~* &* +@all"))
	e := newEnvOn(t, s.URL(), s.Client(t), options{username: "releaser"})
	do := acts{e, t}
	key := func(name string) string {
		k := "lock:order:" + name
		e.do(t, "set", k, uuid, "px", 100*minute)
		return k
	}
	undo := do.undo("after", do.release(key("undo-done")))
	unsentUndo := do.undo("before", do.release(key("undo-unsent")))
	lostUndoOf := do.release(key("undo-lost"))
	lift := do.lift("after", do.takeOver("", key("lift-done")))
	unsentLift := do.lift("before", do.takeOver("", key("lift-unsent")))
	lostLiftOf := do.takeOver("", key("lift-lost"))
	over := do.takeOver("after", key("over-done"))
	unsentOver := do.takeOver("before", key("over-unsent"))
	lostOver, toldOver := key("over-lost"), key("over-reported")
	testredis.Eventually(t, 20*time.Second, func() bool {
		n, err := e.rdb.Do(t.Context(), "wait", 1, 1000).Int()
		return err == nil && n == 1
	}, "the replica has all of it")

	// From here on the replica hears nothing. A link that was down for more than
	// five seconds when the master died would keep it from becoming one.
	replica := s.Servers[1].Client(t)
	for _, command := range [][]any{{"config", "set", "masteruser", "nobody"}, {"config", "set", "masterauth", "wrong"}, {"client", "kill", "type", "master"}} {
		if err := replica.Do(t.Context(), command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	testredis.Eventually(t, 5*time.Second, func() bool {
		return e.rdb.Do(t.Context(), "wait", 1, 10).Val() == int64(0)
	}, "the replica still follows")
	lost := []locksteward.Request{do.undo("after", lostUndoOf), do.lift("after", lostLiftOf), do.takeOver("after", lostOver)}
	reported := do.takeOver("", toldOver)
	s.Failover(t)

	e.settled(t, map[locksteward.RequestState][]locksteward.Request{
		locksteward.RequestReleased: {undo, lift, over, reported},
		locksteward.RequestFailed:   append(lost, unsentUndo, unsentLift, unsentOver),
	})
	e.stands(t, map[string]string{
		"lock:order:undo-done": uuid, "lock:order:undo-unsent": "", "lock:order:undo-lost": "",
		"lock:order:lift-done": "", "lock:order:lift-unsent": "stand", "lock:order:lift-lost": "stand",
		"lock:order:over-done": "stand", "lock:order:over-unsent": uuid, "lock:order:over-lost": uuid, "lock:order:over-reported": uuid,
	})
	// The holder's lock came back by the failover; nothing that the agent still has
	// to do about the take-over may touch it.
	l, err := e.service.Lift(t.Context(), ben, reported.ID, "x")
	if err != nil {
		t.Fatal(err)
	}
	e.want(t, l, locksteward.RequestChanged)
	// What did not happen can be asked for again.
	do.undo("", lostUndoOf)
	e.clock.add(time.Hour)
	if err := e.service.EndPlaceholders(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.stands(t, map[string]string{
		"lock:order:undo-done": uuid, "lock:order:undo-lost": uuid, "lock:order:over-unsent": uuid, "lock:order:over-lost": uuid,
		"lock:order:over-reported": uuid, "lock:order:lift-unsent": "", "lock:order:lift-lost": "", "lock:order:over-done": "",
	})
}

// TestSlotMovesDuringWhatFollowsARelease: the slot of the locks goes to another
// node of the Cluster between an act and the answer to it, and while it is on its
// way between two nodes.
func TestSlotMovesDuringWhatFollowsARelease(t *testing.T) {
	t.Parallel()
	c := testredis.StartCluster(t, testredis.WithACL(releaserLine(), "scanner on >"+scannerPassword+" ~* &* +@all"))
	e := newEnvOn(t, c.URL(), c.Client(t), options{username: "releaser", cfg: release.Config{ExecuteTimeout: 5 * time.Second}})
	do := acts{e, t}
	key := func(name string) string {
		k := "lock:order:{slot}" + name
		e.do(t, "set", k, uuid, "px", 100*minute)
		return k
	}
	undoOf, liftOf := do.release(key("undo")), do.takeOver("", key("lift"))
	backOf := do.release(key("back"))
	undo, lift, over := do.undo("after", undoOf), do.lift("after", liftOf), do.takeOver("after", key("over"))
	unsent := do.takeOver("before", key("unsent"))

	m := newMove(t, c, "lock:order:{slot}")
	m.half()
	// Neither node can answer for the keys of a lock that are apart.
	back, err := e.service.Undo(t.Context(), ben, backOf.ID, "x")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("while the slot is on its way: %s (%s)", back.State, back.Outcome)
	if back.State == locksteward.RequestReleased {
		t.Fatalf("undone on keys that are apart: %s", back.Outcome)
	}
	m.finish()

	e.settled(t, map[locksteward.RequestState][]locksteward.Request{
		locksteward.RequestReleased: {undo, lift, over}, locksteward.RequestFailed: {unsent, back},
	})
	e.stands(t, map[string]string{
		"lock:order:{slot}undo": uuid, "lock:order:{slot}lift": "", "lock:order:{slot}over": "stand",
		"lock:order:{slot}unsent": uuid, "lock:order:{slot}back": "",
	})
	do.undo("", backOf)
	do.undo("", over)
	e.stands(t, map[string]string{"lock:order:{slot}back": uuid, "lock:order:{slot}over": uuid})
}

// move takes a slot from the node that has it to another one.
type move struct {
	t        *testing.T
	c        *testredis.Cluster
	slot     int64
	from, to *testredis.Server
}

func newMove(t *testing.T, c *testredis.Cluster, key string) *move {
	t.Helper()
	m := &move{t: t, c: c, from: c.NodeOf(key)}
	for _, n := range c.Nodes {
		if n != m.from {
			m.to = n
		}
	}
	m.slot = m.from.Client(t).ClusterKeySlot(t.Context(), key).Val()
	return m
}

func (m *move) do(s *testredis.Server, args ...any) {
	m.t.Helper()
	if err := s.Client(m.t).Do(m.t.Context(), args...).Err(); err != nil {
		m.t.Fatalf("%v: %v", args, err)
	}
}

// half begins the move and takes the locks themselves along, not their companions.
func (m *move) half() {
	m.t.Helper()
	m.do(m.to, "cluster", "setslot", m.slot, "importing", m.id(m.from))
	m.do(m.from, "cluster", "setslot", m.slot, "migrating", m.id(m.to))
	m.take(func(key string) bool { return !strings.HasPrefix(key, record.DefaultPrefix) })
}

func (m *move) id(s *testredis.Server) string {
	m.t.Helper()
	out, err := s.Client(m.t).Do(m.t.Context(), "cluster", "myid").Text()
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

func (m *move) take(which func(string) bool) {
	m.t.Helper()
	host, port, err := net.SplitHostPort(m.to.Addr())
	if err != nil {
		m.t.Fatal(err)
	}
	keys, err := m.from.Client(m.t).ClusterGetKeysInSlot(m.t.Context(), int(m.slot), 1000).Result()
	if err != nil {
		m.t.Fatal(err)
	}
	for _, key := range keys {
		if which(key) {
			m.do(m.from, "migrate", host, port, key, 0, 5000)
		}
	}
}

func (m *move) finish() {
	m.t.Helper()
	m.take(func(string) bool { return true })
	to := m.id(m.to)
	m.do(m.to, "cluster", "setslot", m.slot, "node", to)
	for _, n := range m.c.Nodes {
		if n != m.to {
			m.do(n, "cluster", "setslot", m.slot, "node", to)
		}
	}
}
