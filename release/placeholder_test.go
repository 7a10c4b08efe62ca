package release_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/release"
)

// ask is request with more than a key.
func (e *env) ask(t testing.TB, actor release.Actor, in release.RequestInput) locksteward.Request {
	t.Helper()
	in.Target, in.Reason = target, "the queue stands still"
	r, err := e.service.Request(t.Context(), actor, in)
	if err != nil {
		t.Fatalf("request: %v", err)
	}
	return r
}

// TestLockDelay: nobody gets the lock until its time is over, and then who waits
// is woken, also by an agent that was started meanwhile.
func TestLockDelay(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	key := "lock:delay:1"
	e.do(t, "hset", key, redissonField, "1")
	e.do(t, "pexpire", key, minute)
	waiter := e.rdb.Subscribe(t.Context(), "redisson_lock__channel:{"+key+"}")
	defer waiter.Close()
	if _, err := waiter.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := e.approve(t, ben, e.request(t, ana, key))
	e.want(t, r, locksteward.RequestReleased)
	if !strings.Contains(r.Outcome, "nobody gets it for 1m0s") {
		t.Errorf("outcome %q", r.Outcome)
	}
	fields := e.rdb.HGetAll(t.Context(), key).Val()
	if len(fields) != 1 || fields[redissonField] != "" {
		t.Fatalf("there stands %v", fields)
	}
	if ttl := e.rdb.PTTL(t.Context(), key).Val(); ttl <= time.Minute || ttl > 2*time.Minute {
		t.Errorf("its safety net is %s", ttl)
	}
	// It is nobody's lock, so nobody can ask for its release.
	_, err := e.service.Request(t.Context(), ana, release.RequestInput{Target: target, Key: key, Reason: "x"})
	wantError(t, err, locksteward.ErrNotFound)

	e.clock.add(59 * time.Second)
	e.newService(t, release.Config{})
	if err := e.service.EndPlaceholders(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !e.exists(t, key) {
		t.Fatal("the delay ended too early")
	}
	e.do(t, "pexpire", key, 5*minute) // a renewer that does not compare
	e.clock.add(time.Second)
	if err := e.service.EndPlaceholders(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e.exists(t, key) {
		t.Error("the delay did not end")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	m, err := waiter.ReceiveMessage(ctx)
	if err != nil || m.Payload != "0" {
		t.Errorf("waiter got %v, %v", m, err)
	}
	list, err := e.store.RequestsForKey(t.Context(), target, 0, key, 10)
	if err != nil || len(list) != 2 || list[0].Evidence.Act != locksteward.ActLift || list[0].State != locksteward.RequestReleased || list[0].Evidence.Of != r.ID {
		t.Errorf("requests %+v, %v", list, err)
	}
	if err := e.service.EndPlaceholders(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestEndOfADelayThatWasInterrupted: kill -9 anywhere in it, and it ends all the
// same, once.
func TestEndOfADelayThatWasInterrupted(t *testing.T) {
	t.Parallel()
	for _, stage := range []string{"before", "after"} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			key := "lock:delay:1"
			e.do(t, "set", key, uuid, "px", minute)
			e.approve(t, ben, e.request(t, ana, key))
			e.clock.add(time.Minute)
			e.exec.set(func(g *gate) { g.loseBefore, g.loseAfter = stage == "before", stage == "after" })
			if err := e.service.EndPlaceholders(t.Context()); err != nil {
				t.Fatal(err)
			}
			e.exec.set(func(g *gate) { g.loseBefore, g.loseAfter = false, false })
			if stage == "after" {
				e.do(t, "set", key, "the next holder", "px", minute)
			}
			e.newService(t, release.Config{})
			for range 2 {
				if err := e.service.Recover(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := e.service.EndPlaceholders(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if value, err := e.rdb.Get(t.Context(), key).Result(); stage == "after" && value != "the next holder" || stage == "before" && err != redis.Nil {
				t.Errorf("there stands %q, %v", value, err)
			}
		})
	}
}

func TestTakeOver(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	key := "lock:order:1"
	e.do(t, "set", key, uuid, "px", minute)
	before := e.rdb.Dump(t.Context(), key).Val()
	r := e.ask(t, ana, release.RequestInput{Key: key, TakeOver: 15 * time.Minute})
	if r.Evidence.Act != locksteward.ActTakeOver || r.Evidence.Placeholder != 15*time.Minute {
		t.Fatalf("evidence %+v", r.Evidence)
	}
	r = e.approve(t, ben, r)
	e.want(t, r, locksteward.RequestReleased)
	if !strings.HasPrefix(r.Outcome, "Taken over") || e.rdb.SetNX(t.Context(), key, "x", time.Minute).Val() {
		t.Errorf("outcome %q, or somebody got it", r.Outcome)
	}
	// The old holder can be put back,
	u, err := e.service.Undo(t.Context(), ben, r.ID, "it works after all")
	if err != nil {
		t.Fatal(err)
	}
	e.want(t, u, locksteward.RequestReleased)
	if e.rdb.Dump(t.Context(), key).Val() != before {
		t.Error("the old holder is not back")
	}
	e.clock.add(time.Hour)
	if err := e.service.EndPlaceholders(t.Context()); err != nil || !e.exists(t, key) {
		t.Errorf("an undone take-over ended something: %v", err)
	}
	// or the take-over ended before its time.
	e.do(t, "set", key, uuid, "px", minute)
	r = e.approve(t, ben, e.ask(t, ana, release.RequestInput{Key: key, TakeOver: 15 * time.Minute}))
	_, err = e.service.Lift(t.Context(), ana, r.ID, "looked")
	wantError(t, err, locksteward.ErrRefused, "approver")
	l, err := e.service.Lift(t.Context(), ben, r.ID, "looked")
	if err != nil {
		t.Fatal(err)
	}
	e.want(t, l, locksteward.RequestReleased)
	if e.exists(t, key) {
		t.Error("it is still there")
	}
}

func TestStandIsRefused(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	zero := time.Duration(0)
	e.do(t, "hset", "lock:delay:forever", redissonField, "1") // its waiters sleep for ever
	_, err := e.service.Request(t.Context(), ana, release.RequestInput{Target: target, Key: "lock:delay:forever", Reason: "x"})
	wantError(t, err, locksteward.ErrRefused, "lock-delay", "has none")
	r := e.ask(t, ana, release.RequestInput{Key: "lock:delay:forever", LockDelay: &zero})
	if r.Evidence.Placeholder != 0 {
		t.Errorf("evidence %+v", r.Evidence)
	}
	e.do(t, "set", "lock:order:python", "q8Zt4vN1xKp0Rw7LmB3yHs2U", "px", minute)
	for _, in := range []release.RequestInput{
		{Key: "lock:order:python", TakeOver: -time.Second},
		{Key: "lock:order:python", TakeOver: 25 * time.Hour},
		{Key: "lock:order:python", TakeOver: time.Millisecond},
	} {
		in.Target, in.Reason = target, "x"
		_, err := e.service.Request(t.Context(), ana, in)
		wantError(t, err, locksteward.ErrInvalid, "take-over")
	}
}

// TestRunEndsADelayOnTime: not at the next of its rounds, but when it is due.
func TestRunEndsADelayOnTime(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.clock.real()
	key := "lock:order:1"
	e.do(t, "set", key, uuid, "px", minute)
	delay := time.Second
	e.approve(t, ben, e.ask(t, ana, release.RequestInput{Key: key, LockDelay: &delay}))
	<-e.finals
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.service.Run(ctx) }()
	r := <-e.finals
	if r.Evidence.Act != locksteward.ActLift || r.State != locksteward.RequestReleased {
		t.Errorf("%s of %s", r.State, r.Evidence.Act)
	}
	if late := r.FinishedAt.Sub(r.CreatedAt); late > 2*time.Second {
		t.Errorf("it took %s", late)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestForgedPlaceholder: a placeholder keeps a lock out of sight under the key, and for
// the time, of the release that put it there, also after a restart. Another client's,
// whatever request it names, is a lock that nobody can ask to release.
func TestForgedPlaceholder(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	delayed, forged := "lock:delay:2", "lock:delay:3"
	e.do(t, "set", delayed, "7c9e6679-7425-40de-944b-e07fc1f90ae7", "px", minute)
	r := e.approve(t, ben, e.ask(t, ana, release.RequestInput{Key: delayed, LockDelay: new(time.Minute)}))
	e.want(t, r, locksteward.RequestReleased)
	placeholder := e.rdb.Get(t.Context(), delayed).Val()
	read := func(key string) (locksteward.Lock, error) { return e.locks.read(t.Context(), key) }
	if l, err := read(delayed); err == nil {
		t.Errorf("what the release put in the lock's place is a lock: %+v", l)
	}

	e.do(t, "set", forged, placeholder, "px", minute)
	l, err := read(forged)
	if err != nil || l.Kind != locksteward.KindLock || l.TokenKind != locksteward.UnverifiedPlaceholder {
		t.Fatalf("another client's is %+v, %v", l, err)
	}
	_, err = e.service.Request(t.Context(), ana, release.RequestInput{Target: target, Key: forged, Reason: "x"})
	wantError(t, err, locksteward.ErrRefused)
	if !strings.Contains(err.Error(), "marked as the placeholder of a release") {
		t.Errorf("refused without the reason: %v", err)
	}
	if preview, err := e.exec.Preview(t.Context(), locksteward.Request{ID: "r-x", Evidence: locksteward.Evidence{
		Target: target, Key: forged, Type: l.Type, Library: l.Library, TokenDigest: l.TokenDigest, ExpireAt: l.ExpireAt, Count: l.Count,
	}}); err != nil || preview.Refusal == nil {
		t.Errorf("the preview refuses nothing: %+v, %v", preview, err)
	}

	e.newService(t, release.Config{})
	if _, err := read(delayed); err != nil {
		t.Errorf("before the store is read it is unverified: %v", err)
	}
	if err := e.service.Recall(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l, err := read(delayed); err == nil {
		t.Errorf("after a restart it is a lock: %+v", l)
	}

	// Its time is over: the same value is another client's from then on.
	e.clock.add(2 * time.Minute)
	if err := e.service.EndPlaceholders(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e.exists(t, delayed) {
		t.Fatal("the delay did not end")
	}
	e.clock.add(2 * time.Minute)
	e.do(t, "set", delayed, placeholder, "px", minute)
	if l, err := read(delayed); err != nil || l.TokenKind != locksteward.UnverifiedPlaceholder {
		t.Errorf("put back by another client: %+v, %v", l, err)
	}
}
