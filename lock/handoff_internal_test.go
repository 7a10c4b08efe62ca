package lock

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/internal/push"
	"github.com/locksteward/locksteward/lock/internal/transport"
	"github.com/locksteward/locksteward/lock/record"
)

// spy counts scripts, and lets a test step in before one is sent.
type spy struct {
	evaler
	before func(s *transport.Script, args []any) error

	mu       sync.Mutex // guards the following
	count    map[*transport.Script]int
	answered map[*transport.Script]int
}

func (s *spy) Eval(ctx context.Context, sc *transport.Script, keys []string, args []any) (any, error) {
	s.mu.Lock()
	if s.count == nil {
		s.count, s.answered = map[*transport.Script]int{}, map[*transport.Script]int{}
	}
	s.count[sc]++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.answered[sc]++
	}()
	if s.before != nil {
		if err := s.before(sc, plain(args)); err != nil {
			return nil, err
		}
	}
	return s.evaler.Eval(ctx, sc, keys, args)
}

func (s *spy) of(sc *transport.Script) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[sc]
}

// finished returns how many calls were answered: another may be on its way.
func (s *spy) finished(sc *transport.Script) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered[sc]
}

// confirms says that a call of renew.lua is a confirmation.
func confirms(s *transport.Script, args []any) bool { return s == renewScript && args[4] == int64(0) }

// handover is a lock with a holder and one that waits for it in the queue.
type handover struct {
	rdb    *redis.Client
	holder *Handle
	spy    *spy // of who waits
	waiter *Client
	got    chan *Handle
	failed chan error
	stop   context.CancelFunc
}

var queueLease = Lease{TTL: time.Minute, Class: "c", Purpose: "p"}

func newHandover(t *testing.T, lease Lease, before func(s *transport.Script, args []any) error) *handover {
	t.Helper()
	h := &handover{rdb: testredis.Start(t).Client(t), got: make(chan *Handle, 1), failed: make(chan error, 1)}
	first := shifted(t, h.rdb, 0)
	h.waiter = shifted(t, h.rdb, 0)
	// Each process has a channel of its own, from its first acquire on.
	warm, err := h.waiter.TryAcquire(t.Context(), "warm", lease)
	if err != nil {
		t.Fatal(err)
	}
	if err := warm.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	channel := record.InstanceKey(record.DefaultPrefix, h.waiter.instance)
	testredis.Eventually(t, 10*time.Second, func() bool {
		return h.rdb.PubSubNumSub(context.Background(), channel).Val()[channel] == 1
	}, "the waiter's process listens")
	h.spy = &spy{evaler: h.waiter.db, before: before}
	h.waiter.db = h.spy
	if h.holder, err = first.Acquire(t.Context(), "k", queueLease); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	h.stop = stop
	t.Cleanup(stop)
	go func() {
		handle, err := h.waiter.Acquire(ctx, "k", lease)
		if err != nil {
			h.failed <- err
			return
		}
		h.got <- handle
	}()
	testredis.Eventually(t, 10*time.Second, func() bool {
		waiting, _ := h.waiter.waiters.Len()
		return waiting == 1 && h.spy.finished(acquireScript) > 0
	}, "one waits")
	return h
}

// waiting returns the acquisition id of the one that waits.
func (h *handover) waiting(t *testing.T) string {
	t.Helper()
	return h.rdb.ZRange(t.Context(), record.Companion(record.DefaultPrefix, record.KindQueue, "k"), 0, 0).Val()[0]
}

// release frees the first hold and returns the waiter's.
func (h *handover) release(t *testing.T) *Handle {
	t.Helper()
	if err := h.holder.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case handle := <-h.got:
		return handle
	case err := <-h.failed:
		t.Fatal(err)
	case <-time.After(10 * time.Second):
		t.Fatal("the waiter is never served")
	}
	return nil
}

func holdOf(t *testing.T, rdb *redis.Client, key string) *record.Meta {
	t.Helper()
	text := rdb.Get(context.Background(), record.Companion(record.DefaultPrefix, record.KindHold, key)).Val()
	m, err := record.Decode(text)
	if err != nil {
		t.Errorf("metadata %q: %v", text, err)
	}
	return m
}

func waiterKey(key string) string {
	return record.Companion(record.DefaultPrefix, record.KindWaiter, key)
}

