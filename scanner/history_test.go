package scanner_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/scanner"
)

// ending returns how the hold of key ended in got, "" if it did not.
func ending(got locksteward.Sweep, key string) locksteward.EndedHow {
	for _, e := range got.Endings {
		if e.Lock.Key == key {
			return e.How
		}
	}
	return ""
}

func lossOf(got locksteward.Sweep, key, id string) *locksteward.Loss {
	for i := range got.Losses {
		if l := &got.Losses[i]; l.Key == key && l.Claim.ID == id {
			return l
		}
	}
	return nil
}

func TestHistoryOfOneHold(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	must(t, c.Set(ctx, "lock:a", "tok-a", 10*time.Second).Err())
	must(t, c.Set(ctx, "lock:none", "tok-n", 0).Err())
	s := fast(srv.URL()).build(t)
	first := find(t, sweep(t, s).Locks, "lock:a")
	if first.History.Looks != 1 || !first.History.FirstSeen.Equal(first.At) || first.History.Renewals != 0 {
		t.Errorf("first look: %+v", first.History)
	}
	ends := []int64{testredis.ExpireAt(t, c, "lock:a")}
	for range 2 {
		passed(t, c, 120*time.Millisecond)
		must(t, c.PExpire(ctx, "lock:a", 10*time.Second).Err())
		ends = append(ends, testredis.ExpireAt(t, c, "lock:a"))
		sweep(t, s)
	}
	passed(t, c, 60*time.Millisecond)
	got := sweep(t, s)
	l := find(t, got.Locks, "lock:a")
	h := l.History
	if h.Looks != 4 || h.Renewals != 2 || !h.FirstSeen.Equal(first.At) || !h.LastSeen.Equal(l.At) || h.LastRenewal.IsZero() {
		t.Errorf("after two renewals: %+v", h)
	}
	// As far apart as this machine made them; a server before 7.0 tells an expiry to some milliseconds.
	const about = 50 * time.Millisecond
	one, two := time.Duration(ends[1]-ends[0])*time.Millisecond, time.Duration(ends[2]-ends[1])*time.Millisecond
	if h.RenewEvery < min(one, two)-about || h.RenewEvery > max(one, two)+about {
		t.Errorf("interval learned: %s, want one from %s to %s", h.RenewEvery, min(one, two), max(one, two))
	}
	if age, basis, _ := l.Age(); basis != locksteward.AgeObserved || age < 300*time.Millisecond {
		t.Errorf("age %s, %s", age, basis)
	}
	if n := find(t, got.Locks, "lock:none").History; n.Renewals != 0 || n.Looks != 4 {
		t.Errorf("a lock without TTL: %+v", n)
	}
	if len(got.Endings)+len(got.Losses) != 0 {
		t.Errorf("endings %+v, losses %+v", got.Endings, got.Losses)
	}
}

func TestEndingsOfForeignLocks(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	must(t, c.Set(ctx, "lock:released", "t1", time.Minute).Err())
	must(t, c.Set(ctx, "lock:expired", "t2", 3*time.Second).Err())
	must(t, c.Set(ctx, "lock:replaced", "t3", time.Minute).Err())
	must(t, c.Set(ctx, "lock:retyped", "t4", time.Minute).Err())
	must(t, c.Set(ctx, "lock:forever", "t5", 0).Err())
	must(t, c.Set(ctx, "lock:data", "t6", time.Minute).Err())
	s := fast(srv.URL()).build(t)
	old := find(t, sweep(t, s).Locks, "lock:replaced")

	must(t, c.Del(ctx, "lock:released", "lock:forever", "lock:retyped").Err())
	must(t, c.Set(ctx, "lock:replaced", "another", time.Minute).Err())
	must(t, c.HSet(ctx, "lock:retyped", "5f3759df-a1b2-c3d4-e5f6-0123456789ab:42", "1").Err())
	must(t, c.Set(ctx, "lock:data", string(make([]byte, 1000)), time.Minute).Err())
	testredis.Eventually(t, 30*time.Second, func() bool { return c.Exists(ctx, "lock:expired").Val() == 0 }, "lock:expired did not expire")
	got := sweep(t, s)
	want := map[string]locksteward.EndedHow{
		"lock:released": locksteward.EndedReleased, "lock:expired": locksteward.EndedExpired, "lock:replaced": locksteward.EndedReplaced,
		"lock:retyped": locksteward.EndedReplaced, "lock:forever": locksteward.EndedReleased, "lock:data": locksteward.EndedReplaced,
	}
	have := map[string]locksteward.EndedHow{}
	for _, e := range got.Endings {
		have[e.Lock.Key] = e.How
		if e.At.IsZero() || e.Lock.TokenDigest == "" {
			t.Errorf("ending %+v", e)
		}
	}
	if !maps.Equal(have, want) {
		t.Errorf("endings %v, want %v", have, want)
	}
	now := find(t, got.Locks, "lock:replaced")
	if now.TokenDigest == old.TokenDigest || now.History.Looks != 1 || locksteward.SameHold(old.Observation, now.Observation) {
		t.Errorf("the new hold has the old one's history: %+v", now.History)
	}
	if want := []string{"lock:replaced", "lock:retyped"}; !slices.Equal(names(s.Table().Locks()), want) {
		t.Errorf("table %q, want %q", names(s.Table().Locks()), want)
	}
	if again := sweep(t, s); len(again.Endings) != 0 {
		t.Errorf("endings reported twice: %+v", again.Endings)
	}
}

