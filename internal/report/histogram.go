package report

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"
)

// perOctave is how many buckets a doubling has: neighbouring edges are 4.4 %
// apart, which is how far a quantile's bound may be from the true one.
const perOctave = 16

// lowest is what the first bucket holds less than.
const lowest = time.Millisecond

// longest is what a longer duration counts as.
const longest = 100 * 365 * 24 * time.Hour

// Histogram counts durations in logarithmic buckets from 1 ms on. The zero
// Histogram is empty.
type Histogram struct {
	counts map[int]int64
	total  int64
	most   time.Duration
}

// bucketOf returns 0 for less than 1 ms, and i for durations in
// [2^((i-1)/16), 2^(i/16)) milliseconds.
func bucketOf(d time.Duration) int {
	if d < lowest {
		return 0
	}
	i := 1 + int(math.Floor(perOctave*math.Log2(float64(d)/float64(lowest))))
	// Logarithms of the edges themselves may fall to either side.
	for edge(i) <= d {
		i++
	}
	for i > 1 && edge(i-1) > d {
		i--
	}
	return i
}

// edge returns the upper edge of bucket i.
func edge(i int) time.Duration {
	return time.Duration(math.Round(float64(lowest) * math.Exp2(float64(i)/perOctave)))
}

// Add counts d; what is negative counts as 0.
func (h *Histogram) Add(d time.Duration) {
	d = min(max(0, d), longest)
	if h.counts == nil {
		h.counts = map[int]int64{}
	}
	h.counts[bucketOf(d)]++
	h.total++
	h.most = max(h.most, d)
}

// Merge adds the counts of other.
func (h *Histogram) Merge(other Histogram) {
	if h.counts == nil && len(other.counts) > 0 {
		h.counts = map[int]int64{}
	}
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
	h.most = max(h.most, other.most)
}

// Clone returns a copy that shares nothing.
func (h Histogram) Clone() Histogram {
	h.counts = maps.Clone(h.counts)
	return h
}

// Count returns how many durations were added.
func (h Histogram) Count() int64 { return h.total }

// Max returns the longest, exactly.
func (h Histogram) Max() time.Duration { return h.most }

// Quantile returns between which durations the quantile q in (0, 1] lies, if
// beyond more durations, longer than any, were counted too; false if the quantile
// is one of those, or nothing was counted. It is the smallest duration that at
// least q of all do not exceed.
func (h Histogram) Quantile(q float64, beyond int64) (low, high time.Duration, ok bool) {
	rank := int64(math.Ceil(q * float64(h.total+beyond)))
	rank = max(1, rank)
	if rank > h.total {
		return 0, 0, false
	}
	if rank == h.total && beyond == 0 {
		return h.most, h.most, true
	}
	for _, i := range slices.Sorted(maps.Keys(h.counts)) {
		if rank -= h.counts[i]; rank <= 0 {
			if i > 0 {
				low = edge(i - 1)
			}
			return min(low, h.most), min(edge(i), h.most), true
		}
	}
	return 0, 0, false
}

// encoded is how a histogram is stored.
type encoded struct {
	Counts map[int]int64 `json:"counts,omitempty"`
	MaxUs  int64         `json:"max_us,omitempty"`
}

// MarshalJSON writes buckets and the longest.
func (h Histogram) MarshalJSON() ([]byte, error) {
	return json.Marshal(encoded{Counts: h.counts, MaxUs: h.most.Microseconds()})
}

// UnmarshalJSON reads what MarshalJSON wrote. Counts that are negative or of
// impossible buckets are dropped.
func (h *Histogram) UnmarshalJSON(raw []byte) error {
	var e encoded
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	*h = Histogram{most: time.Duration(max(0, min(e.MaxUs, longest.Microseconds()))) * time.Microsecond}
	for i, n := range e.Counts {
		if n <= 0 || i < 0 || i > bucketOf(longest) {
			continue
		}
		if h.counts == nil {
			h.counts = map[int]int64{}
		}
		h.counts[i] = n
		h.total += n
	}
	return nil
}
