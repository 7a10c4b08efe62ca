package release_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/store"
)

// crowd is how many approve in the same moment.
const crowd = 200

// forEachPlace runs fn on an agent with a file, and on two that share a server, each with
// its own connections.
func forEachPlace(t *testing.T, fn func(t *testing.T, e *env, stores []*store.Store)) {
	t.Helper()
	var server string
	if !testing.Short() && testpg.Available() {
		server = testpg.Database(t) // made before tests run beside each other
	}
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		e := newMemoryEnv(t)
		fn(t, e, []*store.Store{e.store})
	})
	t.Run("two replicas on postgres", func(t *testing.T) {
		t.Parallel()
		if server == "" {
			server = testpg.Database(t) // skips, or fails, as it should
		}
		e := newMemoryEnv(t, func(o *options) { o.dsn = server })
		one := e.store
		e.openStore(t)
		fn(t, e, []*store.Store{one, e.store})
	})
}

// replicas are the services of agents, one for each store; their releaser is that of e
// for the targets, and each reads any lock as one of the target that it is asked about.
func (e *env) replicas(t testing.TB, stores []*store.Store, cfg release.Config, targets ...string) (out []*release.Service) {
	t.Helper()
	releasers := map[string]source.Releaser{}
	for _, name := range targets {
		releasers[name] = e.exec
	}
	for _, st := range stores {
		s, err := release.New(zap.NewNop(), cfg, release.Deps{
			Store: st, Locks: named{e.locks}, Classes: testClasses(t), Now: e.clock.now, Releasers: releasers, Settings: st,
		})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// storm has all approve all requests at once, by all replicas, and returns the refusals.
func storm(t *testing.T, replicas []*release.Service, list []locksteward.Request) (refused []error) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i, r := range list {
		for n, s := range replicas {
			actor := release.Actor{Name: fmt.Sprintf("approver-%d-%d", i, n), Roles: ben.Roles}
			wg.Go(func() {
				<-start
				_, err := s.Approve(t.Context(), actor, r.ID, yes(r))
				for errors.Is(err, store.ErrBusy) { // so many write at once that one has to ask again
					_, err = s.Approve(t.Context(), actor, r.ID, yes(r))
				}
				switch {
				case errors.Is(err, locksteward.ErrRefused):
					mu.Lock()
					defer mu.Unlock()
					refused = append(refused, err)
				case err != nil && !errors.Is(err, locksteward.ErrConflict): // the other replica was first
					t.Error(err)
				}
			})
		}
	}
	close(start)
	wg.Wait()
	for _, s := range replicas { // what was approved and could not be begun
		if err := s.Recover(t.Context()); err != nil {
			t.Error(err)
		}
	}
	return refused
}

// gone is how many of the requests' locks are not at the server any more.
func (e *env) gone(t testing.TB, list []locksteward.Request) (n int) {
	t.Helper()
	for _, r := range list {
		if !e.exists(t, r.Evidence.Key) {
			n++
		}
	}
	return n
}

// states counts the requests by their state, as they are stored.
func (e *env) states(t testing.TB, list []locksteward.Request) map[locksteward.RequestState]int {
	t.Helper()
	out := map[locksteward.RequestState]int{}
	for _, r := range list {
		now, err := e.service.Get(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		out[now.State]++
	}
	return out
}

// wantStates checks the states of requests, and that as many locks are gone at the
// server as were said to be released.
func (e *env) wantStates(t *testing.T, list []locksteward.Request, want map[locksteward.RequestState]int) {
	t.Helper()
	got := e.states(t, list)
	for state, n := range want {
		if got[state] != n {
			t.Errorf("requests %v, want %v", got, want)
			break
		}
	}
	if gone := e.gone(t, list); gone != want[locksteward.RequestReleased]+want[locksteward.RequestAlreadyGone] {
		t.Errorf("%d locks are gone at the server, want %d: %v", gone, want[locksteward.RequestReleased], got)
	}
}

// TestManyApproveAtOnce: of 200 approvals in the same moment no more locks are released
// than the cap of their class allows, nor than that of all classes; the other requests
// wait, and the refusal names the cap and the time at which it is free again.
// fault: 75
func TestManyApproveAtOnce(t *testing.T) {
	forEachPlace(t, func(t *testing.T, e *env, stores []*store.Store) {
		const perHour, all = 7, 9
		replicas := e.replicas(t, stores, release.Config{MaxPerHour: all}, target)
		first, second := e.many(t, "first", 0, crowd), e.many(t, "second", 0, 20)
		pending := func(n, released int) map[locksteward.RequestState]int {
			return map[locksteward.RequestState]int{locksteward.RequestReleased: released, locksteward.RequestPending: n - released}
		}
		free := e.clock.now().UTC().Add(time.Hour).Format(time.RFC3339)
		refused := storm(t, replicas, first)
		e.wantStates(t, first, pending(crowd, perHour))
		if len(refused) == 0 {
			t.Fatal("nobody was refused")
		}
		wantError(t, refused[0], locksteward.ErrRefused, "max_per_hour", "at most 7", `"first"`, free, "pending")

		refused = storm(t, replicas, second)
		e.wantStates(t, second, pending(20, all-perHour))
		wantError(t, refused[0], locksteward.ErrRefused, "release.max_per_hour", "at most 9", free, "pending")

		// An hour later there is room for as many again.
		e.clock.add(59 * time.Minute)
		for _, r := range first { // they would be over by then
			_, err := e.store.UpdateRequest(t.Context(), r.ID, func(r *locksteward.Request) ([]locksteward.Entry, error) {
				r.ExpiresAt = r.ExpiresAt.Add(time.Hour)
				return nil, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		e.clock.add(time.Minute + time.Millisecond)
		storm(t, replicas, first)
		e.wantStates(t, first, pending(crowd, 2*perHour))
	})
}

// TestWhatReleasedNothingGivesBack: a request that found its lock gone or changed takes
// no place of the cap, one of which nobody knows the outcome does, also after a restart.
// fault: 75
func TestWhatReleasedNothingGivesBack(t *testing.T) {
	forEachPlace(t, func(t *testing.T, e *env, stores []*store.Store) {
		const perHour = 7
		replicas := e.replicas(t, stores, release.Config{}, target)
		list := e.many(t, "first", 0, 60)
		left, other, whole := list[:10], list[10:20], list[20:]
		for i := range 10 {
			e.free(t, left[i].Evidence.Key)
			e.put(t, other[i].Evidence.Key, "another", 1000*minute)
		}
		nothing := slices.Concat(left, other)
		for e.states(t, nothing)[locksteward.RequestPending] > 0 { // each round, some come to an end and make room
			storm(t, replicas, nothing)
		}
		e.wantStates(t, left, map[locksteward.RequestState]int{locksteward.RequestAlreadyGone: 10})
		e.wantStates(t, other, map[locksteward.RequestState]int{locksteward.RequestChanged: 10})
		storm(t, replicas, whole)
		e.wantStates(t, whole, map[locksteward.RequestState]int{locksteward.RequestReleased: perHour, locksteward.RequestPending: 40 - perHour})
	})
}

// TestUnknownKeepsItsPlace: what an agent that died has approved, or has begun, is in the
// count of the next one.
// fault: 71, 75
func TestUnknownKeepsItsPlace(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	list := e.many(t, "few", 0, 3)
	// One has its approval and nothing else, as after a kill between the two.
	_, err := e.store.UpdateRequest(t.Context(), list[0].ID, func(r *locksteward.Request) ([]locksteward.Entry, error) {
		r.State, r.ApprovedUntil = locksteward.RequestApproved, e.clock.now().Add(release.DefaultApprovalTTL)
		r.Decisions = []locksteward.Decision{{By: "ben", Approve: true, Reason: "x", At: e.clock.now(), EvidenceHash: r.EvidenceHash}}
		return []locksteward.Entry{{At: e.clock.now(), Actor: "ben", Action: release.ActionApprove, Subject: r.ID, Outcome: "approved"}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// One has its intent and no outcome.
	e.exec.set(func(g *gate) { g.loseAfter, g.deafResolve = true, true })
	if r := e.approve(t, ben, list[1]); r.State != locksteward.RequestExecuting {
		t.Fatalf("it is %s", r.State)
	}
	refused := func() {
		t.Helper()
		e.newService(t, release.Config{})
		_, err := e.service.Approve(t.Context(), ben, list[2].ID, yes(list[2]))
		wantError(t, err, locksteward.ErrRefused, "max_per_hour", "at most 2")
	}
	refused()
	if gone := e.gone(t, list); gone != 1 {
		t.Fatalf("%d locks are gone, want 1", gone)
	}
	// A day later nobody knows what became of it: that is not as if it had not been.
	for _, r := range list[2:] {
		_, err := e.store.UpdateRequest(t.Context(), r.ID, func(r *locksteward.Request) ([]locksteward.Entry, error) {
			r.ExpiresAt = r.ExpiresAt.Add(48 * time.Hour)
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	e.clock.add(25 * time.Hour)
	if _, err := e.service.ExpireDue(t.Context()); err != nil { // that of the first gives its place back
		t.Fatal(err)
	}
	if err := e.service.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := e.states(t, list[:2]); got[locksteward.RequestExpired] != 1 || got[locksteward.RequestUnknown] != 1 {
		t.Fatalf("%v", got)
	}
	e.exec.set(func(g *gate) { g.loseAfter, g.deafResolve = false, false })
	e.want(t, e.approve(t, ben, e.many(t, "few", 10, 1)[0]), locksteward.RequestReleased)
	refused()
}

// TestAgentActsAtOnceOnManyTargets: sweeps of many targets at once release no more
// without a person than release.auto_per_hour allows.
// fault: 75
func TestAgentActsAtOnceOnManyTargets(t *testing.T) {
	forEachPlace(t, func(t *testing.T, e *env, stores []*store.Store) {
		const targets, most = 40, 3
		var names []string
		for i := range targets {
			names = append(names, fmt.Sprint("t", i))
		}
		replicas := e.replicas(t, stores, release.Config{AutoPerHour: most}, names...)
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i, name := range names {
			key := fmt.Sprint("lock:auto:", i)
			e.put(t, key, uuid, 1000*minute)
			lock, _, err := named{e.locks}.ReadLock(t.Context(), name, key)
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				<-start
				_, err := replicas[i%len(replicas)].Swept(t.Context(), name, []release.Dead{{Lock: lock, Firing: []string{"holder/dead"}, Proof: locksteward.Proven}})
				if err != nil {
					t.Error(err)
				}
			})
		}
		close(start)
		wg.Wait()
		list, err := e.store.ListRequests(t.Context(), nil, "", -1)
		if err != nil || len(list) != targets {
			t.Fatalf("%d requests, %v", len(list), err)
		}
		e.wantStates(t, list, map[locksteward.RequestState]int{locksteward.RequestReleased: most, locksteward.RequestPending: targets - most})
	})
}

// TestBundlesUnderACap: a bundle for which there is no room is refused as a whole; of those
// approved in the same moment no more is released than the cap allows, and the rest waits.
// fault: 75
func TestBundlesUnderACap(t *testing.T) {
	forEachPlace(t, func(t *testing.T, e *env, stores []*store.Store) {
		const perHour = 7
		replicas := e.replicas(t, stores, release.Config{}, target)
		keys := e.dead(t, "first", 8+4*5)
		ask := func(keys []string) release.Bundle {
			t.Helper()
			b, err := replicas[0].RequestBundle(t.Context(), ana, release.BundleInput{Target: target, Host: "web-3", Keys: keys, Reason: "gone"})
			if err != nil || len(b.Requests) != len(keys) {
				t.Fatalf("%+v, %v", b, err)
			}
			return b
		}
		large := ask(keys[:8])
		_, err := replicas[0].ApproveBundle(t.Context(), ben, large.ID, bundleWord(large))
		wantError(t, err, locksteward.ErrRefused, "max_per_hour", "at most 7", "8 at once are never possible")
		e.wantStates(t, large.Requests, map[locksteward.RequestState]int{locksteward.RequestPending: 8})

		var all []locksteward.Request
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range 4 {
			b := ask(keys[8+5*i:][:5])
			all = append(all, b.Requests...)
			wg.Go(func() {
				<-start
				_, err := replicas[i%len(replicas)].ApproveBundle(t.Context(), ben, b.ID, bundleWord(b))
				if err != nil && !errors.Is(err, locksteward.ErrRefused) {
					t.Error(err)
				}
			})
		}
		close(start)
		wg.Wait()
		got := e.states(t, all)
		if gone := e.gone(t, all); gone > perHour || gone < 5 || gone != got[locksteward.RequestReleased] || got[locksteward.RequestPending] != len(all)-gone {
			t.Errorf("%d locks are gone at the server: %v", gone, got)
		}
	})
}
