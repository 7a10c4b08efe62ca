package redis

import (
	"math"
	"testing"
)

// TestTogether compares with the size that takes the fewest questions per key of all
// sizes that are powers of two.
func TestTogether(t *testing.T) {
	t.Parallel()
	for p, want := range map[share]int{0: 1, 0.5: 1, 0.8: 4, 0.9: 4, 0.95: 4, 0.98: 8, 0.995: 16, 1: maxTogether} {
		got := together(p)
		if got != want {
			t.Errorf("%v: %d, want %d", p, got, want)
		}
		each := func(n float64) float64 {
			if n == 1 {
				return 1
			}
			return 1/n + 1 - math.Pow(float64(p), n)
		}
		for n := 1.0; n <= maxTogether; n *= 2 {
			if each(n) < each(float64(got))-1e-12 {
				t.Errorf("%v: %d takes %v questions per key, %v takes %v", p, got, each(float64(got)), n, each(n))
			}
		}
	}
}

// What pushes reported a key says how likely it is over.
func TestVanishedByWhatIsKnown(t *testing.T) {
	t.Parallel()
	once, twice := workItem{pushes: 1}, workItem{pushes: 1}
	twice.merge(workItem{pushes: 1})
	for range 300 {
		twice.merge(workItem{pushes: 1})
	}
	var v goneRates
	seen := map[int]bool{}
	for _, e := range []*workItem{&once, &twice} {
		for _, known := range []bool{false, true} {
			seen[v.index(e, known)] = true
		}
	}
	if len(seen) != len(v) || twice.pushes != 2 {
		t.Errorf("kinds %v, pushes %d", seen, twice.pushes)
	}
	// Metadata that is written with its lock is no second push of the lock.
	n := &nodeWatch{w: &watcher{s: &Source{prefixes: []string{"locksteward:"}}}}
	meta, _ := n.itemFor("locksteward:hold:{lock:a}")
	if meta.pushes != 0 || meta.key != "lock:a" {
		t.Errorf("metadata: %+v", meta)
	}
}
