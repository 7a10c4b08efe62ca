package main

import (
	"math/bits"
	"time"
)

// histogram counts durations in buckets that are less than 1 % wide, without
// allocating: what is allocated while a cell runs counts against the library.
type histogram struct {
	counts [32 << fineBits]uint32
	n      int
}

// fineBits is how many bits below its first one a duration keeps.
const fineBits = 7

func (h *histogram) add(d time.Duration) {
	h.counts[bucket(d)]++
	h.n++
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.n += other.n
}

// quantile returns the middle of the bucket that has the q-th part of all.
func (h *histogram) quantile(q float64) time.Duration {
	rank := int(q * float64(h.n))
	for i, n := range h.counts {
		if rank -= int(n); rank < 0 {
			low, high := floor(i), floor(i+1)
			return (low + high) / 2
		}
	}
	return 0
}

// bucket keeps small durations as they are, and of others the highest bits.
func bucket(d time.Duration) int {
	v := uint64(max(d, 0))
	shift := max(bits.Len64(v)-fineBits-1, 0)
	return min(shift<<fineBits+int(v>>shift), len(histogram{}.counts)-1)
}

// floor is the least duration of a bucket.
func floor(i int) time.Duration {
	shift := max(i>>fineBits-1, 0)
	return time.Duration(i-shift<<fineBits) << shift
}
