package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestHistogramIsExactToOnePercent(t *testing.T) {
	t.Parallel()
	h := &histogram{}
	for i := range 100_000 {
		h.add(time.Duration(i+1) * time.Microsecond)
	}
	other := &histogram{}
	other.merge(h)
	for _, q := range []float64{0.01, 0.5, 0.99, 0.999} {
		want := time.Duration(q*100_000) * time.Microsecond
		if got := other.quantile(q); got < want*99/100 || got > want*101/100 {
			t.Errorf("quantile %g is %s, want %s", q, got, want)
		}
	}
	for _, d := range []time.Duration{-1, 0, 1, 127, 128, 255, 256, 257, 511, 512, 99_999, time.Second, time.Minute} {
		if i := bucket(d); floor(i) > max(d, 0) || floor(i+1) <= d {
			t.Errorf("%d is in bucket %d of %d to %d", d, i, floor(i), floor(i+1))
		}
	}
}

func TestSeries(t *testing.T) {
	t.Parallel()
	s := series{3, 1, 2, 10}
	if s.median() != 2.5 || s.min() != 1 || s.max() != 10 {
		t.Errorf("%v: median %g, %g to %g", s, s.median(), s.min(), s.max())
	}
	if got := s.over(series{1, 2, 0, 5}); !slices.Equal(got, series{3, 0.5, 2}) {
		t.Errorf("ratios %v", got)
	}
	if got := turned([]int{1, 2, 3}, 4); !slices.Equal(got, []int{2, 3, 1}) {
		t.Errorf("turned %v", got)
	}
}

func TestMonitored(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		command string
		lua, ok bool
	}{
		"+1700000000.123456 [0 127.0.0.1:4711] \"GET\" \"k\"\r\n":      {"get", false, true},
		"+1700000000.123456 [0 lua] \"hset\" \"k\" \"[0 x] \\\"\"\r\n": {"hset", true, true},
		"-ERR\r\n": {"", false, false},
	} {
		command, lua, ok := monitored(line)
		if command != want.command || lua != want.lua || ok != want.ok {
			t.Errorf("%q: %q %v %v", line, command, lua, ok)
		}
	}
}

// ms makes a turn out of milliseconds.
func ms(waiter int, wanted, acquired, releasing, released time.Duration) hold {
	const m = time.Millisecond
	return hold{waiter, wanted * m, acquired * m, releasing * m, released * m}
}

func TestFactsOfHolds(t *testing.T) {
	t.Parallel()
	l := &holdLog{
		waiters: 4,
		holds: []hold{
			ms(0, 0, 1, 10, 12),
			ms(1, 5, 20, 30, 31),   // handed over: 10 from the call, 8 from the return; came before 2
			ms(3, 25, 32, 40, 41),  // overtakes 2, which waits since 6
			ms(2, 6, 45, 50, 51),   // waited 39
			ms(2, 52, 53, 60, 61),  // the same again: nothing was handed over, and 1 waits since 51.5
			ms(0, 65, 66, 67, 68),  // came after the release
			ms(0, 69, 100, 101, 1), // behind the window
		},
		cut: []time.Duration{51 * time.Millisecond},
	}
	f, err := l.facts(15*time.Millisecond, 90*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if f.holds != 5 || f.smallest != 1 || f.largest != 2 {
		t.Errorf("%d holds, shares %d to %d", f.holds, f.smallest, f.largest)
	}
	if want := []time.Duration{10e6, 2e6, 5e6}; !slices.Equal(f.fromCall, want) {
		t.Errorf("hand-offs %v, want %v", f.fromCall, want)
	}
	if want := []time.Duration{8e6, 1e6, 4e6}; !slices.Equal(f.fromReturn, want) {
		t.Errorf("hand-offs from the return %v, want %v", f.fromReturn, want)
	}
	if f.longest != 39*time.Millisecond {
		t.Errorf("longest wait %s", f.longest)
	}
	// 2 was overtaken by 3; the one cut off began within the slack of the second
	// turn of 2, and long before that of 0.
	if f.inversions != 2 {
		t.Errorf("%d inversions", f.inversions)
	}
}

func TestFactsNoticeTwoHolders(t *testing.T) {
	t.Parallel()
	l := &holdLog{waiters: 2, holds: []hold{ms(0, 0, 1, 10, 11), ms(1, 0, 9, 20, 21)}}
	if _, err := l.facts(0, time.Second); err == nil || !strings.Contains(err.Error(), "two held") {
		t.Errorf("error %v", err)
	}
	if _, err := (&holdLog{waiters: 1}).facts(0, time.Second); err == nil {
		t.Error("a lock that nobody gets is fine")
	}
}

func TestPromisesAreJudged(t *testing.T) {
	t.Parallel()
	r := &report{
		Settings: settings{Waiters: 32, Held: 10_000, TTL: 30 * time.Second},
		Pairs: []*pairsRow{
			{Library: plainName, Goroutines: 16, PerSecond: series{90, 200, 90}},
			{Library: bareName, Goroutines: 16, PerSecond: series{100, 100, 100}},
			{Library: plainName, Goroutines: 64, PerSecond: series{90, 200, 90}},
			{Library: bareName, Goroutines: 64, PerSecond: series{100, 100, 100}},
			{Library: bareName, Goroutines: 1, P50: series{150}},
		},
		Handoff: []*handoffRow{{
			Library: plainName, Hold: time.Millisecond, Fairness: series{0.95}, Inversions: series{0}, FromCall50: series{200},
			Held: series{1100}, LongestWait: series{45}, Commands: series{3.2},
		}},
		Renewal: []*renewalRow{{Library: plainName, ClientCPU: series{12}}},
	}
	kept := map[string]bool{}
	for _, p := range judge(r) {
		kept[p.What] = p.Kept
	}
	want := map[string]bool{
		plainName + " / " + bareName + ", 16 goroutines":                         true,
		plainName + " / " + bareName + ", 64 goroutines":                         false,
		plainName + ", holds of 1ms: commands sent per hold":                     false,
		plainName + ", holds of 1ms: smallest share / largest":                   true,
		plainName + ", holds of 1ms: FIFO inversions in the worst round":         true,
		plainName + ", holds of 1ms: longest wait / waiters × (hold + hand-off)": true,
		plainName + ", holds of 1ms: hand-off p50 / one bare script round trip":  false,
		plainName + ": 10,000 locks renewed, client CPU":                         false,
	}
	if len(kept) != len(want) {
		t.Errorf("judged %v", kept)
	}
	for what, k := range want {
		if got, judged := kept[what]; !judged || got != k {
			t.Errorf("%s: kept %v, judged %v", what, got, judged)
		}
	}
}
