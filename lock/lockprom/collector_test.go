package lockprom

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/locksteward/locksteward/lock"
)

// story is a sequence with every kind of event and every way a hold ends.
func story() []lock.Event {
	const c = "orders"
	ms := time.Millisecond
	ev := func(kind lock.EventKind, id string, took time.Duration, err error) lock.Event {
		return lock.Event{Kind: kind, Key: "lock:order:" + id, Class: c, ID: id, Took: took, Err: err}
	}
	lostAs := func(r lock.Reason) error { return &lock.LostError{Reason: r} }
	contended := ev(lock.EventAcquired, "2", 20*ms, nil)
	contended.Contended = true
	late := ev(lock.EventRenewed, "1", ms, nil)
	late.Late = 2 * time.Second
	refused := ev(lock.EventHeld, "3", 2*ms, &lock.HeldError{})
	refused.Contended = true
	return []lock.Event{
		ev(lock.EventAcquired, "1", 2*ms, nil),
		ev(lock.EventReentered, "1", ms, nil),
		ev(lock.EventRenewed, "1", ms, nil),
		late,
		ev(lock.EventReleased, "1", 500*ms, nil),
		// Lost by MaxHold, and released by its holder later.
		contended,
		ev(lock.EventLost, "2", 2*time.Second, lostAs(lock.ReasonMaxHold)),
		ev(lock.EventReleased, "2", 3*time.Second, nil),
		refused,
		ev(lock.EventAcquireFailed, "4", time.Second, fmt.Errorf("%w: timeout", lock.ErrUnknown)),
		ev(lock.EventCleaned, "4", 5*ms, nil),
		// A release of unknown outcome, tried again.
		ev(lock.EventAcquired, "5", 2*ms, nil),
		ev(lock.EventRenewFailed, "5", ms, fmt.Errorf("%w: timeout", lock.ErrUnknown)),
		ev(lock.EventReleaseUnknown, "5", 600*ms, lock.ErrUnknown),
		ev(lock.EventReleaseUnknown, "5", 700*ms, lock.ErrUnknown),
		ev(lock.EventReleased, "5", 800*ms, nil),
		ev(lock.EventCleanFailed, "5", time.Second, lock.ErrUnknown),
		// The loss is told before the acquire is.
		ev(lock.EventLost, "6", ms, lostAs(lock.ReasonForced)),
		ev(lock.EventAcquired, "6", ms, nil),
		// Taken before anybody looked.
		ev(lock.EventReleased, "0", time.Hour, nil),
		ev(lock.EventAcquired, "7", ms, nil), // still held
		{Kind: lock.EventBeatFailed, Err: errors.New("x")},
		{Kind: lock.EventPushFailed, Err: errors.New("x")},
	}
}

// fault: 4
func TestGolden(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Buckets: []float64{0.01, 1}, ConstLabels: prometheus.Labels{"target": "main"}})
	b.feed(story()...)
	file := filepath.Join("testdata", "story.txt")
	if *update {
		if err := os.WriteFile(file, []byte(scrape(t, b.reg, "")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := testutil.GatherAndCompare(b.reg, bytes.NewReader(raw)); err != nil {
		t.Error(err)
	}
}

// TestHoldsAddUp is the invariant of the package comment.
func TestHoldsAddUp(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.feed(story()...)
	s := samples(t, b.reg)
	sum := s[`locks_held{class="orders"}`]
	for _, outcome := range outcomeNames {
		n := s[`releases_total{class="orders",outcome="`+outcome+`"}`]
		if n != s[`hold_seconds_count{class="orders",outcome="`+outcome+`"}`] {
			t.Errorf("%s: hold times and releases differ", outcome)
		}
		sum += n
	}
	if got := s[`acquired_total{class="orders"}`]; got != sum || got != 5 {
		t.Errorf("acquired %g, held or ended %g, want 5 each", got, sum)
	}
	calls := s[`acquired_total{class="orders"}`] + s[`acquire_reentered_total{class="orders"}`]
	for name, v := range s {
		if strings.HasPrefix(name, "acquire_failures_total{") {
			calls += v
		}
	}
	if got := s[`acquire_attempts_total{class="orders"}`]; got != calls {
		t.Errorf("attempts %g, their ends %g", got, calls)
	}
}

// TestEarlyLossesAreBounded shows that losses without an acquire are forgotten.
func TestEarlyLossesAreBounded(t *testing.T) {
	t.Parallel()
	c := New()
	w := c.newWatch()
	for i := range 10_000 {
		w.observe(lock.Event{Kind: lock.EventLost, ID: fmt.Sprint(i)})
	}
	total := 0
	for i := range w.holds.shards {
		total += len(w.holds.shards[i].early)
	}
	if total > shardCount*earlyPerShard {
		t.Errorf("%d losses are remembered", total)
	}
}

// TestOddEvents shows that what should not be does no harm.
func TestOddEvents(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	take := lock.Event{Kind: lock.EventAcquired, Class: "c", ID: "1", Took: -time.Second}
	b.feed(take, take)
	want(t, b.reg, map[string]float64{
		`locks_held{class="c"}`: 1, `wait_seconds_sum{class="c",result="acquired"}`: 0,
	})
	b.feed(lock.Event{Kind: lock.EventReleased, Class: "c", ID: "1"}, lock.Event{Kind: lock.EventReleased, Class: "c"})
	want(t, b.reg, map[string]float64{
		`locks_held{class="c"}`: 0, `releases_total{class="c",outcome="released"}`: 1,
	})
}

// TestEventsOnTheirWay reach a watch that was stopped, at either moment.
func TestEventsOnTheirWay(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Classes: []string{"c"}})
	w := b.newWatch()
	take := lock.Event{Kind: lock.EventAcquired, Class: "c", ID: "1"}
	w.holds.close() // after the event has looked whether the watch is over
	w.observe(take)
	want(t, b.reg, map[string]float64{`acquired_total{class="c"}`: 1, `locks_held{class="c"}`: 0})
	w.stop()
	w.observe(take)
	want(t, b.reg, map[string]float64{`acquired_total{class="c"}`: 1, `locks_held{class="c"}`: 0})
}