func TestEndingsAndLossesOfOurLocks(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	heartbeat(t, c, "alive")
	for _, key := range []string{"released", "expired", "deleted", "overwritten", "succeeded"} {
		ttl := time.Minute
		if key == "expired" || key == "succeeded" {
			ttl = 3 * time.Second // a busy machine may be as long at the first sweep
		}
		instance := "alive"
		if key == "expired" {
			instance = "dead"
		}
		take(t, c, key, record.Meta{ID: "id-" + key, Instance: instance, App: "app"}, ttl)
	}
	s := fast(srv.URL()).build(t)
	before := sweep(t, s)
	if len(before.Losses) != 0 {
		t.Fatalf("losses before anything was lost: %+v", before.Losses)
	}
	deadline := find(t, before.Locks, "succeeded").ExpireAt

	release(t, c, "released")
	must(t, c.Del(ctx, "deleted").Err())
	must(t, c.Set(ctx, "overwritten", "by somebody", time.Minute).Err())
	testredis.Eventually(t, 30*time.Second, func() bool { return c.Exists(ctx, "expired", "succeeded").Val() == 0 }, "nothing expired")
	take(t, c, "succeeded", record.Meta{
		ID: "next", Lost: &record.Lost{ID: "id-succeeded", Holder: "alive", Fence: 3, Deadline: deadline},
	}, time.Minute)

	got := sweep(t, s)
	for key, want := range map[string]struct{ ends, lost locksteward.EndedHow }{
		"released":    {locksteward.EndedReleased, ""},
		"expired":     {locksteward.EndedExpired, locksteward.EndedExpired},
		"deleted":     {locksteward.EndedDeleted, locksteward.EndedDeleted},
		"overwritten": {locksteward.EndedReplaced, locksteward.EndedReplaced},
		"succeeded":   {locksteward.EndedReplaced, locksteward.EndedExpired},
	} {
		if how := ending(got, key); how != want.ends {
			t.Errorf("%s ended %q, want %q", key, how, want.ends)
		}
		l := lossOf(got, key, "id-"+key)
		switch {
		case (l == nil) != (want.lost == ""):
			t.Errorf("%s: loss %+v, want %q", key, l, want.lost)
		case l == nil:
		case l.How != want.lost || l.Claim.Acquired.IsZero() || l.Holder.App != "app" || l.Deadline.IsZero() || l.At.IsZero() || l.Node != srv.Addr():
			t.Errorf("%s: loss %+v, want %q with all that was known", key, l, want.lost)
		case (l.Instance == nil) != (key == "expired"):
			t.Errorf("%s: instance %+v", key, l.Instance)
		}
	}
	if find(t, got.Locks, "succeeded").Claim.ID != "next" {
		t.Error("the successor is not seen")
	}
	// A loss is reported as long as its evidence is there, with what was known.
	again := sweep(t, s)
	if l := lossOf(again, "succeeded", "id-succeeded"); l == nil || l.Holder.App != "app" || len(again.Losses) != 4 || len(again.Endings) != 0 {
		t.Errorf("next sweep: losses %+v, endings %+v", again.Losses, again.Endings)
	}
	// An agent that never saw the holds learns of them from the server alone.
	fresh := sweep(t, fast(srv.URL()).build(t))
	if len(fresh.Losses) != 4 || lossOf(fresh, "succeeded", "id-succeeded").Holder.Instance != "alive" {
		t.Errorf("a fresh scanner: %+v", fresh.Losses)
	}
}

