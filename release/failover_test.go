package release_test

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// TestFailoverDuringARelease: the agent does not know what became of its act, and
// the master that could tell is dead. What was replicated is read on the new one.
// fault: 73
func TestFailoverDuringARelease(t *testing.T) {
	t.Parallel()
	s := testredis.StartSentinel(t, testredis.WithACL(releaserLine(), "scanner on >"+scannerPassword+" ~* &* +@all"))
	e := newEnvOn(t, s.URL(), s.Client(t), options{username: "releaser"})
	const done, undone, later = "lock:order:done", "lock:order:undone", "lock:order:later"
	for _, key := range []string{done, undone, later} {
		e.do(t, "set", key, uuid, "px", minute)
	}
	lost := func(key string, lose func(*gate, bool)) locksteward.Request {
		r := e.request(t, ana, key)
		e.exec.set(func(g *gate) { lose(g, true) })
		r = e.approve(t, ben, r)
		e.exec.set(func(g *gate) { lose(g, false) })
		e.want(t, r, locksteward.RequestExecuting)
		return r
	}
	first := lost(done, func(g *gate, on bool) { g.loseAfter = on })
	second := lost(undone, func(g *gate, on bool) { g.loseBefore = on })
	third := e.request(t, ana, later)
	testredis.Eventually(t, 20*time.Second, func() bool {
		n, err := e.rdb.Do(t.Context(), "wait", 1, 1000).Int()
		return err == nil && n == 1
	}, "the replica has all of it")
	s.Failover(t)

	// Its own time limits may end before the new master is known to everybody.
	testredis.Eventually(t, 20*time.Second, func() bool { return e.service.Recover(t.Context()) == nil }, "what was left open is settled")
	for id, want := range map[string]locksteward.RequestState{
		first.ID: locksteward.RequestReleased, second.ID: locksteward.RequestFailed,
	} {
		r, err := e.service.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		e.want(t, r, want)
	}
	if e.exists(t, done) || !e.exists(t, undone) {
		t.Error("a lock that was released stands, or one that was not does not")
	}
	e.want(t, e.approve(t, ben, third), locksteward.RequestReleased)
	if e.exists(t, later) {
		t.Error("the lock is still there after a release on the new master")
	}
}
