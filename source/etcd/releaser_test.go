package etcdsource_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source"
	etcdsource "github.com/locksteward/locksteward/source/etcd"
)

// Which request of a release deletes: the lock, its lease if it has one, and the lease of
// the record come before it.
const (
	transaction           = 4
	transactionPersistent = 3
)

// releaser returns one that calls at before its request number nth.
func (s *etcdStore) releaser(t testing.TB, nth int, at func()) *etcdsource.Releaser {
	t.Helper()
	r, err := etcdsource.OpenReleaser(source.Login{URL: "etcd://" + s.proxy.Addr()}, etcdsource.Options{Digest: s.digest})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	asked := 0
	r.Before(func(ctx context.Context) error {
		mu.Lock()
		asked++
		now := asked == nth
		mu.Unlock()
		if now {
			at()
		}
		return ctx.Err()
	})
	return r
}

// freeze is a request for the hold that has a lock now.
func (s *etcdStore) freeze(t testing.TB, id, name string, change func(*locksteward.Evidence)) locksteward.Request {
	t.Helper()
	seen, err := s.Releaser(t).Preview(t.Context(), locksteward.Request{Evidence: locksteward.Evidence{Key: name}})
	if err != nil || !seen.Found {
		t.Fatalf("preview %+v, %v", seen, err)
	}
	if change != nil {
		change(&seen.Now)
	}
	return locksteward.Request{ID: id, Evidence: seen.Now}
}

// A hold that comes between the reading and the transaction is not touched.
func TestReleaseInTheMomentOfARetake(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	for name, c := range map[string]struct {
		at   func()
		want locksteward.RequestState
	}{
		"another holder": {func() { store.Take(t, "lock:another holder", time.Hour) }, locksteward.RequestAlreadyGone},
		"nobody":         {func() { store.Free(t, "lock:nobody") }, locksteward.RequestAlreadyGone},
		"the same key again": {func() {
			store.Free(t, "lock:the same key again")
			store.Take(t, "lock:the same key again", 0)
		}, locksteward.RequestChanged},
		"another lease": {func() {
			lease, err := store.client.Grant(t.Context(), 60)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := store.client.Put(t.Context(), "lock:another lease", "", clientv3.WithLease(lease.ID)); err != nil {
				t.Error(err)
			}
		}, locksteward.RequestChanged},
		"the value alone": {func() {
			if _, err := store.client.Put(t.Context(), "lock:the value alone", "new"); err != nil {
				t.Error(err)
			}
		}, locksteward.RequestReleased},
	} {
		lock := "lock:" + name
		ttl, nth := time.Duration(0), transactionPersistent
		if c.want == locksteward.RequestAlreadyGone {
			ttl, nth = time.Hour, transaction
		}
		store.Take(t, lock, ttl)
		req := store.freeze(t, "r-"+name, lock, nil)
		out, err := store.releaser(t, nth, c.at).Release(t.Context(), req)
		if err != nil || out.State != c.want {
			t.Errorf("%s: %+v, %v, want %s", name, out, err, c.want)
		}
		if gone := name == "nobody" || c.want == locksteward.RequestReleased; !gone && name != "another lease" && !store.Held(t, lock) {
			t.Errorf("%s: the hold is gone", name)
		}
	}
}

// Takes at any moment of a release: what was taken last is never freed.
func TestReleaseRacesAtAnyMoment(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	outcomes := map[locksteward.RequestState]int{}
	for range 300 {
		store.Take(t, "lock:raced", 0)
		req := store.freeze(t, "r-"+time.Now().String(), "lock:raced", nil)
		var next sync.WaitGroup
		r := store.releaser(t, transactionPersistent, func() {
			next.Go(func() {
				wait := time.NewTimer(time.Duration(rand.Int64N(int64(500 * time.Microsecond))))
				<-wait.C
				store.Take(t, "lock:raced", 0)
			})
		})
		out, err := r.Release(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		next.Wait()
		if outcomes[out.State]++; !store.Held(t, "lock:raced") {
			t.Fatalf("%+v, and the next hold is gone", out)
		}
	}
	if outcomes[locksteward.RequestReleased] == 0 || outcomes[locksteward.RequestChanged]+outcomes[locksteward.RequestAlreadyGone] == 0 {
		t.Errorf("one side won always: %v", outcomes)
	}
	t.Log(outcomes)
}

// Where the answer is lost, the record says whether the lock was freed.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose func(p *testredis.Proxy)
		want locksteward.RequestState
		by   source.Confirmation
	}{
		"done, not told": {func(p *testredis.Proxy) { p.DropReplies(true) }, locksteward.RequestReleased, source.ConfirmedByRecord},
		"never arrived":  {func(p *testredis.Proxy) { p.Cut() }, locksteward.RequestFailed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newStore(t)
			store.Take(t, "lock:a", time.Hour)
			req := store.freeze(t, "r-1", "lock:a", nil)
			freed := store.client.Watch(t.Context(), store.took["lock:a"].key)
			var healed sync.WaitGroup
			r := store.releaser(t, transaction, func() {
				c.lose(store.proxy)
				healed.Go(func() {
					if c.want == locksteward.RequestReleased {
						<-freed
					}
					wait := time.NewTimer(500 * time.Millisecond)
					<-wait.C
					store.proxy.Heal()
				})
			})
			out, err := r.Release(t.Context(), req)
			healed.Wait()
			if err != nil || out.State != c.want || out.ConfirmedBy != c.by {
				t.Errorf("%+v, %v", out, err)
			}
			if store.Held(t, "lock:a") != (c.want == locksteward.RequestFailed) {
				t.Error("the outcome is not what happened")
			}
			// Whatever it was, it does not run again.
			store.Take(t, "lock:a", time.Hour)
			if again, err := r.Resolve(t.Context(), req); err != nil || again.State == locksteward.RequestReleased != (c.want == locksteward.RequestReleased) {
				t.Errorf("resolved as %+v, %v", again, err)
			}
		})
	}
}

