package release_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// standing is what is under a key: "" for nothing, "stand" for what an act put
// in the lock's place, else the value.
func (e *env) standing(t testing.TB, key string) string {
	t.Helper()
	value, err := e.rdb.Get(t.Context(), key).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return ""
	case err != nil:
		t.Fatal(err)
	case formats.IsPlaceholder(formats.Sample{Key: key, Type: "string", Value: []byte(value)}):
		return "stand"
	}
	return value
}

// latest is the newest request about a key, settled by Recover.
func (e *env) latest(t testing.TB, key string) locksteward.Request {
	t.Helper()
	list, err := e.store.RequestsForKey(t.Context(), target, 0, key, 1)
	if err != nil || len(list) != 1 {
		t.Fatalf("requests about %q: %d, %v", key, len(list), err)
	}
	return list[0]
}

// TestKilledDuringWhatFollowsARelease is fault 77 for take-over, lock-delay, undo
// and lift: the agent is killed right before or right after the act, and after the
// restart its outcome is what happened. Anyone who took the lock meanwhile keeps it.
func TestKilledDuringWhatFollowsARelease(t *testing.T) {
	t.Parallel()
	const (
		key  = "lock:order:1"
		next = "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed"
	)
	taken := func(t *testing.T, e *env) { e.do(t, "set", key, next, "px", minute) }
	gone := func(t *testing.T, e *env) { e.do(t, "del", key) }
	for name, c := range map[string]struct {
		verb      string // undo, lift, take-over, delay
		stage     string
		meanwhile func(*testing.T, *env)
		want      locksteward.RequestState
		stands    string // after the recovery
		ends      string // when the time of each stand is over
	}{
		"undo, before":                {verb: "undo", stage: "before", want: locksteward.RequestFailed},
		"undo, after":                 {verb: "undo", stage: "after", want: locksteward.RequestReleased, stands: uuid, ends: uuid},
		"undo, before, taken":         {verb: "undo", stage: "before", meanwhile: taken, want: locksteward.RequestUnknown, stands: next, ends: next},
		"undo, after, taken":          {verb: "undo", stage: "after", meanwhile: taken, want: locksteward.RequestReleased, stands: next, ends: next},
		"undo, after, gone":           {verb: "undo", stage: "after", meanwhile: gone, want: locksteward.RequestReleased},
		"lift, before":                {verb: "lift", stage: "before", want: locksteward.RequestFailed, stands: "stand"},
		"lift, after":                 {verb: "lift", stage: "after", want: locksteward.RequestReleased},
		"lift, before, gone":          {verb: "lift", stage: "before", meanwhile: gone, want: locksteward.RequestUnknown},
		"lift, before, taken":         {verb: "lift", stage: "before", meanwhile: taken, want: locksteward.RequestUnknown, stands: next, ends: next},
		"lift, after, taken":          {verb: "lift", stage: "after", meanwhile: taken, want: locksteward.RequestReleased, stands: next, ends: next},
		"take-over, before":           {verb: "take-over", stage: "before", want: locksteward.RequestFailed, stands: uuid, ends: uuid},
		"take-over, after":            {verb: "take-over", stage: "after", want: locksteward.RequestReleased, stands: "stand"},
		"take-over, before, taken":    {verb: "take-over", stage: "before", meanwhile: taken, want: locksteward.RequestUnknown, stands: next, ends: next},
		"take-over, after, and taken": {verb: "take-over", stage: "after", meanwhile: taken, want: locksteward.RequestReleased, stands: next, ends: next},
		"lock-delay, before":          {verb: "delay", stage: "before", want: locksteward.RequestFailed, stands: uuid, ends: uuid},
		"lock-delay, after":           {verb: "delay", stage: "after", want: locksteward.RequestReleased, stands: "stand"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.do(t, "set", key, uuid, "px", 100*minute)
			before, at := e.rdb.Dump(t.Context(), key).Val(), testredis.ExpireAt(t, e.rdb, key)
			in, delay := release.RequestInput{Key: key}, time.Minute
			switch c.verb {
			case "lift", "take-over":
				in.TakeOver = time.Minute
			case "delay":
				in.LockDelay = &delay
			}
			verb, r := "approve", e.ask(t, ana, in)
			executed := 0
			if c.verb == "undo" || c.verb == "lift" {
				verb, r, executed = c.verb, e.approve(t, ben, r), 1
				e.want(t, r, locksteward.RequestReleased)
			}
			e.killDuring(t, verb, c.stage, r)
			if c.meanwhile != nil {
				c.meanwhile(t, e)
			}
			open := e.latest(t, key)
			e.want(t, open, locksteward.RequestExecuting)
			if (open.ID == r.ID) != (verb == "approve") {
				t.Fatalf("the open request is %s, the one before it %s", open.ID, r.ID)
			}
			for range 2 { // twice is as once
				if err := e.service.Recover(t.Context()); err != nil {
					t.Fatal(err)
				}
				got, err := e.service.Get(t.Context(), open.ID)
				if err != nil {
					t.Fatal(err)
				}
				e.want(t, got, c.want)
				if s := e.standing(t, key); s != c.stands {
					t.Fatalf("%s (%s), and there stands %q, want %q", got.State, got.Outcome, s, c.stands)
				}
			}
			if c.stands == uuid && (e.rdb.Dump(t.Context(), key).Val() != before || testredis.ExpireAt(t, e.rdb, key) != at) {
				t.Error("the lock is not as it was")
			}
			// What the dead process sent and the server receives only now.
			if _, err := e.exec.Releaser.Release(t.Context(), open); err != nil {
				t.Error(err)
			}
			if s := e.standing(t, key); s != c.stands {
				t.Errorf("the late script: there stands %q, want %q", s, c.stands)
			}
			if e.exec.count() != executed {
				t.Error("it was executed again")
			}
			e.clock.add(2 * time.Minute)
			if err := e.service.EndPlaceholders(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s := e.standing(t, key); s != c.ends {
				t.Errorf("in the end there stands %q, want %q", s, c.ends)
			}
			if c.verb == "undo" && c.want == locksteward.RequestFailed {
				// It did not happen, so that it can be asked for again.
				u, err := e.service.Undo(t.Context(), ben, r.ID, "once more")
				if err != nil {
					t.Fatal(err)
				}
				e.want(t, u, locksteward.RequestReleased)
				if e.rdb.Dump(t.Context(), key).Val() != before || testredis.ExpireAt(t, e.rdb, key) != at {
					t.Error("the lock is not as it was")
				}
			}
		})
	}
}