// TestReleaseIsNeverALoss takes and releases locks while sweeps run: lock and
// metadata are read at different moments, and no moment may look like a loss.
func TestReleaseIsNeverALoss(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			key := "work:" + string(rune('a'+w))
			for n := 0; ctx.Err() == nil; n++ {
				take(t, c, key, record.Meta{ID: fmt.Sprintf("id-%d-%d", w, n)}, time.Minute)
				for range n % 8 {
					must(t, c.Ping(t.Context()).Err())
				}
				release(t, c, key)
			}
		})
	}
	s := fast(srv.URL()).build(t)
	held := 0
	for range 300 {
		got := sweep(t, s)
		held += len(got.Locks)
		if len(got.Losses) > 0 {
			t.Errorf("loss of a lock that was released: %+v", got.Losses[0])
			break
		}
		for _, e := range got.Endings {
			if e.How != locksteward.EndedReleased && e.How != locksteward.EndedReplaced {
				t.Errorf("ended %s", e.How)
			}
		}
	}
	stop()
	wg.Wait()
	if held == 0 {
		t.Error("no lock was ever seen held: the test shows nothing")
	}
}

func TestRefreshAndRecheck(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	must(t, c.Set(ctx, "lock:a", "1", 0).Err())
	must(t, c.Set(ctx, "lock:b", "1", 0).Err())
	must(t, c.Set(ctx, "lock:c", "tok", 0).Err())
	heartbeat(t, c, "i")
	take(t, c, "ours", record.Meta{ID: "x", Instance: "i"}, time.Minute)
	s := fast(srv.URL()).build(t)
	got := sweep(t, s)

	must(t, c.PExpire(ctx, "lock:a", time.Minute).Err())
	must(t, c.Del(ctx, "lock:b", "ours").Err())
	must(t, c.Set(ctx, "lock:c", "other", 0).Err())
	again, err := s.Recheck(ctx, got.Locks)
	must(t, err)
	if a := find(t, again.Locks, "lock:a"); a.TTL == locksteward.NoExpiry || a.History.Looks != 2 {
		t.Errorf("lock:a: %+v", a)
	}
	over := locksteward.Sweep{Endings: again.Endings, Losses: again.Losses}
	if ending(over, "lock:b") != locksteward.EndedReleased || ending(over, "lock:c") != locksteward.EndedReplaced || ending(over, "ours") != locksteward.EndedDeleted {
		t.Errorf("endings %+v", again.Endings)
	}
	if lossOf(over, "ours", "x") == nil || again.At.IsZero() {
		t.Errorf("losses %+v at %s", again.Losses, again.At)
	}
	if next := sweep(t, s); len(next.Endings) != 0 {
		t.Errorf("endings reported twice: %+v", next.Endings)
	}

	must(t, c.Set(ctx, "lock:c", "third", 0).Err())
	l, err := s.Table().Refresh(ctx, "lock:c")
	must(t, err)
	if known, _ := s.Table().Get(0, "lock:c"); l.TokenDigest != known.TokenDigest {
		t.Error("the table does not have what was read")
	}
	must(t, c.Del(ctx, "lock:a").Err())
	if _, err := s.Table().Refresh(ctx, "lock:a"); !errors.Is(err, locksteward.ErrNotFound) {
		t.Errorf("refresh of a key that is gone: %v", err)
	}
	next := sweep(t, s)
	if ending(next, "lock:c") != locksteward.EndedReplaced || ending(next, "lock:a") != locksteward.EndedReleased {
		t.Errorf("what direct reads found is reported by the next sweep: %+v", next.Endings)
	}
}

// TestRecheckOfWhatIsNoLockAnyMore: a lock that somebody overwrote with what is no
// lock, or merely has the name of one, is over.
func TestRecheckOfWhatIsNoLockAnyMore(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c, ctx := srv.Client(t), t.Context()
	const semaphore, word = "{cart}:eZ9Qd0yv2H0uW1mYpKx3Rg:semaphore", "lock:a"
	must(t, c.Set(ctx, semaphore, "3", 0).Err())
	must(t, c.Set(ctx, word, "1", 0).Err())
	s := fast(srv.URL()).build(t)
	got := sweep(t, s)
	if len(got.Locks) != 2 {
		t.Fatalf("locks: %q", names(got.Locks))
	}
	must(t, c.Set(ctx, semaphore, "payment-service", 0).Err())
	must(t, c.Set(ctx, word, strings.Repeat("payload ", 100), 0).Err())
	again, err := s.Recheck(ctx, got.Locks)
	must(t, err)
	over := locksteward.Sweep{Endings: again.Endings}
	if ending(over, semaphore) != locksteward.EndedReplaced || ending(over, word) != locksteward.EndedReplaced || len(again.Locks) != 0 {
		t.Errorf("endings %+v, locks %q", again.Endings, names(again.Locks))
	}
	if next := sweep(t, s); len(next.Endings) != 0 || s.Table().Len() != 0 {
		t.Errorf("endings reported twice: %+v", next.Endings)
	}
}

