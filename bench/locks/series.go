package main

import (
	"encoding/json"
	"slices"
	"time"
)

// series is one number of each round.
type series []float64

func (s *series) add(x float64) { *s = append(*s, x) }

// median is that of an even number of rounds too: the mean of the middle two.
func (s series) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

func (s series) min() float64 {
	if len(s) == 0 {
		return 0
	}
	return slices.Min(s)
}

func (s series) max() float64 {
	if len(s) == 0 {
		return 0
	}
	return slices.Max(s)
}

// over returns the ratios round by round, each to what was measured beside it.
func (s series) over(other series) series {
	var ratios series
	for i := range min(len(s), len(other)) {
		if other[i] != 0 {
			ratios.add(s[i] / other[i])
		}
	}
	return ratios
}

// MarshalJSON writes the summary and every round.
func (s series) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Median float64   `json:"median"`
		Min    float64   `json:"min"`
		Max    float64   `json:"max"`
		Rounds []float64 `json:"rounds"`
	}{s.median(), s.min(), s.max(), s})
}

// quantile returns the q-th of durations, 0 without any. It sorts them.
func quantile(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[min(int(q*float64(len(list))), len(list)-1)]
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
