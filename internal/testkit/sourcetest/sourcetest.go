// Package sourcetest is the conformance suite of lock stores: what every [source.Source]
// and its [source.Releaser] must do, shown on a real store.
package sourcetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
)

// Store is a lock store under test, as its applications and operators use it. Names begin
// with "lock:", or with what its Prefix says before that.
type Store interface {
	// Source returns a source of the store, whose connections end with the test.
	Source(t testing.TB) source.Source
	// Releaser returns the store's releaser; nil if locks cannot be released.
	Releaser(t testing.TB) source.Releaser
	// Take gives a lock to a new hold, even if another one has it, that ends by itself after ttl if the store has leases; 0 is never.
	Take(t testing.TB, name string, ttl time.Duration)
	// Free ends the hold as its holder does.
	Free(t testing.TB, name string)
	// Held reports whether the hold that Take gave last still has the lock.
	Held(t testing.TB, name string) bool
}

// Prefixer is a store whose names begin with a prefix, as paths do with "/".
type Prefixer interface{ Prefix() string }

// in returns the name of a lock of the store.
func in(store Store, name string) string {
	if p, ok := store.(Prefixer); ok {
		return p.Prefix() + name
	}
	return name
}

// Restarter is a store whose server can be killed and started again.
type Restarter interface{ Restart(t testing.TB) }

// Cutter is a store that can close the connections of its clients.
type Cutter interface{ Cut(t testing.TB) }

// Refuser is a store with users who may not read it.
type Refuser interface {
	// Refused returns sources that cannot log in or lack a right, by what is wrong, and the secrets that no
	// reason may contain.
	Refused(t testing.TB) (sources map[string]source.Source, secrets []string)
}

// soon is how long anything may take on a loaded machine.
const soon = 30 * time.Second

