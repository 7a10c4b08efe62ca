package release_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/release"
)

// sweep is a complete sweep in which the keys look dead by the rule.
func (e *env) sweep(t testing.TB, rule string, proof locksteward.Proof, keys ...string) []locksteward.Request {
	t.Helper()
	var dead []release.Dead
	for _, key := range keys {
		lock, _, err := e.locks.ReadLock(t.Context(), target, key)
		if err != nil {
			t.Fatal(err)
		}
		dead = append(dead, release.Dead{Lock: lock, Firing: []string{rule}, Proof: proof})
	}
	list, err := e.service.Swept(t.Context(), target, dead)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// pending are the requests that wait for a person, of which there are n.
func (e *env) pending(t testing.TB, n int) []locksteward.Request {
	t.Helper()
	list, err := e.store.ListRequests(t.Context(), []locksteward.RequestState{locksteward.RequestPending}, "", 0)
	if err != nil || len(list) != n {
		t.Fatalf("%d requests wait, want %d: %v", len(list), n, err)
	}
	return list
}

func TestAutoByHeartbeat(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	key := "lock:auto:1"
	e.put(t, key, uuid, minute)
	// Presumed is proposed and waits for a person.
	list := e.sweep(t, "holder/dead", locksteward.Presumed, key)
	if len(list) != 1 || list[0].State != locksteward.RequestPending {
		t.Fatalf("%+v", list)
	}
	if list = e.sweep(t, "holder/dead", locksteward.Presumed, key); len(list) != 0 {
		t.Errorf("proposed again: %+v", list)
	}
	list = e.sweep(t, "holder/dead", locksteward.Proven, key)
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	e.want(t, list[0], locksteward.RequestReleased)
	if d := list[0].Decisions; len(d) != 1 || d[0].By != release.AgentName || d[0].EvidenceHash != list[0].EvidenceHash {
		t.Errorf("decisions %+v", d)
	}
	if e.exists(t, key) || len(e.reported.of(locksteward.EventAuto)) != 1 {
		t.Error("the lock is there, or nobody was notified")
	}
}

// newRule has a lock that looks dead by a rule. A step is a sweep, after which the given
// number of releases were carried out.
func newRule(t *testing.T) (e *env, key string, step func(want int)) {
	t.Helper()
	e, key = newMemoryEnv(t), "lock:rule:1"
	e.put(t, key, uuid, 100*minute)
	return e, key, func(want int) {
		t.Helper()
		e.sweep(t, "hold/too-long", "", key)
		if got := e.exec.count(); got != want {
			t.Fatalf("executed %d times, want %d", got, want)
		}
	}
}

func TestAutoByRule(t *testing.T) {
	t.Parallel()
	e, key, step := newRule(t)
	step(0)
	step(0)
	step(0) // three sweeps, but no time
	e.clock.add(9 * time.Minute)
	step(0)
	// One sweep in which it did not look dead, and it starts anew.
	e.sweep(t, "hold/too-long", "")
	e.clock.add(20 * time.Minute)
	step(0)
	step(0)
	e.clock.add(11 * time.Minute)
	// A renewal as well.
	e.renew(t, key, 101*minute)
	step(0)
	e.clock.add(11 * time.Minute)
	step(0)
	e.clock.add(time.Minute)
	step(1)
	list, err := e.store.RequestsForKey(t.Context(), target, 0, key, 10)
	if err != nil || list[0].State != locksteward.RequestReleased && list[0].State != locksteward.RequestChanged {
		t.Fatalf("%+v, %v", list, err)
	}
}

// TestAutoAfterATakeOver: a replica that gives a target away and takes it back does not
// know what was seen of its locks meanwhile, and counts anew.
func TestAutoAfterATakeOver(t *testing.T) {
	t.Parallel()
	e, _, step := newRule(t)
	step(0)
	step(0)
	e.service.Gained(target)
	e.clock.add(20 * time.Minute)
	step(0) // the third, and long after the first: of a row that nobody saw
	step(0)
	e.clock.add(11 * time.Minute)
	step(1)
}

// TestAutoNeverWithout: what is doubtful is left to people.
func TestAutoNeverWithout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key     string
		prepare func(t *testing.T, e *env, key string)
	}{
		"identity": {"lock:auto:1", func(t *testing.T, e *env, key string) { e.put(t, key, "1", 0) }},
		"class":    {"lock:dead:1", func(t *testing.T, e *env, key string) { e.put(t, key, uuid, minute) }},
		"pause window": {"lock:auto:1", func(t *testing.T, e *env, key string) {
			e.put(t, key, uuid, minute)
			e.newService(t, release.Config{PauseWindows: []release.PauseWindow{{From: "00:00", To: "12:00"}, {From: "11:59", To: "00:01"}}})
		}},
		"paused by an admin": {"lock:auto:1", func(t *testing.T, e *env, key string) {
			e.put(t, key, uuid, minute)
			if err := e.service.Pause(t.Context(), admin, release.PauseAutomatic, e.clock.now().Add(24*time.Hour), "sale"); err != nil {
				t.Fatal(err)
			}
		}},
		"paused by an admin at another replica": {"lock:auto:1", func(t *testing.T, e *env, key string) {
			e.put(t, key, uuid, minute)
			other := e.service
			e.newService(t, release.Config{})
			e.sweep(t, "holder/dead", locksteward.Presumed, key) // it knows the pauses
			if err := other.Pause(t.Context(), admin, release.PauseAutomatic, e.clock.now().Add(24*time.Hour), "sale"); err != nil {
				t.Fatal(err)
			}
		}},
		"pause of all": {"lock:auto:1", func(t *testing.T, e *env, key string) {
			e.put(t, key, uuid, minute)
			if err := e.service.Pause(t.Context(), admin, release.PauseAll, time.Time{}, "something is wrong"); err != nil {
				t.Fatal(err)
			}
		}},
		"a denial": {"lock:auto:1", func(t *testing.T, e *env, key string) {
			e.put(t, key, uuid, minute)
			r := e.sweep(t, "holder/dead", locksteward.Presumed, key)[0]
			if _, err := e.service.Deny(t.Context(), ben, r.ID, release.Decision{Reason: "it lives"}); err != nil {
				t.Fatal(err)
			}
		}},
		"a person's request": {"lock:auto:1", func(t *testing.T, e *env, key string) {
			e.put(t, key, uuid, minute)
			e.request(t, ana, key)
		}},
		"renewals": {"lock:auto:renewed", func(t *testing.T, e *env, key string) {
			e.put(t, key, uuid, minute)
			e.sweep(t, "holder/dead", locksteward.Presumed, key)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newMemoryEnv(t)
			c.prepare(t, e, c.key)
			for i := range 5 {
				if strings.HasSuffix(c.key, "renewed") {
					e.renew(t, c.key, (2+i)*minute)
				}
				e.sweep(t, "holder/dead", locksteward.Proven, c.key)
				e.clock.add(15 * time.Minute)
			}
			if e.exec.count() != 0 || !e.exists(t, c.key) {
				t.Errorf("executed %d times", e.exec.count())
			}
		})
	}
}