// The release itself gives the lock to the head of the queue: it asks no second
// time, and has all that an acquire of its own would have brought.
func TestReleaseHandsTheLockOver(t *testing.T) {
	t.Parallel()
	for _, noRenew := range []bool{false, true} {
		lease := queueLease
		lease.NoRenew, lease.Trace = noRenew, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		// A busy machine may let the waiter ask by itself, or lose the lock before it is
		// confirmed.
		for try := 1; !handsOver(t, lease); try++ {
			if try == 10 {
				t.Fatal("the release never handed the lock over so that it is confirmed")
			}
		}
	}
}

// handsOver says whether a release handed the lock over and the waiter confirmed it.
func handsOver(t *testing.T, lease Lease) bool {
	h := newHandover(t, lease, nil)
	asked := h.spy.finished(acquireScript)
	second := h.release(t)
	if h.spy.of(acquireScript) > asked {
		return false
	}
	testredis.Eventually(t, 10*time.Second, func() bool { return second.Validity() > 50*time.Second || second.Err() != nil }, "it is confirmed")
	if second.Err() != nil {
		return false
	}
	if left := h.rdb.PTTL(t.Context(), "k").Val(); left < 50*time.Second {
		t.Errorf("lock lasts %s", left)
	}
	m := holdOf(t, h.rdb, "k")
	if m.ID != second.ID() || m.Fence != second.Fence() || m.Fence <= h.holder.Fence() || m.Instance != h.waiter.instance ||
		m.Class != "c" || m.Purpose != "p" || m.TTL != 60_000 || m.Trace != lease.Trace || m.Renewals != 0 || m.Offered != 0 || m.Lost != nil {
		t.Errorf("metadata %+v", m)
	}
	if left := h.rdb.PTTL(t.Context(), record.Companion(record.DefaultPrefix, record.KindHold, "k")).Val(); left < 300*time.Second {
		t.Errorf("metadata last %s", left)
	}
	for _, kind := range []record.Kind{record.KindQueue, record.KindWaiter} {
		if n := h.rdb.Exists(t.Context(), record.Companion(record.DefaultPrefix, kind, "k")).Val(); n != 0 {
			t.Errorf("%s of who has the lock is left", kind)
		}
	}
	if err := second.Release(t.Context()); err != nil {
		t.Error(err)
	}
	return true
}

