package scanner_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
	redissource "github.com/locksteward/locksteward/source/redis"
)

// soon is how long a change may take to reach the sink on a loaded machine: far
// below any time between two sweeps, which these tests do not make on their own.
const soon = 15 * time.Second

// reported is what a running watch reported.
type reported struct {
	t testing.TB
	s *scanner.Scanner

	mu       sync.Mutex
	locks    map[string]locksteward.Lock // last word on each
	endings  []locksteward.Ending
	losses   []locksteward.Loss
	waiters  []locksteward.Waiter
	handings int
	// judge, if set before anything happens, gets what is handed on.
	judge func(locksteward.Update)
	// hold makes the sink wait while it is locked.
	hold sync.Mutex
}

// watch builds the scanner of r and runs its watch until the test ends.
func watch(t testing.TB, r rig) *reported {
	t.Helper()
	w := &reported{t: t, s: r.build(t), locks: map[string]locksteward.Lock{}}
	w.run(t)
	return w
}

// tracked is watch, once the server reports changes.
func tracked(t testing.TB, r rig) *reported {
	t.Helper()
	sinceTracking(t)
	w := watch(t, r)
	w.awaitTracking()
	return w
}

func (w *reported) run(t testing.TB) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.s.Watch(ctx, w.take) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("watch: %v", err)
		}
	})
	t.Cleanup(stop)
	w.s.AwaitWatch(ctx)
	return stop
}

func (w *reported) take(_ context.Context, update locksteward.Update) {
	w.hold.Lock()
	defer w.hold.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handings++
	if update.At.IsZero() {
		w.t.Error("the watch handed on an update without a time")
	}
	for _, e := range update.Endings {
		w.endings = append(w.endings, e)
		delete(w.locks, e.Lock.Key)
	}
	for _, l := range update.Locks {
		w.locks[l.Key] = l
	}
	w.losses = append(w.losses, update.Losses...)
	w.waiters = append(w.waiters, update.Waiters...)
	if w.judge != nil {
		w.judge(update)
	}
}

func (w *reported) lock(key string) (locksteward.Lock, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l, ok := w.locks[key]
	return l, ok
}

// ended returns how the holds of key ended that were notified of so far.
func (w *reported) ended(key string) (how []locksteward.EndedHow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.endings {
		if e.Lock.Key == key {
			how = append(how, e.How)
		}
	}
	return how
}

func (w *reported) await(key, what string, cond func(locksteward.Lock) bool) {
	w.t.Helper()
	testredis.Eventually(w.t, soon, func() bool {
		l, ok := w.lock(key)
		return ok && cond(l)
	}, fmt.Sprintf("%s: not reported: %s", key, what))
}

func (w *reported) awaitLock(key string) {
	w.t.Helper()
	w.await(key, "held", func(locksteward.Lock) bool { return true })
}

// taken takes a token lock and waits until it is reported.
func (w *reported) taken(c redis.Cmdable, key string) {
	w.t.Helper()
	must(w.t, c.Set(w.t.Context(), key, "tok", 0).Err())
	w.awaitLock(key)
}

func (w *reported) awaitEnd(key string, n int) {
	w.t.Helper()
	testredis.Eventually(w.t, soon, func() bool { return len(w.ended(key)) >= n }, key+": its end was not reported")
}

func (w *reported) awaitState(what string, cond func(source.WatchState) bool) {
	w.t.Helper()
	defer func() {
		if w.t.Failed() {
			w.t.Logf("watch state: %+v", w.s.WatchState())
		}
	}()
	testredis.Eventually(w.t, soon, func() bool { return cond(w.s.WatchState()) }, "watch state: "+what)
}

// awaitTracking waits until the server reports changes, and skips the test on one
// whose tracking the agent does not use.
func (w *reported) awaitTracking() {
	w.t.Helper()
	sinceTracking(w.t)
	w.awaitState("tracking", whole)
}

// sinceTracking skips a test on servers of which nobody can know whether they track.
func sinceTracking(t testing.TB) {
	t.Helper()
	testredis.Since(t, 6, 2, "CLIENT TRACKINGINFO")
}

func whole(s source.WatchState) bool {
	for _, n := range s.Nodes {
		if n.Mode != source.WatchTracking || n.LastGood.IsZero() {
			return false
		}
	}
	return s.Mode == source.WatchTracking && len(s.Nodes) > 0
}