// Conformance runs the suite on stores that open starts, one for each test. Races is how
// often a release races against a new hold.
func Conformance(t *testing.T, races int, open func(t testing.TB) Store) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Store){
		"a lock is seen by one sweep, and its end by the next": sweepSees,
		"a live lock never ends":                               liveLocksStay,
		"a direct read says what is there":                     readSays,
		"changes are passed between sweeps":                    watchSees,
		"a pause asks nothing":                                 pauseHolds,
		"a restart and a cut connection are survived":          failuresAreSurvived,
		"a refusal has a plain reason":                         refusalsAreExplained,
		"a release frees one hold or nothing":                  func(t *testing.T, s Store) { releaseIsExact(t, s, races) },
		"a release runs once":                                  releaseRunsOnce,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// scan returns a scanner over the store.
func scan(t testing.TB, store Store, src source.Source) *scanner.Scanner {
	t.Helper()
	classes, err := class.NewSet([]class.Class{{Name: "all", Match: []string{in(store, "lock:*")}}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := scanner.Config{NoThrottle: true, Timeout: soon}
	s, err := scanner.New(zaptest.NewLogger(t), locksteward.Target{Name: "t"}, src, classes, cfg, scanner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// complete makes a sweep that must be complete.
func complete(t testing.TB, s *scanner.Scanner) locksteward.Sweep {
	t.Helper()
	sweep, err := s.Sweep(t.Context())
	if err != nil || !sweep.Complete() {
		t.Fatalf("complete %v: %+v, %v", sweep.Complete(), sweep.Masters, err)
	}
	return sweep
}

func find(locks []locksteward.Lock, name string) *locksteward.Lock {
	i := slices.IndexFunc(locks, func(l locksteward.Lock) bool { return l.Key == name })
	if i < 0 {
		return nil
	}
	return &locks[i]
}

func sweepSees(t *testing.T, store Store) {
	src := store.Source(t)
	s, lifetimes := scan(t, store, src), src.Traits().Lifetimes
	store.Take(t, in(store, "lock:lease"), time.Hour)
	store.Take(t, in(store, "lock:for-ever"), 0)
	first := complete(t, s)
	lease, persistent := find(first.Locks, in(store, "lock:lease")), find(first.Locks, in(store, "lock:for-ever"))
	if lease == nil || persistent == nil || len(first.Locks) != 2 {
		t.Fatalf("seen %+v", first.Locks)
	}
	if !slices.Contains(lifetimes, lease.Lifetime) || !slices.Contains(lifetimes, persistent.Lifetime) {
		t.Errorf("lifetimes %q and %q, the store has %q", lease.Lifetime, persistent.Lifetime, lifetimes)
	}
	if slices.Contains(lifetimes, locksteward.LifetimeLease) && (lease.Lifetime != locksteward.LifetimeLease || lease.TTL <= 59*time.Minute || lease.TTL > time.Hour) {
		t.Errorf("the lease is a %s with TTL %s", lease.Lifetime, lease.TTL)
	}
	if persistent.Lifetime == locksteward.LifetimeLease || persistent.TTL != locksteward.NoExpiry {
		t.Errorf("the lock without a lease is a %s with TTL %s", persistent.Lifetime, persistent.TTL)
	}
	if lease.TokenDigest == "" || lease.TokenDigest == persistent.TokenDigest || lease.Class != "all" {
		t.Errorf("seen %+v", lease)
	}
	second := complete(t, s)
	if again := find(second.Locks, in(store, "lock:lease")); again == nil || again.TokenDigest != lease.TokenDigest || !again.History.FirstSeen.Equal(lease.History.FirstSeen) || again.History.Looks != 2 {
		t.Errorf("the same hold is %+v", again)
	}
	store.Take(t, in(store, "lock:lease"), time.Hour) // another hold
	store.Free(t, in(store, "lock:for-ever"))
	third := complete(t, s)
	if len(third.Locks) != 1 || third.Locks[0].TokenDigest == lease.TokenDigest {
		t.Errorf("after the ends: %+v", third.Locks)
	}
	var ended []string
	for _, e := range third.Endings {
		ended = append(ended, e.Lock.Key)
	}
	slices.Sort(ended)
	if !slices.Equal(ended, []string{in(store, "lock:for-ever"), in(store, "lock:lease")}) {
		t.Errorf("ended %q", ended)
	}
}

func liveLocksStay(t *testing.T, store Store) {
	s := scan(t, store, store.Source(t))
	const live = 50
	for i := range live {
		store.Take(t, in(store, fmt.Sprintf("lock:live:%d", i)), time.Hour)
	}
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	others.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			name := in(store, fmt.Sprintf("lock:other:%d", i%20))
			store.Take(t, name, time.Minute)
			store.Free(t, name)
		}
	})
	for range 20 {
		sweep := complete(t, s)
		for _, e := range sweep.Endings {
			if strings.HasPrefix(e.Lock.Key, in(store, "lock:live:")) {
				t.Errorf("%s has ended: %s", e.Lock.Key, e.How)
			}
		}
		for i := range live {
			if find(sweep.Locks, in(store, fmt.Sprintf("lock:live:%d", i))) == nil {
				t.Errorf("lock:live:%d is not seen", i)
			}
		}
	}
	stop()
	others.Wait()
}

func readSays(t *testing.T, store Store) {
	s := scan(t, store, store.Source(t))
	store.Take(t, in(store, "lock:a"), time.Hour)
	got, err := s.Table().Refresh(t.Context(), in(store, "lock:a"))
	if err != nil || got.Key != in(store, "lock:a") || got.TokenDigest == "" {
		t.Errorf("read %+v, %v", got, err)
	}
	store.Free(t, in(store, "lock:a"))
	if _, err := s.Table().Refresh(t.Context(), in(store, "lock:a")); !errors.Is(err, locksteward.ErrNotFound) {
		t.Errorf("a free lock: %v", err)
	}
	store.Take(t, in(store, "lock:a"), time.Hour)
	update, err := s.Recheck(t.Context(), []locksteward.Lock{got, {Observation: locksteward.Observation{Key: in(store, "lock:b")}}})
	if err != nil || len(update.Locks) != 1 || update.Locks[0].TokenDigest == got.TokenDigest {
		t.Errorf("read again %+v, %v", update, err)
	}
}

func watchSees(t *testing.T, store Store) {
	src := store.Source(t)
	if !src.Traits().Watch {
		t.Skip("the store has no watch")
	}
	s := scan(t, store, src)
	complete(t, s)
	var mu sync.Mutex
	var taken, ended bool
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- s.Watch(ctx, func(_ context.Context, u locksteward.Update) {
			mu.Lock()
			defer mu.Unlock()
			taken = taken || find(u.Locks, in(store, "lock:watched")) != nil
			ended = ended || slices.ContainsFunc(u.Endings, func(e locksteward.Ending) bool { return e.Lock.Key == in(store, "lock:watched") })
		})
	}()
	s.AwaitWatch(ctx)
	seen := func(what *bool) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return *what
		}
	}
	store.Take(t, in(store, "lock:watched"), time.Hour)
	testredis.Eventually(t, soon, seen(&taken), "a new lock is not passed")
	store.Free(t, in(store, "lock:watched"))
	testredis.Eventually(t, soon, seen(&ended), "its end is not passed")
	stop()
	if err := <-done; err != nil {
		t.Errorf("watch: %v", err)
	}
}

func pauseHolds(t *testing.T, store Store) {
	s := scan(t, store, store.Source(t))
	s.Pause(locksteward.Pause{By: "test"})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if sweep, err := s.Sweep(ctx); err == nil || sweep.Keys() != 0 {
		t.Errorf("swept %d keys while paused, %v", sweep.Keys(), err)
	}
	if !s.Resume() {
		t.Error("it was not paused")
	}
	complete(t, s)
}