// TestIdleTimeOfTheNextHold: of a known key the idle time is not asked again, so
// that of the next hold begins at none and adds up.
func TestIdleTimeOfTheNextHold(t *testing.T) {
	t.Parallel()
	srv, clock := testredis.StartClocked(t)
	c, ctx := srv.Client(t), t.Context()
	s := fast(srv.URL()).build(t)
	for i, token := range []string{"one", "two"} {
		must(t, c.Set(ctx, "lock:a", token, 0).Err())
		if l := find(t, sweep(t, s).Locks, "lock:a"); l.Idle != 0 {
			t.Errorf("hold %d is idle for %s", i, l.Idle)
		}
		clock.Step(time.Minute)
		if l := find(t, sweep(t, s).Locks, "lock:a"); l.Idle < time.Minute || l.Idle > 2*time.Minute {
			t.Errorf("hold %d is idle for %s after a minute", i, l.Idle)
		}
	}
}

// memoryStore is a HistoryStore of a test.
type memoryStore struct {
	mu    sync.Mutex
	rows  map[scanner.HistoryKey]scanner.HistoryRow
	calls int
	fail  error
}

func (m *memoryStore) SaveHistory(_ context.Context, _ string, upserts []scanner.HistoryRow, gone []scanner.HistoryKey) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if m.fail != nil {
		return m.fail
	}
	for _, r := range upserts {
		m.rows[scanner.HistoryKey{DB: r.DB, Key: r.Key}] = r
	}
	for _, k := range gone {
		delete(m.rows, k)
	}
	return nil
}

func (m *memoryStore) LoadHistory(context.Context, string) ([]scanner.HistoryRow, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.rows)), m.fail
}

func TestHistorySurvivesARestart(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	must(t, c.Set(ctx, "lock:a", "tok", time.Hour).Err())
	must(t, c.Set(ctx, "lock:b", "tok", time.Hour).Err())
	must(t, c.Set(ctx, "lock:c", "tok", time.Hour).Err())
	r := fast(srv.URL())
	s := r.build(t)
	first := sweep(t, s)
	rows := s.HistoryRows()
	if len(rows) != 3 || rows[0].Key != "lock:a" || rows[0].TokenDigest == "" {
		t.Fatalf("rows %+v", rows)
	}
	for i := range rows {
		rows[i].FirstSeen = rows[i].FirstSeen.Add(-time.Hour)
		rows[i].Renewals, rows[i].RenewEvery = 5, 10*time.Second
	}
	must(t, c.Set(ctx, "lock:b", "another", time.Hour).Err())
	must(t, c.Del(ctx, "lock:c").Err())
	must(t, c.PExpire(ctx, "lock:a", 2*time.Hour).Err())

	restarted := r.build(t)
	restarted.Restore(rows)
	got := sweep(t, restarted)
	a := find(t, got.Locks, "lock:a")
	if h := a.History; !h.FirstSeen.Equal(rows[0].FirstSeen) || h.Renewals != 6 || h.RenewEvery != 10*time.Second {
		t.Errorf("lock:a goes on with %+v", h)
	}
	if b := find(t, got.Locks, "lock:b"); b.History.Renewals != 0 || b.History.FirstSeen.Before(first.At) {
		t.Errorf("lock:b is another hold, with %+v", b.History)
	}
	if len(got.Endings) != 0 {
		t.Errorf("endings %+v", got.Endings)
	}
}

// A person who looks at a lock between the start of the agent and its first
// sweep does not make its age begin anew.
func TestLookBeforeTheFirstSweepKeepsTheHistory(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	must(t, srv.Client(t).Set(t.Context(), "lock:a", "tok", time.Hour).Err())
	r := fast(srv.URL())
	s := r.build(t)
	sweep(t, s)
	rows := s.HistoryRows()
	rows[0].FirstSeen = rows[0].FirstSeen.Add(-time.Hour)

	restarted := r.build(t)
	if _, err := restarted.Table().Refresh(t.Context(), "lock:a"); err != nil {
		t.Fatal(err)
	}
	restarted.Restore(rows)
	if h := find(t, sweep(t, restarted).Locks, "lock:a").History; !h.FirstSeen.Equal(rows[0].FirstSeen) {
		t.Errorf("history goes on with %+v, want first seen %s", h, rows[0].FirstSeen)
	}
}
