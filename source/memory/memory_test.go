package memory_test

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/memory"
)

const key = "lock:1"

// request freezes what holds the lock now.
func request(t *testing.T, s *memory.Store, id string, change func(*locksteward.Evidence)) locksteward.Request {
	t.Helper()
	seen, err := s.Preview(t.Context(), locksteward.Request{Evidence: locksteward.Evidence{Key: key}})
	if err != nil || !seen.Found {
		t.Fatalf("%+v, %v", seen, err)
	}
	change(&seen.Now)
	return locksteward.Request{ID: id, Evidence: seen.Now}
}

func release(t *testing.T, s *memory.Store, r locksteward.Request, want locksteward.RequestState) source.Outcome {
	t.Helper()
	out, err := s.Release(t.Context(), r)
	if err != nil || out.State != want {
		t.Errorf("%s %s: %+v, %v, want %s", r.Evidence.Act, r.ID, out, err, want)
	}
	return out
}

func TestReleasesOneHoldOrNothing(t *testing.T) {
	t.Parallel()
	s := memory.New(locksteward.NewDigestKey())
	hold := memory.Hold{Token: "a", Identity: locksteward.IdentityStrong, Expires: time.Now().Add(time.Minute)}
	same := func(*locksteward.Evidence) {}

	s.Put(key, hold)
	r := request(t, s, "r-1", same)
	s.Renew(key, time.Now().Add(time.Hour))
	if out := release(t, s, r, locksteward.RequestChanged); len(out.Differences) != 1 {
		t.Errorf("differences %q, want the expiry", out.Differences)
	}
	r = request(t, s, "r-2", same)
	s.Put(key, memory.Hold{Token: "b"})
	release(t, s, r, locksteward.RequestChanged)
	if _, ok := s.Read("t", key); !ok {
		t.Fatal("the next holder lost the lock")
	}
	s.Delete(key)
	r.ID = "r-3"
	release(t, s, r, locksteward.RequestAlreadyGone)

	s.Put(key, hold)
	r = request(t, s, "r-4", same)
	if out := release(t, s, r, locksteward.RequestReleased); out.ConfirmedBy != source.ConfirmedByAnswer {
		t.Errorf("confirmed by %q", out.ConfirmedBy)
	}
	s.Put(key, hold)
	if out := release(t, s, r, locksteward.RequestReleased); out.ConfirmedBy != source.ConfirmedByRecord {
		t.Errorf("a second run is confirmed by %q, want the record of the first", out.ConfirmedBy)
	}
	if _, ok := s.Read("t", key); !ok {
		t.Error("a request ran twice")
	}
	s.Put(key, memory.Hold{Token: "a", Expires: time.Now().Add(-time.Second)})
	if _, ok := s.Read("t", key); ok {
		t.Error("an expired hold is still there")
	}
}

func TestResolveWithdraws(t *testing.T) {
	t.Parallel()
	s := memory.New(locksteward.NewDigestKey())
	s.Put(key, memory.Hold{Token: "a"})
	r := request(t, s, "r-1", func(*locksteward.Evidence) {})
	for range 2 {
		if out, err := s.Resolve(t.Context(), r); err != nil || out.State != locksteward.RequestFailed {
			t.Errorf("%+v, %v, want failed", out, err)
		}
	}
	release(t, s, r, locksteward.RequestChanged)
	r.ID = "r-2"
	release(t, s, r, locksteward.RequestReleased)
	if out, err := s.Resolve(t.Context(), r); err != nil || out.State != locksteward.RequestReleased || out.ConfirmedBy != source.ConfirmedByRecord {
		t.Errorf("%+v, %v, want released by the record", out, err)
	}
}

func TestPlaceholderAndUndo(t *testing.T) {
	t.Parallel()
	s := memory.New(locksteward.NewDigestKey())
	follow := func(id string, act locksteward.Act) locksteward.Request {
		return locksteward.Request{ID: id, Evidence: locksteward.Evidence{Key: key, Act: act, Of: "r-1"}}
	}
	s.Put(key, memory.Hold{Token: "a"})
	release(t, s, request(t, s, "r-1", func(e *locksteward.Evidence) { e.Placeholder, e.Undo = time.Minute, time.Minute }), locksteward.RequestReleased)
	if _, ok := s.Read("t", key); ok {
		t.Error("a placeholder is read as a lock")
	}
	release(t, s, follow("r-2", locksteward.ActUndo), locksteward.RequestReleased)
	release(t, s, follow("r-3", locksteward.ActLift), locksteward.RequestChanged)
	release(t, s, follow("r-4", locksteward.ActUndo), locksteward.RequestChanged)
	s.Delete(key)
	release(t, s, follow("r-5", locksteward.ActUndo), locksteward.RequestAlreadyGone)
	release(t, s, follow("r-6", locksteward.ActLift), locksteward.RequestAlreadyGone)

	s.Put(key, memory.Hold{Token: "a"})
	r := request(t, s, "r-7", func(e *locksteward.Evidence) { e.Act, e.Placeholder = locksteward.ActTakeOver, time.Minute })
	release(t, s, r, locksteward.RequestReleased)
	lift := follow("r-8", locksteward.ActLift)
	lift.Evidence.Of = "r-7"
	release(t, s, lift, locksteward.RequestReleased)
}