// TestAutoOfPresumedDeath: it needs a person, however long it lasts, unless the
// holder promised to stop with its heartbeat.
func TestAutoOfPresumedDeath(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"lock:auto:1", "lock:silent:1"} {
		for _, promised := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s promised=%t", key, promised), func(t *testing.T) {
				t.Parallel()
				e := newEnv(t)
				client, err := lock.New(e.rdb, lock.Options{App: "billing", EndWithHeartbeat: promised})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				h, err := client.Acquire(t.Context(), key, lock.Lease{TTL: 10 * time.Hour, NoRenew: true})
				if err != nil {
					t.Fatal(err)
				}
				for i := 0; i < 6 && e.exists(t, key); i++ {
					e.sweep(t, "holder/dead", locksteward.Presumed, key)
					e.clock.add(10 * time.Minute)
				}
				if released := !e.exists(t, key); released != promised {
					t.Errorf("released: %t", released)
				}
				if err := h.Release(t.Context()); promised == (err == nil) {
					t.Errorf("the holder's release: %v", err)
				}
			})
		}
	}
}

// A rule that may act alone does not inherit the sweeps of a presumed death.
func TestAutoCountsEachWayByItself(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	key := "lock:silent:1"
	e.put(t, key, uuid, 1000*minute)
	for range 4 {
		e.sweep(t, "holder/dead", locksteward.Presumed, key)
		e.clock.add(5 * time.Minute)
	}
	for i := range 3 {
		if e.exec.count() != 0 {
			t.Fatalf("released after %d sweeps of hold/too-long", i)
		}
		e.sweep(t, "hold/too-long", "", key)
		e.clock.add(5 * time.Minute)
	}
	if e.exec.count() != 1 {
		t.Errorf("executed %d times", e.exec.count())
	}
}

// TestCircuitBreaker: many dead locks at once are no many deaths.
// fault: 75
func TestCircuitBreaker(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.newService(t, release.Config{BreakerLocks: 5})
	var keys []string
	for i := range 5 {
		keys = append(keys, fmt.Sprintf("lock:auto:%d", i))
		e.put(t, keys[i], uuid, 1000*minute)
	}
	e.sweep(t, "holder/dead", locksteward.Proven, keys...)
	e.sweep(t, "holder/dead", locksteward.Proven, keys...)
	if e.exec.count() != 0 || len(e.reported.of(locksteward.EventBreaker)) != 1 {
		t.Fatalf("executed %d, reported %d times", e.exec.count(), len(e.reported.of(locksteward.EventBreaker)))
	}
	// People are warned, and may.
	list := e.pending(t, 5)
	if got := e.service.Warnings(list[0]); len(got) != 1 {
		t.Errorf("warnings %q", got)
	}
	e.want(t, e.approve(t, ben, list[0]), locksteward.RequestReleased)
	// It stays open for a while after it was so last, also when fewer are dead.
	left := list[1].Evidence.Key
	e.clock.add(release.DefaultBreakerFor - time.Second)
	e.sweep(t, "holder/dead", locksteward.Proven, left)
	if e.exec.count() != 1 {
		t.Error("the breaker closed too early")
	}
	e.clock.add(time.Second)
	e.sweep(t, "holder/dead", locksteward.Proven, left)
	if e.exec.count() != 2 {
		t.Error("the breaker did not close")
	}
}

// fault: 75
func TestAutoPerHour(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.newService(t, release.Config{AutoPerHour: 2})
	for i := range 4 {
		key := fmt.Sprintf("lock:auto:%d", i)
		e.put(t, key, uuid, 1000*minute)
		e.sweep(t, "holder/dead", locksteward.Proven, key)
	}
	if e.exec.count() != 2 {
		t.Errorf("executed %d times, want 2", e.exec.count())
	}
	// A person still can.
	list := e.pending(t, 2)
	e.want(t, e.approve(t, ben, list[0]), locksteward.RequestReleased)
}
