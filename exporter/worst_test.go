package exporter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/exporter"
)

// aged returns a lock of ours that was taken so many seconds before t0.
func aged(class, key string, seconds int, edit ...func(*locksteward.Lock)) locksteward.Lock {
	taken := t0.Add(-time.Duration(seconds) * time.Second)
	return lock(class, key, append([]func(*locksteward.Lock){claimed(key, taken, locksteward.Claim{})}, edit...)...)
}

// ages returns the series of single locks, by "class key".
func ages(t *testing.T, e *exporter.Exporter) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	families, err := e.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "locksteward_lock_age_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			out[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = m.GetGauge().GetValue()
		}
	}
	return out
}

func wantAges(t *testing.T, e *exporter.Exporter, wanted map[string]float64) {
	t.Helper()
	if got := ages(t, e); fmt.Sprint(got) != fmt.Sprint(wanted) {
		t.Errorf("series of single locks are %v, want %v", got, wanted)
	}
}

func TestSingleLocksAreOffByDefault(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	e.ObserveSweep(sweep(0, aged("a", "a:1", 5)))
	wantAges(t, e, map[string]float64{})
}

func TestOnlyTheWorstLocksHaveSeries(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{TopLocks: 2}, "a")
	e.ObserveSweep(sweep(0, aged("a", "a:1", 5), aged("a", "a:2", 50), aged("a", "a:3", 500), lock("a", "a:4")))
	wantAges(t, e, map[string]float64{"a a:3": 500, "a a:2": 50})

	// Of all targets together, not of each.
	other := sweep(0, aged("a", "b:1", 100))
	other.Target = "n"
	e.ObserveSweep(other)
	wantAges(t, e, map[string]float64{"a a:3": 500, "a b:1": 100})

	// What is over goes at once; the next one follows with the next sweep.
	gone := sweep(1).Update()
	gone.Endings = []locksteward.Ending{{Lock: aged("a", "a:3", 500), How: locksteward.EndedReleased}}
	e.ObserveWatch(gone)
	wantAges(t, e, map[string]float64{"a b:1": 100, "a a:2": 50})
	e.ObserveSweep(sweep(1, aged("a", "a:1", 5, at(later(1))), aged("a", "a:2", 50, at(later(1)))))
	wantAges(t, e, map[string]float64{"a b:1": 100, "a a:2": 80})

	// One that the sweep did not reach may still be there.
	cut := sweep(2, aged("a", "a:1", 5, at(later(2))))
	cut.Masters[0].Complete = false
	e.ObserveSweep(cut)
	wantAges(t, e, map[string]float64{"a b:1": 100, "a a:2": 80})
	// A look in between makes it older, once.
	look := sweep(2, aged("a", "a:2", 50, at(later(10)))).Update()
	e.ObserveRecheck(look)
	wantAges(t, e, map[string]float64{"a a:2": 350, "a b:1": 100})

	e.RemoveTarget("n")
	e.ObserveSweep(locksteward.Sweep{Target: "m"}) // away
	wantAges(t, e, map[string]float64{})
}

// fault: 53
func TestNamesOfKeysAreBoundedAndEscaped(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("長", 300)
	keys := []string{"a:\n\xff\"}", long + "1", long + "2", "a:plain", strings.Repeat("\x00", 200)}
	e := newExporter(t, exporter.Config{TopLocks: 100}, "a")
	s := sweep(0)
	for i, key := range keys {
		s.Locks = append(s.Locks, aged("a", key, 10+i))
	}
	s.Locks = append(s.Locks, aged("a", "a:plain", 3, func(l *locksteward.Lock) { l.DB = 7 }), aged("gone", `x\n`, 2), aged("a", "x\n", 1))
	e.ObserveSweep(s)
	got := ages(t, e)
	if len(got) != len(keys)+3 {
		t.Errorf("%d series, want %d: two names became one: %v", len(got), len(keys)+3, got)
	}
	for name := range got {
		key := name[strings.IndexByte(name, ' ')+1:]
		if len(key) > 128 || strings.ContainsAny(key, "\n\x00") || !utf8.ValidString(key) {
			t.Errorf("key %q (%d bytes) is no label", key, len(key))
		}
	}
	for name, age := range map[string]float64{"a a:plain": 13, "a db7:a:plain": 3, `_other x\\n`: 2, `a x\n`: 1, `a a:\n\xff"}`: 10} {
		if got[name] != age {
			t.Errorf("%s is %v, want %v", name, got[name], age)
		}
	}
}

func TestNamesOfKeysAsHashes(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{TopLocks: 5, KeyNames: exporter.KeyNamesHash}, "a")
	e.ObserveSweep(sweep(0, aged("a", "lock:order:42", 5)))
	// printf lock:order:42 | sha256sum
	wantAges(t, e, map[string]float64{"a sha256:ad3ab9f103135c32": 5})
}

func TestTopLocksAreBounded(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]exporter.Config{
		"top_locks: got 101":     {TopLocks: 101},
		"top_locks: got -1":      {TopLocks: -1},
		`key_names: got "short"`: {KeyNames: "short"},
	} {
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate = %v, want %s", err, want)
		}
		set, err := class.NewSet(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := exporter.New(cfg, set, exporter.BuildInfo{}); err == nil {
			t.Errorf("New takes %+v", cfg)
		}
	}
}