// audit makes sweeps until the watch's account is settled, and none may be
// missing from it.
func (w *reported) audit() {
	w.t.Helper()
	for range 2 {
		sweep(w.t, w.s)
		began := time.Now()
		// A suspicion is judged by the first good check more than a second later.
		w.awaitState("a good check", func(s source.WatchState) bool {
			for _, n := range s.Nodes {
				if n.LastGood.Sub(began) < 1200*time.Millisecond {
					return false
				}
			}
			return true
		})
	}
	if got := w.s.WatchState(); got.Missed != 0 {
		w.t.Errorf("the watch missed %d changes", got.Missed)
	}
}

// awaitClock waits until the watch has compared its clock with the server's since now. A comparison whose
// answer comes late takes the server's clock to be behind: a flush right after it would seem to be older than
// what was read shortly before.
func (w *reported) awaitClock() {
	w.t.Helper()
	began := time.Now()
	w.awaitState("the clocks are compared", func(s source.WatchState) bool { return whole(s) && s.Nodes[0].LastGood.After(began) })
}

func TestWatchTellsOfALockWithoutTTL(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	w := tracked(t, fast(srv.URL()))
	must(t, c.SetNX(t.Context(), "lock:order:42", "1", 0).Err())
	w.await("lock:order:42", "no TTL", func(l locksteward.Lock) bool {
		return l.TTL == locksteward.NoExpiry && l.Kind == locksteward.KindLock && l.Node == srv.Addr()
	})
	must(t, c.Del(t.Context(), "lock:order:42").Err())
	w.awaitEnd("lock:order:42", 1)
	if how := w.ended("lock:order:42"); how[0] != locksteward.EndedReleased {
		t.Errorf("ended %v", how)
	}
	if n := w.s.Table().Len(); n != 0 {
		t.Errorf("%d locks are left in the table", n)
	}
}

// TestWatchSeesAnExpiryAtOnce has the server's own expiry switched off, so that
// nothing but the look at the deadline can tell.
func TestWatchSeesAnExpiryAtOnce(t *testing.T) {
	t.Parallel()
	sinceTracking(t)
	srv := testredis.Start(t, testredis.WithConfig("enable-debug-command yes"))
	c := srv.Client(t)
	must(t, c.Do(t.Context(), "debug", "set-active-expire", "0").Err())
	w := watch(t, fast(srv.URL()))
	must(t, c.Set(t.Context(), "lock:a", "token-a", 3*time.Second).Err())
	w.awaitLock("lock:a")
	w.awaitEnd("lock:a", 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.endings[0]
	if e.How != locksteward.EndedExpired {
		t.Errorf("ended %s, want expired", e.How)
	}
	if late := e.At.Sub(time.UnixMilli(e.Lock.ExpireAt)); late < 0 || late > 2*time.Second {
		t.Errorf("reported %s after the expiry", late)
	}
}

// fault: 48, 49
func TestWatchFollowsWhatHappensToAKey(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	w := tracked(t, fast(srv.URL()))

	must(t, c.Set(ctx, "lock:r", "token-r", 20*time.Second).Err())
	w.awaitLock("lock:r")
	before, _ := w.lock("lock:r")
	must(t, c.PExpire(ctx, "lock:r", time.Minute).Err())
	w.await("lock:r", "renewed", func(l locksteward.Lock) bool {
		return l.History.Renewals == 1 && l.ExpireAt > before.ExpireAt && l.TokenDigest == before.TokenDigest
	})
	must(t, c.Persist(ctx, "lock:r").Err())
	w.await("lock:r", "persisted", func(l locksteward.Lock) bool { return l.TTL == locksteward.NoExpiry })
	must(t, c.Rename(ctx, "lock:r", "lock:s").Err())
	w.awaitEnd("lock:r", 1)
	w.awaitLock("lock:s")

	// Another value is another hold.
	must(t, c.Set(ctx, "lock:s", "other", time.Minute).Err())
	w.awaitEnd("lock:s", 1)
	w.await("lock:s", "replaced", func(l locksteward.Lock) bool { return l.TTL > 0 })

	// Another type: what it is now is no known lock's shape or another hold, but
	// never the old one.
	must(t, c.Del(ctx, "lock:s").Err())
	w.awaitEnd("lock:s", 2)
	_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, "lock:s", "8743c9c0-0795-4907-87fd-6c719a6b4586:1", "1")
		p.PExpire(ctx, "lock:s", 30*time.Second)
		return nil
	})
	must(t, err)
	w.await("lock:s", "a hash", func(l locksteward.Lock) bool { return l.Type == "hash" })
	must(t, c.Set(ctx, "lock:s", "a string again", 30*time.Second).Err())
	w.await("lock:s", "a string", func(l locksteward.Lock) bool { return l.Type == "string" })

	must(t, c.FlushAll(ctx).Err())
	w.awaitEnd("lock:s", 4)
	if n := w.s.Table().Len(); n != 0 {
		t.Errorf("%d locks outlived FLUSHALL", n)
	}
	// And it goes on after a flush.
	must(t, c.Set(ctx, "lock:s", "t", 30*time.Second).Err())
	w.awaitLock("lock:s")
	if s := w.s.WatchState(); s.Blind != 0 || !whole(s) {
		t.Errorf("a flush made the watch blind: %+v", s)
	}
	w.audit()
}

