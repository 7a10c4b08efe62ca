package scanner

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// fenceAhead is how far a fence may be ahead of the server's time, in which it
// is counted, to be believed: anybody with write access can write any number,
// and one that is far ahead would make all later ones look small.
const fenceAhead = 24 * time.Hour

// youngLooks is how often a hold may have been looked at that counts as new to a
// sweep: people may have looked before it.
const youngLooks = 3

// fences know the largest fences ever seen. All locks of a hash slot count with
// one counter (docs/wire-format.md §5), so at most 16,384 numbers cover every
// lock that ever was.
//
// A hold is compared with the largest fence if it was certainly acquired later,
// whatever the servers' clocks say: they are what goes wrong when a fence goes
// back. That is so for the next hold of the same key; and for another key if the
// complete sweep before this one did not meet the hold, while the largest fence
// had been seen before that sweep began.
type fences struct {
	tops map[string]high // by counter
	// foreign are the largest fences of locks of other libraries, by key.
	foreign map[string]high
	turn    int
	// before are the holds of the last sweep, if that was complete; else nil.
	before map[uint64]struct{}
	// dropped are the holds that went back, for as long as they last.
	dropped map[string]locksteward.FenceDrop
	seed    maphash.Seed
}

// high is the largest fence of one counter.
type high struct {
	fence int64
	id    string    // of the hold that had it
	key   string    // and of its lock, exact bytes
	at    time.Time // server time of the look that saw it first
	turn  int
}

// maxForeign bounds the locks of other libraries whose fences are remembered:
// each of them has a counter of its own.
const maxForeign = 10_000

// firstTurn is that of the first sweep: whatever was stored is older than the
// sweep before it.
const firstTurn = 2

func newFences() *fences {
	return &fences{
		tops: map[string]high{}, foreign: map[string]high{}, turn: firstTurn - 1, dropped: map[string]locksteward.FenceDrop{}, seed: maphash.MakeSeed(),
	}
}

// observe compares the fences of a sweep's locks with the largest from before it,
// takes in the new ones, and returns the holds that went back. counterOf names
// the counter of a lock ([source.Sweep.FenceCounter]).
func (f *fences) observe(sweep *locksteward.Sweep, counterOf func(key string) string) []locksteward.FenceDrop {
	f.turn++
	now := make(map[uint64]struct{}, len(f.before))
	fresh := map[string]high{}
	still := map[string]locksteward.FenceDrop{}
	for l := range sweep.AllLocks() {
		if l.Claim == nil && l.Fence > 0 && l.Kind != locksteward.KindCandidate {
			if drop, back := f.foreigner(l, sweep.At); back {
				still[drop.ID] = drop
			}
			continue
		}
		if l.Claim == nil || l.Claim.Fence <= 0 || l.Kind == locksteward.KindCandidate || time.UnixMicro(l.Claim.Fence).Sub(l.At) > fenceAhead {
			continue
		}
		hash := maphash.String(f.seed, l.Claim.ID)
		now[hash] = struct{}{}
		c := counterOf(l.Key)
		top := f.tops[c]
		if drop, known := f.dropped[l.Claim.ID]; known {
			still[l.Claim.ID] = drop
		} else if l.Claim.Fence <= top.fence && l.Claim.ID != top.id && f.later(l, hash, top) {
			still[l.Claim.ID] = locksteward.FenceDrop{
				DB: l.DB, Key: l.Key, ID: l.Claim.ID, Fence: l.Claim.Fence, Highest: top.fence, At: top.at,
				Counter: c,
			}
		}
		if l.Claim.Fence > fresh[c].fence {
			fresh[c] = high{fence: l.Claim.Fence, id: l.Claim.ID, key: l.Key, at: sweep.At, turn: f.turn}
		}
	}
	f.raise(fresh)
	f.before = nil
	if sweep.Complete() {
		f.before, f.dropped = now, still
	} else {
		maps.Copy(f.dropped, still)
	}
	return drops(still)
}

// later says that l was certainly acquired after the hold that has the largest
// fence.
func (f *fences) later(l *locksteward.Lock, hash uint64, top high) bool {
	if top.key == l.Key {
		return top.turn < f.turn // one lock, one hold at a time
	}
	_, met := f.before[hash]
	return f.before != nil && !met && l.History.Looks <= youngLooks && top.turn <= f.turn-2
}

// foreigner compares the fence of another library's lock with the largest one
// seen on its key: it counts for each lock alone, and only up.
func (f *fences) foreigner(l *locksteward.Lock, at time.Time) (locksteward.FenceDrop, bool) {
	top, known := f.foreign[l.Key]
	if l.Fence < top.fence {
		return locksteward.FenceDrop{
			DB: l.DB, Key: l.Key, ID: l.TokenDigest, Fence: l.Fence, Highest: top.fence, At: top.at,
		}, true
	}
	if l.Fence > top.fence && (known || len(f.foreign) < maxForeign) {
		f.foreign[l.Key] = high{fence: l.Fence, id: l.TokenDigest, key: l.Key, at: at}
	}
	return locksteward.FenceDrop{}, false
}

func (f *fences) raise(fresh map[string]high) {
	for c, top := range fresh {
		if top.fence > f.tops[c].fence {
			f.tops[c] = top
		}
	}
}

func drops(still map[string]locksteward.FenceDrop) []locksteward.FenceDrop {
	var out []locksteward.FenceDrop
	for _, drop := range still {
		out = append(out, drop)
	}
	slices.SortFunc(out, func(a, b locksteward.FenceDrop) int {
		return cmp.Or(cmp.Compare(a.DB, b.DB), cmp.Compare(a.Key, b.Key))
	})
	return out
}