func TestPromlint(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Classes: []string{"orders"}})
	b.feed(story()...)
	problems, err := testutil.GatherAndLint(b.reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestAllSeriesAtFirstSight shows that rates need not wait for a first failure.
func TestAllSeriesAtFirstSight(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Classes: []string{"orders"}})
	first := samples(t, b.reg)
	for name, v := range first {
		if v != 0 {
			t.Errorf("%s = %g before any event", name, v)
		}
	}
	b.feed(story()...)
	for name := range samples(t, b.reg) {
		if _, ok := first[name]; !ok {
			t.Errorf("%s was not there from the start", name)
		}
	}
	if n := len(first); n > 160 {
		t.Errorf("%d series for one class", n)
	}
}

func TestClassesAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{MaxClasses: 3, Classes: []string{"a"}})
	take := func(class string) lock.Event { return lock.Event{Kind: lock.EventAcquired, Class: class} }
	b.feed(take(""), take("default"), take("_other"), take("a"), take("b"), take("c"), take("d"), take("b"), take("\xff"))
	want(t, b.reg, map[string]float64{
		`acquired_total{class="a"}`:       1,
		`acquired_total{class="default"}`: 2,
		`acquired_total{class="b"}`:       2,
		`acquired_total{class="_other"}`:  4,
	})
	if n := testutil.CollectAndCount(b, "locksteward_client_acquired_total"); n != 4 {
		t.Errorf("%d classes, want 3 and _other", n)
	}
}

func TestDefaultLimitOfClasses(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 100 {
				b.feed(lock.Event{Kind: lock.EventAcquired, Class: fmt.Sprint("class-", (i+25*g)%100)})
			}
		})
	}
	wg.Wait()
	if n := testutil.CollectAndCount(b, "locksteward_client_acquired_total"); n != DefaultMaxClasses+1 {
		t.Errorf("%d classes, want %d and _other", n, DefaultMaxClasses)
	}
	sum := 0.0
	for name, v := range samples(t, b.reg) {
		if strings.HasPrefix(name, "acquired_total{") {
			sum += v
		}
	}
	if sum != 400 {
		t.Errorf("%g acquired, want 400: folding loses counts", sum)
	}
}

// TestHostileClasses shows that no class breaks a scrape or poses as a series.
func TestHostileClasses(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	long := strings.Repeat("é", 4096)
	for _, class := range []string{"a\xffb", "a\xfeb", "}\n\x00evil 1\n", long, long + "x", strings.Repeat("\x80", 5000)} {
		b.feed(lock.Event{Kind: lock.EventAcquired, Class: class})
		if f := fit(class); !utf8.ValidString(f) || len(f) > 2*maxClassBytes || f == "" {
			t.Errorf("class %.20q is shown as %q", class, f)
		}
	}
	for line := range strings.Lines(scrape(t, b.reg, "")) {
		if strings.HasPrefix(line, "evil") {
			t.Errorf("a class became a line: %q", line)
		}
	}
	want(t, b.reg, map[string]float64{
		"acquired_total{class=\"a\uFFFDb\"}":                           2,
		`acquired_total{class="` + strings.Repeat("é", 64) + `"}`:      2,
		"acquired_total{class=\"}\\n\x00evil 1\\n\"}":                  1,
		"acquired_total{class=\"" + strings.Repeat("\uFFFD", 1) + `"}`: 1,
	})
}