// TestWatchIgnoresOtherDatabases: the server's pushes do not say which database
// they are about.
// fault: 58
func TestWatchIgnoresOtherDatabases(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	url := strings.TrimSuffix(srv.URL(), "/0")
	opts := srv.Options()
	opts.DB = 3
	three := redis.NewClient(opts)
	t.Cleanup(func() { must(t, three.Close()) })
	zero := srv.Client(t)
	w := tracked(t, fast(url+"/3"))

	must(t, zero.Set(t.Context(), "lock:same", "in-0", time.Minute).Err())
	must(t, three.Set(t.Context(), "lock:mark", "in-3", time.Minute).Err())
	w.awaitLock("lock:mark")
	if _, ok := w.lock("lock:same"); ok {
		t.Error("a lock of database 0 was notified of as one of database 3")
	}
	must(t, three.Set(t.Context(), "lock:same", "in-3", time.Minute).Err())
	w.awaitLock("lock:same")
	must(t, zero.Del(t.Context(), "lock:same").Err())
	must(t, three.Del(t.Context(), "lock:mark").Err())
	w.awaitEnd("lock:mark", 1)
	if l, ok := w.lock("lock:same"); !ok || l.DB != 3 {
		t.Error("the end in database 0 ended the lock in database 3")
	}
	w.audit()
}

// TestWatchSeesOurLocksUnderAnyName is a lock of our library that no pattern
// matches: its metadata gives it away.
func TestWatchSeesOurLocksUnderAnyName(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	w := tracked(t, fast(srv.URL()))
	heartbeat(t, c, "i1")
	take(t, c, "some name", record.Meta{ID: "a1", Instance: "i1", Fence: 7}, time.Minute)
	w.await("some name", "with its claim", func(l locksteward.Lock) bool {
		return l.Claim != nil && l.Claim.ID == "a1" && l.Fence == 7 && l.Instance != nil && l.Instance.Host == "host-i1" && l.Waiters == 0
	})
	waiter := record.Companion(record.DefaultPrefix, record.KindWaiter, "some name")
	until := time.Now().Add(time.Minute).UnixMilli()
	record1 := record.Waiter{Session: "s9", Instance: "i1", Since: time.Now().UnixMicro(), Until: until}
	must(t, c.HSet(t.Context(), waiter, "w1", record1.Encode()).Err())
	w.await("some name", "with a waiter", func(l locksteward.Lock) bool { return l.Waiters == 1 })
	must(t, c.Del(t.Context(), waiter).Err())
	w.await("some name", "without waiters", func(l locksteward.Lock) bool { return l.Waiters == 0 })
	release(t, c, "some name")
	w.awaitEnd("some name", 1)
	if how := w.ended("some name"); how[0] != locksteward.EndedReleased {
		t.Errorf("ended %v", how)
	}
	// A lock that goes without its metadata was not released by its holder.
	take(t, c, "lock:mine", record.Meta{ID: "a2", Instance: "i1"}, time.Minute)
	w.awaitLock("lock:mine")
	must(t, c.Del(t.Context(), "lock:mine").Err())
	w.awaitEnd("lock:mine", 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.losses) == 0 || w.losses[0].Claim.ID != "a2" || w.losses[0].How != locksteward.EndedDeleted {
		t.Errorf("losses: %+v", w.losses)
	}
}