// The first of a queue is freed, and the next one has the lock; the freed process, if it
// lives, loses nothing else.
func TestReleaseOfAQueue(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	dead := store.session(t, 60)
	first, other := concurrency.NewMutex(dead, "lock:q"), concurrency.NewMutex(dead, "lock:other")
	second := concurrency.NewMutex(store.session(t, 60), "lock:q")
	for _, m := range []*concurrency.Mutex{first, other} {
		if err := m.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got := make(chan error, 1)
	go func() { got <- second.Lock(t.Context()) }()
	s := scan(t, store.Source(t), "lock:*")
	testredis.Eventually(t, soon, func() bool { return locks(t, s)["lock:q"].Waiters == 1 }, "it does not wait")
	req := store.freeze(t, "r-1", "lock:q", nil)
	seen, err := store.Releaser(t).Preview(t.Context(), req)
	if err != nil || len(seen.Differences) > 0 || seen.Refusal != nil || len(seen.Keys) != 2 || seen.Keys[0] != first.Key() || !strings.Contains(seen.Script, "first of those who wait") {
		t.Errorf("preview %+v, %v", seen, err)
	}
	out, err := store.Releaser(t).Release(t.Context(), req)
	if err != nil || out.State != locksteward.RequestReleased || out.WaitersWoken != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	if err := <-got; err != nil {
		t.Errorf("the next one: %v", err)
	}
	if seen := locks(t, s); len(seen) != 2 {
		t.Errorf("%v", seen)
	}
	record, err := store.client.Get(t.Context(), "locksteward/releases/r-1")
	if err != nil || len(record.Kvs) != 1 || record.Kvs[0].Lease == 0 {
		t.Errorf("the record %+v, %v", record, err)
	}
}

// Whoever renews is alive: a lease that moved is another state than the approved one, one
// that did not is the same though etcd tells whole seconds.
func TestReleaseComparesTheLease(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	store.put(t, "lock:a", "", 600)
	req := store.freeze(t, "r-1", "lock:a", func(e *locksteward.Evidence) { e.ExpireAt -= 60_000 })
	if out, err := store.Releaser(t).Release(t.Context(), req); err != nil || out.State != locksteward.RequestChanged || len(out.Differences) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	req.Evidence.HolderAlive = true
	if out, err := store.Releaser(t).Release(t.Context(), req); err != nil || out.State != locksteward.RequestReleased {
		t.Errorf("%+v, %v", out, err)
	}
	store.put(t, "lock:b", "", 600)
	req = store.freeze(t, "r-2", "lock:b", func(e *locksteward.Evidence) { e.ExpireAt += 1000 })
	if out, err := store.Releaser(t).Release(t.Context(), req); err != nil || out.State != locksteward.RequestReleased {
		t.Errorf("%+v, %v", out, err)
	}
}

// What cannot be done is refused in plain words.
func TestReleaseRefuses(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	store.Take(t, "lock:a", time.Hour)
	for name, change := range map[string]func(*locksteward.Evidence){
		"a take-over": func(e *locksteward.Evidence) { e.Act, e.Placeholder = locksteward.ActTakeOver, time.Minute },
		"a delay":     func(e *locksteward.Evidence) { e.Placeholder = time.Minute },
		"an undo":     func(e *locksteward.Evidence) { e.Act = locksteward.ActUndo },
		"no identity": func(e *locksteward.Evidence) { e.TokenDigest = "" },
	} {
		out, err := store.Releaser(t).Release(t.Context(), store.freeze(t, "r-"+name, "lock:a", change))
		if err != nil || out.State != locksteward.RequestFailed || out.Reason == "" || !store.Held(t, "lock:a") {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
	limits := store.Releaser(t).Limits(locksteward.Evidence{Library: "unknown"})
	if !errors.Is(limits.Release, locksteward.ErrRefused) || limits.Undo == "" || limits.Placeholder == "" || limits.Decision == "" {
		t.Errorf("%+v", limits)
	}
	// An etcd that is away is no outcome of a lock.
	store.server.Kill()
	req := locksteward.Request{ID: "r", Evidence: locksteward.Evidence{Key: "lock:a", TokenDigest: "x"}}
	if out, err := store.Releaser(t).Release(t.Context(), req); err != nil || out.State != locksteward.RequestFailed || !strings.Contains(out.Reason, "nobody listens") {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := store.Releaser(t).Resolve(t.Context(), req); err == nil {
		t.Error("it is resolved by nobody")
	}
	if _, err := store.Releaser(t).Preview(t.Context(), req); err == nil {
		t.Error("it is previewed by nobody")
	}
}
