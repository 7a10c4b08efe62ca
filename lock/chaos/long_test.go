package chaos_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/lockcheck"
)

func allNemeses() []nemesis {
	return slices.Concat(processNemeses, networkNemeses, serverNemeses, dataNemeses, clockNemeses, sentinelNemeses, clusterNemeses)
}

// roundLength is how long the nemeses of one round go on striking. A round has a
// deployment and a history of its own, so that what failed is small enough to be
// read.
const roundLength = 20 * time.Second

// TestLong strikes at random until -chaos.duration is over: rounds with one
// topology each, and in each round nemeses of about the same damage, so that
// those that must not break exclusion are judged by that.
func TestLong(t *testing.T) {
	if *longFor <= 0 {
		t.Skip("only with -chaos.duration")
	}
	if *only != "" && topologies[*only] == nil {
		t.Fatalf("-chaos.topology: %q is none of %v", *only, slices.Sorted(maps.Keys(topologies)))
	}
	rng := rand.New(rand.NewPCG(*seed, 3))
	said("seed %d, %s", *seed, *longFor)
	var sum totals
	began := time.Now()
	for round := 1; time.Since(began) < *longFor; round++ {
		set := draw(rng)
		name := fmt.Sprintf("round %d, %s", round, set[0].topology)
		ok := t.Run(name, func(t *testing.T) {
			b := topologies[set[0].topology](t)
			b.rng = rand.New(rand.NewPCG(*seed, uint64(round)))
			if b.cluster == nil {
				b.locks = nil
				for i := range 8 {
					b.locks = append(b.locks, fmt.Sprintf("lock:%d", i))
				}
			}
			for _, n := range set {
				if n.prepare != nil {
					n.prepare(b)
				}
			}
			b.work(16)
			b.progress(10)
			struck := besiege(b, set, rng, &sum)
			b.halt()
			b.judge(struck...)
			sum.add(b.rec.History())
		})
		if !ok {
			t.Fatalf("seed %d: %s failed; it is made again with -chaos.seed=%d", *seed, name, *seed)
		}
	}
	said("seed %d, done after %s: %s", *seed, time.Since(began).Round(time.Second), sum)
	if sum.late == 0 {
		t.Error("the control shows no late write in all that time: this suite would not see one")
	}
}

// draw returns the nemeses of one round: of one topology and one damage.
func draw(rng *rand.Rand) []nemesis {
	groups := map[string][]nemesis{}
	all := allNemeses()
	if *only != "" {
		all = slices.DeleteFunc(all, func(n nemesis) bool { return n.topology != *only })
	}
	for _, n := range all {
		key := fmt.Sprint(n.topology, n.damage)
		groups[key] = append(groups[key], n)
	}
	names := slices.Sorted(maps.Keys(groups))
	// By the number of nemeses, so that each comes about as often as any other.
	at := rng.IntN(len(all))
	for _, name := range names {
		if at < len(groups[name]) {
			return groups[name]
		}
		at -= len(groups[name])
	}
	return nil
}

// besiege strikes for a round, and returns what struck.
func besiege(b *bed, set []nemesis, rng *rand.Rand, sum *totals) (struck []nemesis) {
	began, told := time.Now(), time.Now()
	for time.Since(began) < roundLength {
		n := set[rng.IntN(len(set))]
		n.strike(b)
		b.progress(5)
		struck = append(struck, n)
		sum.strikes++
		pause(time.Duration(rng.IntN(500)) * time.Millisecond)
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			h := b.rec.History()
			said("%s: %s after %s; %d acquisitions, %d failed, %d writes in this round; before it: %s",
				b.t.Name(), n.name, time.Since(began).Round(time.Second), len(h.Holds), len(h.Attempts), len(h.Fenced), sum)
		}
	}
	return struck
}

// totals count over all rounds.
type totals struct{ rounds, strikes, holds, failed, writes, late int }

func (s *totals) add(h lockcheck.History) {
	s.rounds++
	s.holds += len(h.Holds)
	s.failed += len(h.Attempts)
	s.writes += len(h.Fenced)
	s.late += len(lockcheck.Store(h.Unfenced))
}

func (s totals) String() string {
	return fmt.Sprintf("%d rounds, %d strikes, %d acquisitions, %d failed acquires, %d writes, %d late writes taken by the control",
		s.rounds, s.strikes, s.holds, s.failed, s.writes, s.late)
}

// said tells who waits; go test -v shows the log of a test only at its end.
func said(format string, args ...any) {
	fmt.Fprintln(os.Stderr, "chaos:", strings.TrimSpace(fmt.Sprintf(format, args...)))
}
