package release_test

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/release"
)

func TestUndo(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	key := "lock:order:1"
	e.do(t, "set", key, uuid, "px", minute)
	before, at := e.rdb.Dump(t.Context(), key).Val(), testredis.ExpireAt(t, e.rdb, key)
	r := e.approve(t, ben, e.request(t, ana, key))
	e.want(t, r, locksteward.RequestReleased)
	if r.Evidence.Undo != release.DefaultUndoWindow {
		t.Errorf("evidence %+v", r.Evidence)
	}
	_, err := e.service.Undo(t.Context(), ana, r.ID, "it was the wrong one")
	wantError(t, err, locksteward.ErrRefused, "approver")
	_, err = e.service.Undo(t.Context(), ben, r.ID, " ")
	wantError(t, err, locksteward.ErrInvalid, "reason")
	u, err := e.service.Undo(t.Context(), ben, r.ID, "it was the wrong one")
	if err != nil {
		t.Fatal(err)
	}
	e.want(t, u, locksteward.RequestReleased)
	if u.Evidence.Act != locksteward.ActUndo || u.Evidence.Of != r.ID {
		t.Errorf("the undo is %+v", u.Evidence)
	}
	if e.rdb.Dump(t.Context(), key).Val() != before || testredis.ExpireAt(t, e.rdb, key) != at {
		t.Error("the lock is not as it was")
	}
	want := []string{"ben release.undo approved", "agent release.execute intent", "agent release.execute released"}
	if got := e.trail(t, u.ID); len(got) != 3 || got[0] != want[0] || got[2] != want[2] {
		t.Errorf("trail %q, want %q", got, want)
	}
	_, err = e.service.Undo(t.Context(), ben, u.ID, "once more")
	wantError(t, err, locksteward.ErrConflict, "cannot be undone")
	_, err = e.service.Undo(t.Context(), ben, r.ID, "once more")
	wantError(t, err, locksteward.ErrConflict, "was undone already, by ben with "+u.ID)
}

// A request that was not found undone for want of the lock may be asked for again.
func TestUndoOfWhatIsNotKeptAnyMore(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	key := "lock:order:1"
	e.do(t, "set", key, uuid, "px", minute)
	r := e.approve(t, ben, e.request(t, ana, key))
	e.want(t, r, locksteward.RequestReleased)
	e.do(t, "del", "locksteward:undo:{"+key+"}")
	for range 2 {
		u, err := e.service.Undo(t.Context(), ben, r.ID, "it was the wrong one")
		if err != nil {
			t.Fatal(err)
		}
		e.want(t, u, locksteward.RequestAlreadyGone)
	}
}

func TestUndoWhereSomebodyHoldsTheLock(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	key := "lock:order:1"
	e.do(t, "set", key, uuid, "px", minute)
	r := e.approve(t, ben, e.request(t, ana, key))
	e.do(t, "set", key, "the next one", "px", minute)
	u, err := e.service.Undo(t.Context(), ben, r.ID, "too late")
	if err != nil {
		t.Fatal(err)
	}
	e.want(t, u, locksteward.RequestChanged)
	if e.rdb.Get(t.Context(), key).Val() != "the next one" {
		t.Error("the next holder's lock was touched")
	}
}

func TestWhatCannotBeUndone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	undo := func(r locksteward.Request) error {
		_, err := e.service.Undo(t.Context(), ben, r.ID, "x")
		return err
	}
	e.do(t, "set", "lock:order:1", uuid, "px", minute)
	pending := e.request(t, ana, "lock:order:1")
	wantError(t, undo(pending), locksteward.ErrConflict, "pending")
	done := e.approve(t, ben, pending)
	e.clock.add(release.DefaultUndoWindow + time.Second)
	wantError(t, undo(done), locksteward.ErrConflict, "ended at")
	wantError(t, undo(locksteward.Request{ID: "r-none"}), locksteward.ErrNotFound)

	client, err := lock.New(e.rdb, lock.Options{App: "billing"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Acquire(t.Context(), "lock:order:2", lock.Lease{TTL: time.Minute, NoRenew: true}); err != nil {
		t.Fatal(err)
	}
	r := e.approve(t, ben, e.request(t, ana, "lock:order:2"))
	e.want(t, r, locksteward.RequestReleased)
	wantError(t, undo(r), locksteward.ErrRefused, "notifies its holder at once")
}

// TestUndoThatWasInterrupted: the true outcome of an undo is found like that of a
// release.
func TestUndoThatWasInterrupted(t *testing.T) {
	t.Parallel()
	for stage, want := range map[string]locksteward.RequestState{
		"before": locksteward.RequestFailed, "after": locksteward.RequestReleased,
	} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.do(t, "set", "lock:order:1", uuid, "px", minute)
			r := e.approve(t, ben, e.request(t, ana, "lock:order:1"))
			e.exec.set(func(g *gate) { g.loseBefore, g.loseAfter = stage == "before", stage == "after" })
			u, err := e.service.Undo(t.Context(), ben, r.ID, "x")
			if err != nil {
				t.Fatal(err)
			}
			e.want(t, u, locksteward.RequestExecuting)
			e.newService(t, release.Config{})
			if err := e.service.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			if u, err = e.service.Get(t.Context(), u.ID); err != nil {
				t.Fatal(err)
			}
			e.want(t, u, want)
			if e.exists(t, "lock:order:1") != (want == locksteward.RequestReleased) {
				t.Errorf("%s, and the lock stands: %t", want, e.exists(t, "lock:order:1"))
			}
		})
	}
}