// TestWatchReadsLocksAlone: with each lock of ours the server reports the counter
// that fences it as well, and now and then of the heartbeat of its process. They tell
// of no lock and are not read.
func TestWatchReadsLocksAlone(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	w := tracked(t, fast(srv.URL()))
	seen := monitored(t, srv)
	locks, err := lock.New(c, lock.Options{App: "app"})
	must(t, err)
	t.Cleanup(func() { must(t, locks.Close()) })
	h, err := locks.Acquire(t.Context(), "lock:ours", lock.Lease{TTL: time.Minute})
	must(t, err)
	w.awaitLock("lock:ours")
	must(t, h.Release(t.Context()))
	w.awaitEnd("lock:ours", 1)
	// Behind all pushes so far.
	must(t, c.Set(t.Context(), "lock:last", "tok", time.Minute).Err())
	w.awaitLock("lock:last")
	fenced := false
	for _, line := range seen() {
		low := strings.ToLower(line)
		script := strings.Contains(low, " lua] ") || strings.Contains(low, `"eval`)
		fence, process := strings.Contains(low, `"locksteward:fence:{`), strings.Contains(low, `"locksteward:instance:`)
		fenced = fenced || fence && script
		// That of a process is asked for its TTL and its text when there is a lock of it.
		if !script && (fence || process && (strings.Contains(low, `"getrange"`) || strings.Contains(low, `"type"`))) {
			t.Errorf("the server was asked %s", line)
		}
	}
	if !fenced {
		t.Error("no fence was counted")
	}
}

// TestMissedChangesAreCounted: SWAPDB changes keys and the server tells nobody.
// fault: 48, 60
func TestMissedChangesAreCounted(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	opts := srv.Options()
	opts.DB = 1
	one := redis.NewClient(opts)
	t.Cleanup(func() { must(t, one.Close()) })
	zero := srv.Client(t)
	w := tracked(t, fast(srv.URL()))
	must(t, zero.Set(t.Context(), "lock:stays", "tok", 0).Err())
	must(t, zero.Set(t.Context(), "lock:swapped-out", "tok", 0).Err())
	must(t, zero.Set(t.Context(), "lock:changes", "one", 0).Err())
	must(t, one.Set(t.Context(), "lock:stays", "tok", 0).Err())
	must(t, one.Set(t.Context(), "lock:swapped-in", "tok", 0).Err())
	must(t, one.Set(t.Context(), "lock:changes", "two", 0).Err())
	w.awaitLock("lock:changes")
	w.audit()
	must(t, zero.Do(t.Context(), "swapdb", 0, 1).Err())
	since := w.s.WatchState().Nodes[0].Since
	sweep(t, w.s)
	w.awaitState("three missed", func(s source.WatchState) bool { return s.Missed == 3 })
	w.awaitState("set up again", func(s source.WatchState) bool { return whole(s) && s.Nodes[0].Since.After(since) })
}

func TestTouchLooksWhenAsked(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	w := watch(t, rig{connect: fast(srv.URL()).connect, scan: scanner.Config{NoThrottle: true}, reads: redissource.Config{Watch: source.WatchOff}, digest: locksteward.NewDigestKey()})
	must(t, c.Set(t.Context(), "lock:x", "tok", 0).Err())
	sweep(t, w.s)
	now, err := c.Time(t.Context()).Result()
	must(t, err)
	at := now.Add(300 * time.Millisecond)
	w.s.Touch("lock:x", at.Add(time.Hour)) // the later word counts
	w.s.Touch("lock:x", at)
	w.s.Touch("lock:unknown", at)
	w.await("lock:x", "touched", func(l locksteward.Lock) bool { return l.At.After(at.Add(-20 * time.Millisecond)) })
	if s := w.s.WatchState(); s.Mode != source.WatchSweep || s.Reason != "watch: off" || s.Blind != 0 {
		t.Errorf("state: %+v", s)
	}
}