// TestNoKeyInAScrape gives every text of an event a canary.
func TestNoKeyInAScrape(t *testing.T) {
	t.Parallel()
	const canary = "CANARY"
	b := setup(t, Options{})
	for _, e := range story() {
		e.Key, e.ID, e.Trace = canary+e.Key, canary+e.ID, canary
		e.Err = &lock.ServerError{Op: canary, Key: canary, Code: lock.Code(canary), Err: errors.Join(e.Err, errors.New(canary))}
		b.feed(e)
	}
	b.feed(lock.Event{Kind: lock.EventLost, Err: &lock.LostError{Key: canary, ID: canary, Reason: canary}})
	for _, accept := range []string{"", "application/openmetrics-text; version=1.0.0"} {
		if text := scrape(t, b.reg, accept); strings.Contains(text, canary) {
			t.Error("a scrape shows a key, an id, a trace or an error")
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	_, err := NewWithOptions(Options{
		MaxClasses:  -1,
		ConstLabels: prometheus.Labels{"class": "x", "a-b": "x", "__x": "x", "ok": "\xff"},
		Buckets:     []float64{1, 1},
	}, nil)
	if !errors.Is(err, lock.ErrInvalid) {
		t.Fatalf("err = %v", err)
	}
	for _, words := range []string{
		"MaxClasses: want 1 to 1000, got -1", `ConstLabels: "class"`, `ConstLabels: "a-b"`, `ConstLabels: "__x"`,
		`ConstLabels["ok"]`, "Buckets[1]: want more than 1 before it, got 1", "clients[0]: is nil",
	} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("%q is not in %v", words, err)
		}
	}
	if _, err := NewWithOptions(Options{MaxClasses: 1, Classes: []string{"a", "b"}}); err == nil {
		t.Error("more classes than MaxClasses were taken")
	}
	New(nil, nil).Close() // left out
}

// TestOptionsAreCopied shows that a caller may go on with its map and slices.
func TestOptionsAreCopied(t *testing.T) {
	t.Parallel()
	o := Options{ConstLabels: prometheus.Labels{"target": "a"}, Buckets: []float64{1, 2}}
	b := setup(t, o)
	o.ConstLabels["target"], o.Buckets[0] = "b", 7
	b.feed(lock.Event{Kind: lock.EventAcquired, Class: "c", Took: time.Second})
	want(t, b.reg, map[string]float64{
		`wait_seconds_bucket{class="c",result="acquired",target="a",le="1"}`: 1,
	})
}

// TestObserveAndGather runs events, scrapes and new classes side by side; -race
// is what looks.
func TestObserveAndGather(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	const workers, rounds = 8, 200
	var writers, readers sync.WaitGroup
	for g := range workers {
		writers.Go(func() {
			for i := range rounds {
				id, class := fmt.Sprintf("%d-%d", g, i), fmt.Sprint("class-", i%40)
				b.feed(
					lock.Event{Kind: lock.EventAcquired, Class: class, ID: id, Took: time.Millisecond, Trace: parent},
					lock.Event{Kind: lock.EventRenewed, Class: class, ID: id},
					lock.Event{Kind: lock.EventReleased, Class: class, ID: id, Took: time.Second, Trace: parent},
					lock.Event{Kind: lock.EventHeld, Class: class, ID: id, Err: &lock.HeldError{}},
				)
			}
		})
	}
	done := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					if _, err := b.reg.Gather(); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	sums := map[string]float64{}
	for name, v := range samples(t, b.reg) {
		family, _, _ := strings.Cut(name, "{")
		sums[family] += v
	}
	for family, n := range map[string]float64{
		"acquire_attempts_total": 2 * workers * rounds, "acquired_total": workers * rounds, "renewals_total": workers * rounds,
		"releases_total": workers * rounds, "acquire_failures_total": workers * rounds, "locks_held": 0,
	} {
		if sums[family] != n {
			t.Errorf("%s adds up to %g, want %g", family, sums[family], n)
		}
	}
}

// TestDescribeIsTheTable compares what a registry is told with Metrics.
func TestDescribeIsTheTable(t *testing.T) {
	t.Parallel()
	ch := make(chan *prometheus.Desc, 100)
	New().Describe(ch)
	close(ch)
	described := map[string]bool{}
	for d := range ch {
		described[d.String()] = true
	}
	for _, m := range Metrics() {
		text := prometheus.NewDesc(m.Name, m.Help, m.Labels, nil).String()
		if !described[text] {
			t.Errorf("%s is not described as the table says", m.Name)
		}
		delete(described, text)
	}
	if len(described) > 0 {
		t.Errorf("not in the table: %v", slices.Sorted(maps.Keys(described)))
	}
}