// What a waiter leaves has a TTL, is gone when it gives up, and hides its value
// from everything but the release.
func TestRecordIsLeftOnlyWhileItWaits(t *testing.T) {
	t.Parallel()
	h := newHandover(t, queueLease, nil)
	left := h.rdb.HGetAll(t.Context(), waiterKey("k")).Val()
	if len(left) != 1 {
		t.Fatalf("%d records", len(left))
	}
	for id, text := range left {
		if !strings.Contains(text, "ls2:"+id+":") {
			t.Error("the record does not have the value of the lock")
		}
		w, err := record.ParseWaiter(text)
		if err != nil || w.Instance != h.waiter.instance {
			t.Errorf("record %+v, %v", w, err)
		}
	}
	if ttl := h.rdb.PTTL(t.Context(), waiterKey("k")).Val(); ttl <= 0 || ttl > 9*time.Second {
		t.Errorf("TTL %s", ttl)
	}
	h.stop()
	if err := <-h.failed; !errors.Is(err, ErrHeld) {
		t.Error(err)
	}
	testredis.Eventually(t, 5*time.Second, func() bool {
		return h.rdb.Exists(context.Background(), waiterKey("k")).Val() == 0
	}, "record is gone")
	if err := h.holder.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// A lock that was handed over and never confirmed is over for its holder before
// the server lets anybody else have it.
func TestUnconfirmedGrantEndsByItself(t *testing.T) {
	t.Parallel()
	h := newHandover(t, queueLease, func(s *transport.Script, args []any) error {
		if confirms(s, args) {
			return errors.New("cut off")
		}
		return nil
	})
	asked := h.spy.finished(acquireScript)
	second := h.release(t)
	if h.spy.of(acquireScript) > asked {
		t.Skip("the machine is too slow: the waiter asked by itself")
	}
	if left := second.Validity(); left > record.Turn {
		t.Errorf("valid for %s without a confirmation", left)
	}
	select {
	case <-second.Context().Done():
	case <-time.After(10 * time.Second):
		t.Fatal("it is believed to be held still")
	}
	lost, ok := errors.AsType[*LostError](context.Cause(second.Context()))
	if !ok || lost.Reason != ReasonExpired && lost.Reason != ReasonPaused {
		t.Errorf("cause %v", context.Cause(second.Context()))
	}
	// The metadata says that it was a hand-off that lapsed, not a hold.
	third, err := shifted(t, h.rdb, 0).Acquire(t.Context(), "k", queueLease)
	if err != nil {
		t.Fatal(err)
	}
	if third.Fence() <= second.Fence() {
		t.Errorf("fence %d after %d", third.Fence(), second.Fence())
	}
	if m := holdOf(t, h.rdb, "k"); m.Lost == nil || m.Lost.ID != second.ID() || !m.Lost.Offered {
		t.Errorf("metadata %+v, want a hand-off that lapsed", m.Lost)
	}
	if err := third.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// A lock that goes before it is confirmed is lost, and the confirmation does not
// bring it back.
func TestGrantLostBeforeItIsConfirmed(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(rdb *redis.Client) error{
		"flushed": func(rdb *redis.Client) error { return rdb.FlushAll(context.Background()).Err() },
		"taken":   func(rdb *redis.Client) error { return rdb.Set(context.Background(), "k", "another", time.Minute).Err() },
		"another type": func(rdb *redis.Client) error {
			return errors.Join(rdb.Del(context.Background(), "k").Err(), rdb.HSet(context.Background(), "k", "a", "b").Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var rdb atomic.Pointer[redis.Client]
			h := newHandover(t, queueLease, func(s *transport.Script, args []any) error {
				if confirms(s, args) {
					return lose(rdb.Load())
				}
				return nil
			})
			rdb.Store(h.rdb)
			second := h.release(t)
			if h.spy.of(acquireScript) > 1 {
				t.Skip("the machine is too slow: the waiter asked by itself")
			}
			select {
			case <-second.Context().Done():
			case <-time.After(10 * time.Second):
				t.Fatal("it is believed to be held still")
			}
			if err := second.Err(); !errors.Is(err, ErrLost) {
				t.Error(err)
			}
			if name == "flushed" {
				if n := h.rdb.Exists(t.Context(), "k").Val(); n != 0 {
					t.Error("the confirmation has made a lock")
				}
			}
		})
	}
}

// A confirmation whose reply is lost is asked for again, and the lock stays.
func TestConfirmationIsRepeated(t *testing.T) {
	t.Parallel()
	// On a busy machine the waiter may ask by itself, or the turn be over before the repetition.
	for range 20 {
		if confirmedAgain(t) {
			return
		}
	}
	t.Error("a confirmation that failed twice was never repeated in time")
}

// confirmedAgain reports whether a hold was confirmed whose first two confirmations failed.
func confirmedAgain(t *testing.T) bool {
	var failed atomic.Int32
	h := newHandover(t, queueLease, func(s *transport.Script, args []any) error {
		if confirms(s, args) && failed.Add(1) <= 2 {
			return context.DeadlineExceeded
		}
		return nil
	})
	second := h.release(t)
	testredis.Eventually(t, 10*time.Second, func() bool { return second.Validity() > 50*time.Second || second.Err() != nil }, "it is confirmed or over")
	kept := second.Err() == nil
	if err := second.Release(t.Context()); err != nil && kept {
		t.Error(err)
	}
	return kept && failed.Load() > 2
}

// Who gives up at the moment in which it is handed the lock gives it back.
func TestGrantToWhoGaveUpIsGivenBack(t *testing.T) {
	t.Parallel()
	// On a busy machine it may be its own turn to look before it gives up.
	for range 20 {
		if giveUpAtTheGrant(t) {
			return
		}
	}
	t.Error("it looked by itself each time")
}

// giveUpAtTheGrant is false if the waiter found the lock by itself, before it gave up.
func giveUpAtTheGrant(t *testing.T) bool {
	h := newHandover(t, queueLease, nil)
	// It does not hear, as if the message came too late.
	h.waiter.waiters.Listen(push.NewWaiter(h.waiting(t)))
	if err := h.holder.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.stop()
	select {
	case handle := <-h.got:
		if err := handle.Release(t.Context()); err != nil {
			t.Error(err)
		}
		return false
	case err := <-h.failed:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	testredis.Eventually(t, 5*time.Second, func() bool { return h.rdb.Exists(context.Background(), "k").Val() == 0 }, "the lock is free")
	return true
}

// Only the word of the last mark is believed, and only while enough is certain.
func TestGrantedMindsMarkAndTime(t *testing.T) {
	t.Parallel()
	// In a bubble no time passes between the mark and the look at it.
	synctest.Test(t, grantedMindsMarkAndTime)
}

func grantedMindsMarkAndTime(t *testing.T) {
	b := newBubble(t)
	now := b.clock.now()
	r := &request{lease: queueLease}
	r.proof = "PROOF"
	r.since = 1
	r.args = make([]any, 6)
	b.attempted(r)
	b.attempted(r)
	if r.nonce != "PROOF2" || r.marked.mono < now.mono {
		t.Errorf("nonce %q, marked %v", r.nonce, r.marked)
	}
	ago := func(d time.Duration) { r.marked = b.clock.now().add(-d) }
	for name, tc := range map[string]struct {
		mark      string
		age, trip time.Duration
		ok        bool
	}{
		"fresh":                  {mark: "PROOF2", ok: true},
		"in time":                {mark: "PROOF2", age: 80 * time.Millisecond, trip: time.Millisecond, ok: true},
		"old":                    {mark: "PROOF2", age: 100 * time.Millisecond},
		"over":                   {mark: "PROOF2", age: time.Minute},
		"far from the server":    {mark: "PROOF2", age: 20 * time.Millisecond, trip: 15 * time.Millisecond},
		"of an earlier attempt":  {mark: "PROOF1"},
		"made up":                {mark: "PROOF"},
		"no word of the release": {},
	} {
		ago(tc.age)
		r.trip = tc.trip
		v, ok := b.granted(r, record.Message{Kind: record.MessageHand, ID: "A", Fence: 7, Nonce: tc.mark})
		if ok != tc.ok {
			t.Errorf("%s: %t", name, ok)
		}
		if ok && (v.sent != r.marked || v.lease != record.Turn || v.fence != 7 || !v.taken) {
			t.Errorf("%s: %+v, counted from before the attempt that left the mark", name, v)
		}
	}
}

// B20d: the next waiter refreshes its record when it is notified that it is next, so
// that a hand-off finds it fresh.
func TestNextWaiterRefreshesItsRecord(t *testing.T) {
	t.Parallel()
	h := newHandover(t, queueLease, nil)
	id := h.waiting(t)
	// A busy machine may be late once, and then it is its turn anyway.
	for try := 0; ; try++ {
		<-time.After(record.Turn/2 + 10*time.Millisecond) // its last attempt is older than half a turn
		asked, notified := h.spy.of(acquireScript), time.Now()
		h.waiter.receive(record.Message{Kind: record.MessageTurn, ID: id, Before: 1}.String())
		for h.spy.of(acquireScript) == asked {
			<-time.After(time.Millisecond)
		}
		if time.Since(notified) < record.Turn/2 {
			break
		}
		if try == 20 {
			t.Fatal("want that it asks again at once")
		}
	}
	if err := h.release(t).Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// B1b: metadata is as the last renewal wrote it, also when one before it comes late.
func TestLateRenewalWritesNothing(t *testing.T) {
	t.Parallel()
	rdb := testredis.Start(t).Client(t)
	h, err := shifted(t, rdb, 0).Acquire(t.Context(), "k", queueLease)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := h.Extend(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	late := record.Meta{V: record.Version, ID: h.ID(), Seq: 1, Renewals: 1}
	keys := []string{"k", record.Companion(record.DefaultPrefix, record.KindHold, "k")}
	reply, err := rdb.Eval(t.Context(), renewText, keys, h.hold.value, 30000, 300000, h.Fence(), 1, -1, late.Tail()).Result()
	if err != nil || reply != int64(1) {
		t.Fatalf("reply %v, %v", reply, err)
	}
	if m := holdOf(t, rdb, "k"); m.Seq != 2 || m.Renewals != 2 {
		t.Errorf("metadata says %+v", m)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