// TestWatchCoverage says per class how far it is watched, and why not further.
func TestWatchCoverage(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	r := fast(srv.URL())
	r.classes = []class.Class{
		{Name: "orders", Match: []string{"lock:order:*", "order-lock:*"}},
		{Name: "some", Match: []string{"pay:*", "*:paylock"}},
		{Name: "none", Match: []string{"*:lock", "a*"}},
	}
	w := tracked(t, r)
	want := map[string]source.Coverage{
		"orders": source.CoverageFull, "some": source.CoveragePart, "none": source.CoverageNone, "default": source.CoverageNone,
	}
	state := w.s.WatchState()
	for _, c := range state.Classes {
		if c.Coverage != want[c.Class] || (c.Reason == "") != (c.Coverage == source.CoverageFull) {
			t.Errorf("class %s: %s %q, want %s", c.Class, c.Coverage, c.Reason, want[c.Class])
		}
		delete(want, c.Class)
	}
	if len(want) > 0 {
		t.Errorf("classes without a word: %v", want)
	}
	c := srv.Client(t)
	must(t, c.Set(t.Context(), "pay:7", "tok", time.Minute).Err())
	w.awaitLock("pay:7")

	// What a sweep finds beside the classes is watched from then on.
	must(t, c.Set(t.Context(), "mutex:7", "tok", time.Minute).Err())
	begun := w.s.WatchState().Nodes[0].Since
	sweep(t, w.s)
	w.awaitState("mutex: too", func(s source.WatchState) bool {
		return whole(s) && s.Nodes[0].Since.After(begun) && slices.Contains(s.Nodes[0].Prefixes, "mutex:") && !slices.Contains(s.Nodes[0].Prefixes, "locksteward:")
	})
	must(t, c.Set(t.Context(), "mutex:8", "tok", time.Minute).Err())
	w.awaitLock("mutex:8")

	// The same classes again, as a reload gives them: the watch goes on with what it
	// learned, though nothing is left of that.
	must(t, c.Del(t.Context(), "mutex:7", "mutex:8").Err())
	w.awaitEnd("mutex:7", 1)
	w.awaitEnd("mutex:8", 1)
	begun = w.s.WatchState().Nodes[0].Since
	same, err := class.NewSet(r.classes)
	must(t, err)
	w.s.SetClasses(same)
	must(t, c.Set(t.Context(), "mutex:9", "tok", time.Minute).Err())
	w.awaitLock("mutex:9")
	if got := w.s.WatchState().Nodes[0]; !got.Since.Equal(begun) || !slices.Contains(got.Prefixes, "mutex:") {
		t.Errorf("equal classes: %+v", got)
	}

	// Other classes: the watch is set up again, and knows the new prefix.
	set, err := class.NewSet([]class.Class{{Name: "new", Match: []string{"fresh:*"}}})
	must(t, err)
	since := w.s.WatchState().Nodes[0].Since
	w.s.SetClasses(set)
	w.awaitState("set up again", func(s source.WatchState) bool { return whole(s) && s.Nodes[0].Since.After(since) })
	must(t, c.Set(t.Context(), "fresh:1", "tok", time.Minute).Err())
	w.awaitLock("fresh:1")
	if got := w.s.WatchState().Classes; len(got) != 2 || got[0].Class != "new" || got[0].Coverage != source.CoverageFull {
		t.Errorf("classes: %+v", got)
	}
}

// TestUnwatchedLocksAreLookedAtAgain without any push.
func TestUnwatchedLocksAreLookedAtAgain(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	must(t, c.Set(ctx, "my:lock", "tok", 0).Err())
	must(t, c.Set(ctx, "your:lock", "tok", 0).Err())
	r := fast(srv.URL())
	s := r.build(t)
	sweep(t, s)
	w := &reported{t: t, s: s, locks: map[string]locksteward.Lock{}}
	w.run(t)
	w.awaitTracking()
	w.awaitLock("my:lock") // by the resync
	must(t, c.PExpire(ctx, "my:lock", time.Minute).Err())
	must(t, c.Del(ctx, "your:lock").Err())
	testredis.Eventually(t, 30*time.Second, func() bool {
		l, ok := w.lock("my:lock")
		return ok && l.TTL > 0 && len(w.ended("your:lock")) == 1
	}, "unwatched locks were not looked at again")
}