func failuresAreSurvived(t *testing.T, store Store) {
	restarter, restarts := store.(Restarter)
	cutter, cuts := store.(Cutter)
	if !restarts && !cuts {
		t.Skip("the store has no server")
	}
	s := scan(t, store, store.Source(t))
	store.Take(t, in(store, "lock:before"), time.Hour)
	complete(t, s)
	recovered := func(name string) {
		t.Helper()
		store.Take(t, name, time.Hour)
		testredis.Eventually(t, soon, func() bool {
			sweep, _ := s.Sweep(t.Context())
			return sweep.Complete() && find(sweep.Locks, name) != nil
		}, "it is not swept again")
	}
	if cuts {
		cutter.Cut(t)
		if sweep, _ := s.Sweep(t.Context()); slices.ContainsFunc(sweep.Endings, func(e locksteward.Ending) bool { return e.Lock.Key == in(store, "lock:before") }) {
			t.Error("a cut connection ended a lock")
		}
		recovered(in(store, "lock:cut"))
	}
	if restarts {
		restarter.Restart(t)
		recovered(in(store, "lock:restarted"))
	}
}

func refusalsAreExplained(t *testing.T, store Store) {
	refuser, ok := store.(Refuser)
	if !ok {
		t.Skip("the store refuses nobody")
	}
	sources, secrets := refuser.Refused(t)
	for name, src := range sources {
		s := scan(t, store, src)
		sweep, err := s.Sweep(t.Context())
		reason := s.State().Reason
		if err == nil || sweep.Complete() || reason == "" {
			t.Errorf("%s: complete %v, reason %q, %v", name, sweep.Complete(), reason, err)
		}
		for _, secret := range secrets {
			if strings.Contains(reason, secret) || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the reason has a secret: %q, %v", name, reason, err)
			}
		}
	}
}

// frozen is a request for the release of the hold that has a lock now.
func frozen(t testing.TB, r source.Releaser, name string) locksteward.Request {
	t.Helper()
	req := locksteward.Request{ID: "r-" + rand.Text(), Evidence: locksteward.Evidence{Key: name}}
	seen, err := r.Preview(t.Context(), req)
	if err != nil || !seen.Found {
		t.Fatalf("preview: found %v, %v", seen.Found, err)
	}
	req.Evidence = seen.Now
	return req
}

func releaseIsExact(t *testing.T, store Store, races int) {
	r := store.Releaser(t)
	if r == nil {
		t.Skip("locks of the store cannot be released")
	}
	outcomes := map[locksteward.RequestState]int{}
	for i := range races {
		name := in(store, "lock:raced")
		store.Take(t, name, time.Hour)
		req := frozen(t, r, name)
		if req.Evidence.Identity != locksteward.IdentityStrong {
			t.Fatalf("identity %s, want strong", req.Evidence.Identity)
		}
		var next sync.WaitGroup
		retaken := i%3 != 0
		if retaken {
			next.Go(func() {
				store.Free(t, name)
				store.Take(t, name, time.Hour)
			})
		}
		got, err := r.Release(t.Context(), req)
		next.Wait()
		if err != nil {
			t.Fatal(err)
		}
		outcomes[got.State]++
		if got.State == locksteward.RequestFailed || got.State == locksteward.RequestUnknown {
			t.Logf("race %d: %s: %s", i, got.State, got.Reason)
		}
		switch held := store.Held(t, name); {
		case retaken && !held:
			t.Fatalf("race %d: %s, and the next hold is gone", i, got.State)
		case !retaken && (held || got.State != locksteward.RequestReleased):
			t.Fatalf("race %d: %s, held %v", i, got.State, held)
		}
	}
	t.Logf("%v", outcomes)
	if outcomes[locksteward.RequestReleased] == 0 || outcomes[locksteward.RequestFailed]+outcomes[locksteward.RequestUnknown] > 0 {
		t.Errorf("outcomes %v", outcomes)
	}
}

func releaseRunsOnce(t *testing.T, store Store) {
	r := store.Releaser(t)
	if r == nil {
		t.Skip("locks of the store cannot be released")
	}
	store.Take(t, in(store, "lock:once"), time.Hour)
	req := frozen(t, r, in(store, "lock:once"))
	if got, err := r.Release(t.Context(), req); err != nil || got.State != locksteward.RequestReleased {
		t.Fatalf("%s, %v", got.State, err)
	}
	store.Take(t, in(store, "lock:once"), time.Hour)
	if got, err := r.Resolve(t.Context(), req); err != nil || got.State != locksteward.RequestReleased {
		t.Errorf("resolved as %s, %v", got.State, err)
	}
	if got, err := r.Release(t.Context(), req); err == nil && got.State == locksteward.RequestReleased && got.ConfirmedBy != source.ConfirmedByRecord {
		t.Errorf("released again: %+v", got)
	}
	if !store.Held(t, in(store, "lock:once")) {
		t.Error("the next hold is gone")
	}
	// What did not run never will, once it was resolved.
	late := frozen(t, r, in(store, "lock:once"))
	if got, err := r.Resolve(t.Context(), late); err != nil || got.State == locksteward.RequestReleased {
		t.Errorf("resolved as %s, %v", got.State, err)
	}
	if got, err := r.Release(t.Context(), late); err == nil && got.State == locksteward.RequestReleased || !store.Held(t, in(store, "lock:once")) {
		t.Errorf("a withdrawn release ran: %s, %v", got.State, err)
	}
}
