package report_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/report"
)

func never(time.Time) (time.Time, bool) { return time.Time{}, false }

// lockAt is a lock that was seen from first to last.
func lockAt(first, last time.Time, change func(*locksteward.Lock)) locksteward.Lock {
	l := locksteward.Lock{
		Observation: locksteward.Observation{
			Key: "lock:order:1", Class: "orders", Kind: locksteward.KindLock, Library: "token", At: last, TTL: 20 * time.Second,
			ExpireAt: last.Add(20 * time.Second).UnixMilli(), Identity: locksteward.IdentityStrong, Waiters: -1,
		},
		History: locksteward.History{FirstSeen: first, LastSeen: last, Looks: 2},
	}
	if change != nil {
		change(&l)
	}
	return l
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	claim := func(l *locksteward.Lock) {
		l.Claim = &locksteward.Claim{ID: "c1", Acquired: at(-3), TTL: 30 * time.Second}
	}
	for _, c := range []struct {
		name     string
		change   func(*locksteward.Lock)
		how      locksteward.EndedHow
		since    func(time.Time) (time.Time, bool)
		deadline time.Time
		want     report.Hold
	}{
		{
			"nobody looked before", nil, locksteward.EndedReleased, never,
			time.Time{},
			report.Hold{Low: 5 * time.Second, Lease: 25 * time.Second},
		},
		{
			"a sweep before did not see it", nil, locksteward.EndedReleased, func(time.Time) (time.Time, bool) { return at(-2), true },
			time.Time{},
			report.Hold{Low: 5 * time.Second, High: 8 * time.Second, Bounded: true, Lease: 25 * time.Second},
		},
		{
			"the holder says since when", claim, locksteward.EndedReleased, never,
			time.Time{},
			report.Hold{Low: 8 * time.Second, High: 9 * time.Second, Bounded: true, Lease: 30 * time.Second},
		},
		{
			"and its metadata when it ran out", claim, locksteward.EndedExpired, never, at(6).Add(-250 * time.Millisecond),
			report.Hold{Low: 8750 * time.Millisecond, High: 8750 * time.Millisecond, Bounded: true, Lease: 30 * time.Second},
		},
		{
			"a deadline that cannot be is not believed", claim, locksteward.EndedExpired, never, at(60),
			report.Hold{Low: 8 * time.Second, High: 9 * time.Second, Bounded: true, Lease: 30 * time.Second},
		},
		{
			"a token that does not change, renewed or taken again", func(l *locksteward.Lock) {
				l.Identity, l.SharedToken = locksteward.IdentityLineage, true
				l.History.Renewals, l.History.LastRenewal = 2, at(4)
			}, locksteward.EndedReleased, func(time.Time) (time.Time, bool) { return at(-1), true },
			time.Time{},
			report.Hold{Low: 0, High: 7 * time.Second, Bounded: true, Several: true, Renewed: true, Lease: 21 * time.Second},
		},
		{
			"a token that does not change, with an expiry that stood still", func(l *locksteward.Lock) { l.Identity = locksteward.IdentityLineage },
			locksteward.EndedReplaced, never,
			time.Time{},
			report.Hold{Low: 5 * time.Second, Lease: 25 * time.Second},
		},
		{
			"a constant without TTL", func(l *locksteward.Lock) {
				l.Identity, l.TTL, l.ExpireAt = locksteward.IdentityNone, locksteward.NoExpiry, locksteward.NoExpireAt
			}, locksteward.EndedReleased, never,
			time.Time{},
			report.Hold{Several: true, Lease: locksteward.NoExpiry},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := lockAt(at(0), at(5), c.change)
			c.want.Class, c.want.Key, c.want.Library, c.want.How, c.want.EndedAt = "orders", l.Key, "token", c.how, at(6)
			got := report.Measure(locksteward.Ending{Lock: l, How: c.how, At: at(6)}, c.since, c.deadline)
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// sweepAt is a complete sweep of one second that ended at the given second.
func sweepAt(s int) locksteward.Sweep {
	at := begin.Add(time.Duration(s) * time.Second)
	return locksteward.Sweep{
		Target: "a", Started: at.Add(-time.Second), At: at, Duration: time.Second,
		Masters: []locksteward.MasterPass{{Complete: true}},
	}
}

func TestRecorderCountsWhatProcessesTell(t *testing.T) {
	t.Parallel()
	r := report.NewRecorder("a", nil)
	process := func(id string, started time.Time, acquired, contended, failed int64) locksteward.Instance {
		return locksteward.Instance{ID: id, Started: started, Counts: map[string]locksteward.Counts{
			"orders": {Acquired: acquired, Contended: contended, Failed: failed},
		}}
	}
	for i, list := range [][]locksteward.Instance{
		{process("old", begin.Add(-time.Hour), 1000, 100, 10), process("young", begin.Add(10*time.Second), 5, 1, 0)},
		{process("old", begin.Add(-time.Hour), 1010, 103, 10)},
		{process("old", begin.Add(-time.Hour), 4, 0, 0)}, // it began anew under its id
	} {
		s := sweepAt(20 + 10*i)
		s.Instances = list
		waiting := lockAt(begin, s.At, func(l *locksteward.Lock) { l.Waiters = 3 - i })
		s.Locks = []locksteward.Lock{waiting, lockAt(begin, s.At, func(l *locksteward.Lock) { l.Key, l.Class = "x", "foreign" })}
		s.Waiters = []locksteward.Waiter{{Class: "orders", Since: s.At.Add(-time.Duration(i+1) * time.Second)}}
		r.AddSweep(s)
	}
	rows := r.Rows()
	if len(rows) != 1 {
		t.Fatalf("rows %+v: a class that tells nothing has none", rows)
	}
	row := rows[0]
	// began is 19 s, so the young process had begun before and counts from its second look.
	if row.Acquired != 10 || row.Contended != 3 || row.Failed != 0 || !row.Reported || row.MaxWaiters != 3 || row.LongestWait != 3*time.Second {
		t.Errorf("got %+v", row)
	}
}

// Rows are saved until they stand still, and what is over is forgotten.
func TestRecorderSaves(t *testing.T) {
	t.Parallel()
	r := report.NewRecorder("a", nil)
	end := func(at int) locksteward.Sweep {
		s := sweepAt(at)
		s.Endings = []locksteward.Ending{{Lock: lockAt(begin, s.At.Add(-time.Second), nil), How: locksteward.EndedReleased, At: s.At}}
		return s
	}
	r.AddSweep(sweepAt(0))
	if got := r.Unsaved(); len(got) != 0 {
		t.Errorf("nothing ended, and %d rows are to be saved", len(got))
	}
	r.AddSweep(end(10))
	first := r.Unsaved()
	if len(first) != 1 || first[0].Holds() != 1 || first[0].Slot != begin {
		t.Fatalf("got %+v", first)
	}
	r.AddSweep(end(20))
	r.Saved(first)
	if again := r.Unsaved(); len(again) != 1 || again[0].Holds() != 2 {
		t.Errorf("what came meanwhile is not to be saved: %+v", again)
	}
	r.Saved(r.Unsaved())
	if got := r.Unsaved(); len(got) != 0 {
		t.Errorf("%d rows are to be saved again", len(got))
	}

	// The next agent goes on with the hour under way.
	next := report.NewRecorder("a", nil)
	next.Restore(r.Rows())
	next.AddSweep(end(30))
	if got := next.Unsaved(); len(got) != 1 || got[0].Holds() != 3 {
		t.Errorf("restored and counted on: %+v", got)
	}
	for _, at := range []int{3600, 3 * 3600} {
		next.AddSweep(end(at))
		next.Saved(next.Unsaved())
	}
	if got := next.Rows(); len(got) != 1 || got[0].Slot != begin.Add(3*time.Hour) {
		t.Errorf("rows that nothing is counted into any more: %+v", got)
	}
}

// Where the watch reports every change, a lock is hardly older than its first
// look; after a blind moment the sweeps alone say so.
func TestWatchedHoldsAreBounded(t *testing.T) {
	t.Parallel()
	var got []report.Hold
	r := report.NewRecorder("a", func(h report.Hold) { got = append(got, h) })
	r.AddSweep(sweepAt(0))
	all := map[string]bool{"orders": true}
	r.Watched(begin, all, time.Second)
	hold := func(first, end int) {
		at := begin.Add(time.Duration(end) * time.Second)
		r.AddSweep(locksteward.Sweep{Target: "a", At: at, Endings: []locksteward.Ending{{
			Lock: lockAt(begin.Add(time.Duration(first)*time.Second), at.Add(-100*time.Millisecond), nil), How: locksteward.EndedReleased, At: at,
		}}})
	}
	hold(20, 21)
	r.Watched(begin.Add(25*time.Second), all, 2*time.Second)
	hold(26, 27) // the watch may have missed its begin
	hold(40, 41)
	r.Watched(begin.Add(50*time.Second), map[string]bool{"orders": false}, 2*time.Second)
	hold(60, 61)
	for i, want := range []time.Duration{3 * time.Second, 28 * time.Second, 3 * time.Second, 62 * time.Second} {
		if !got[i].Bounded || got[i].High != want {
			t.Errorf("hold %d: at most %s (%v), want %s", i, got[i].High, got[i].Bounded, want)
		}
	}
}

func TestRowRoundTrip(t *testing.T) {
	t.Parallel()
	want := rowOf(40, time.Second)
	want.Worst[0].Key = "lock:\xff\x00"
	want.Reported, want.Acquired, want.Contended, want.Failed = true, 50, 4, 1
	want.WaitersKnown, want.MaxWaiters, want.LongestWait = true, 3, 1500*time.Millisecond
	text, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got := report.Row{Target: want.Target, Class: want.Class, Slot: want.Slot}
	if err := got.Decode(text); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if err := got.Decode("{"); err == nil || !strings.Contains(err.Error(), "orders") {
		t.Errorf("half a row: %v", err)
	}
}

// rowOf is n holds of about d.
func rowOf(n int, d time.Duration) report.Row {
	r := report.Row{Target: "a", Class: "orders", Slot: begin}
	for i := range n {
		r.Add(report.Hold{
			Class: "orders", Key: "lock:order:" + string(rune('a'+i%7)), How: locksteward.EndedReleased, EndedAt: begin.Add(time.Duration(i) * time.Second),
			Low: d, High: d + time.Duration(i)*time.Millisecond, Bounded: true, Lease: 30 * time.Second,
			Holder: locksteward.Holder{App: "billing", Host: "web-1", PID: 7},
		})
	}
	return r
}

// What the watch pays for each hold that ends.
func BenchmarkTakeOneEnding(b *testing.B) {
	r := report.NewRecorder("a", nil)
	r.AddSweep(sweepAt(0))
	s := sweepAt(10)
	s.Masters = nil
	s.Endings = []locksteward.Ending{{Lock: lockAt(begin, s.At, nil), How: locksteward.EndedReleased, At: s.At}}
	b.ReportAllocs()
	for b.Loop() {
		r.AddSweep(s)
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	expect, ttl := report.Suggest(rowOf(29, time.Second))
	if expect.Value != 0 || ttl.Value != 0 || !strings.Contains(expect.Reason, "29 holds") || !strings.Contains(expect.Reason, "30") {
		t.Errorf("too few holds: %+v, %+v", expect, ttl)
	}
	expect, ttl = report.Suggest(rowOf(100, 4*time.Second))
	if expect.Value != 10*time.Second || ttl.Value != 15*time.Second || !strings.Contains(expect.Reason, "100 holds") {
		t.Errorf("got %+v, %+v", expect, ttl)
	}
	// A renewed lock may have a short TTL and a long hold.
	renewed := rowOf(100, 4*time.Second)
	renewed.Renewed = 3
	if expect, ttl = report.Suggest(renewed); expect.Value == 0 || ttl.Value != 0 || !strings.Contains(ttl.Reason, "renewed") {
		t.Errorf("got %+v, %+v", expect, ttl)
	}
	// One in ten began before anybody looked and was long: it must not be left out.
	early := rowOf(90, time.Second)
	for range 10 {
		early.Add(report.Hold{Class: "orders", Key: "k", How: locksteward.EndedReleased, Low: time.Minute})
	}
	if expect, _ = report.Suggest(early); expect.Value < 2*time.Minute || !strings.Contains(expect.Reason, "10 holds") {
		t.Errorf("got %+v", expect)
	}
	short := rowOf(100, 50*time.Second)
	if _, ttl = report.Suggest(short); !strings.Contains(ttl.Reason, "too short") {
		t.Errorf("a TTL below the holds: %+v", ttl)
	}
}

// A sweep that takes five minutes bounds the holds that it finds gone by five minutes:
// that is how far its looks are apart, not how long locks are held.
func TestLengthOfASweepIsNoLengthOfHolds(t *testing.T) {
	t.Parallel()
	const sweep = 5 * time.Minute
	rec := report.NewRecorder("a", nil)
	at := begin
	take := func(endings ...locksteward.Ending) {
		at = at.Add(sweep)
		s := sweepAt(0)
		s.At, s.Started, s.Duration, s.Endings = at, at.Add(-sweep), sweep, endings
		rec.AddSweep(s)
	}
	take()
	var ended []locksteward.Ending
	for i := range 200 { // each seen once, by the second sweep, and held for an instant
		seen := at.Add(time.Duration(i+1) * time.Second)
		ended = append(ended, locksteward.Ending{
			Lock: lockAt(seen, seen, func(l *locksteward.Lock) { l.Key = fmt.Sprint("lock:order:", i) }), How: locksteward.EndedReleased, At: seen.Add(time.Second),
		})
	}
	long := at.Add(time.Minute) // seen to be held for two minutes
	take(append(ended, locksteward.Ending{
		Lock: lockAt(long, long.Add(2*time.Minute), func(l *locksteward.Lock) { l.Key = "lock:order:long" }), How: locksteward.EndedReleased, At: long.Add(2*time.Minute + time.Second),
	})...)
	var row report.Row
	for _, r := range rec.Rows() {
		row.Merge(r)
	}
	expect, ttl := report.Suggest(row)
	if expect.Value != 0 || ttl.Value != 0 || !strings.Contains(expect.Reason, "unknown") {
		t.Errorf("suggested are %+v and %+v", expect, ttl)
	}
	c := report.Build(report.Input{Rows: rec.Rows()}).Classes[0]
	if c.P50.Known() || c.P95.Known() {
		t.Errorf("p50 %+v, p95 %+v count as known", c.P50, c.P95)
	}
	if c.Longest.Key.Key != "lock:order:long" {
		t.Errorf("the longest is %+v", c.Longest)
	}
	// None of them bounded: as little is known.
	var early report.Row
	for range 60 {
		early.Add(report.Hold{Class: "orders", Key: "k", How: locksteward.EndedReleased})
	}
	if expect, _ = report.Suggest(early); expect.Value != 0 || !strings.Contains(expect.Reason, "unknown") {
		t.Errorf("suggested is %+v", expect)
	}
}

func TestBuild(t *testing.T) {
	t.Parallel()
	classes, err := class.NewSet([]class.Class{{Name: "orders", Match: []string{"lock:order:*"}, Team: "checkout", Expect: 5 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	old := rowOf(3, time.Second)
	old.Class = "gone"
	stuck := lockAt(begin.Add(-time.Hour), begin, func(l *locksteward.Lock) {
		l.Target, l.Key, l.TTL, l.ExpireAt = "a", "lock:order:stuck", locksteward.NoExpiry, locksteward.NoExpireAt
	})
	candidate := lockAt(begin, begin, func(l *locksteward.Lock) { l.Target, l.Kind = "a", locksteward.KindCandidate })
	in := report.Input{
		Since: begin.Add(-time.Hour), Until: begin, Classes: classes,
		Rows: []report.Row{rowOf(40, time.Second), rowOf(20, 2*time.Second), old}, Open: []locksteward.Lock{stuck, candidate},
	}
	out := report.Build(in)
	if len(out.Classes) != 2 || out.Classes[0].Class != "gone" || !strings.Contains(strings.Join(out.Classes[0].Notes, " "), "not configured any more") {
		t.Fatalf("got %+v", out.Classes)
	}
	c := out.Classes[1]
	if c.Holds != 60 || c.Ended.Released != 60 || c.Team != "checkout" || *c.ExpectMs != 5000 || c.Contention != nil || c.Open != (api.OpenHolds{Locks: 1, WithoutTTL: 1}) {
		t.Errorf("got %+v", c)
	}
	// The lock that lasts is the worst, its age a minimum; each key is there once.
	if c.Longest == nil || c.Longest.How != "held" || c.Longest.AtLeastMs != 3_600_000 || c.Longest.AtMostMs != nil || c.Longest.Key.Key != "lock:order:stuck" {
		t.Errorf("longest %+v", c.Longest)
	}
	seen := map[string]bool{}
	for _, k := range c.Worst {
		if seen[k.Key.Key] {
			t.Errorf("%s is there twice", k.Key.Key)
		}
		seen[k.Key.Key] = true
	}
	if c.Worst[1].Holder != "billing@web-1:7" || c.Worst[1].How != "released" {
		t.Errorf("worst %+v", c.Worst[1])
	}
	in.OnlyClass = "orders"
	if out = report.Build(in); len(out.Classes) != 1 {
		t.Errorf("one class was asked for, got %d", len(out.Classes))
	}
	if out = report.Build(report.Input{}); out.Classes == nil || len(out.Classes) != 0 || len(out.Notes) != 1 {
		t.Errorf("nothing at all: %+v", out)
	}
}
