package report_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward/internal/report"
)

// The true quantile lies within the bounds, which are one bucket apart, and it
// survives the store and a merge of two halves.
func TestQuantiles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(math.Exp(rapid.Float64Range(0, math.Log(float64(200*24*time.Hour))).Draw(t, "log")))
		}), 1, 200).Draw(t, "durations")
		var a, b report.Histogram
		for i, d := range list {
			if i%2 == 0 {
				a.Add(d)
			} else {
				b.Add(d)
			}
		}
		a.Merge(b)
		raw, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var h report.Histogram
		if err := json.Unmarshal(raw, &h); err != nil {
			t.Fatal(err)
		}
		slices.Sort(list)
		if h.Count() != int64(len(list)) || h.Max() != list[len(list)-1].Truncate(time.Microsecond) {
			t.Fatalf("%d up to %s, want %d up to %s", h.Count(), h.Max(), len(list), list[len(list)-1])
		}
		beyond := rapid.Int64Range(0, 20).Draw(t, "beyond")
		q := rapid.Float64Range(0.01, 1).Draw(t, "q")
		rank := max(1, int(math.Ceil(q*float64(int64(len(list))+beyond))))
		low, high, ok := h.Quantile(q, beyond)
		if rank > len(list) {
			if ok {
				t.Fatalf("quantile %v is beyond, got %s to %s", q, low, high)
			}
			return
		}
		want := list[rank-1].Truncate(time.Microsecond)
		if !ok || want < low || want > high+time.Microsecond {
			t.Fatalf("quantile %v is %s, got %s to %s, %v", q, want, low, high, ok)
		}
		if low >= time.Millisecond && float64(high) > 1.05*float64(low) {
			t.Fatalf("bounds %s to %s are more than a bucket apart", low, high)
		}
	})
}

func TestHistogramTakesAnything(t *testing.T) {
	t.Parallel()
	var h report.Histogram
	if _, _, ok := h.Quantile(0.5, 0); ok {
		t.Error("a quantile of nothing")
	}
	for _, d := range []time.Duration{-time.Hour, 0, math.MinInt64, math.MaxInt64} {
		h.Add(d)
	}
	if low, high, ok := h.Quantile(0.5, 0); !ok || low != 0 || high > time.Millisecond {
		t.Errorf("median of impossible durations: %s to %s, %v", low, high, ok)
	}
	if h.Max() > 101*365*24*time.Hour {
		t.Errorf("max %s", h.Max())
	}
	for _, raw := range []string{`{"counts":{"-5":3,"999999":2,"4":-1,"7":2},"max_us":-4}`, `{"counts":{"7":2},"max_us":9223372036854775807}`} {
		var got report.Histogram
		if err := json.Unmarshal([]byte(raw), &got); err != nil {
			t.Fatal(err)
		}
		if got.Count() != 2 || got.Max() < 0 {
			t.Errorf("%s: %d up to %s", raw, got.Count(), got.Max())
		}
	}
	if err := json.Unmarshal([]byte(`{"counts":[1]}`), &h); err == nil {
		t.Error("a list of counts was taken")
	}
}

// A suggested value is one that a person would write, at least what was asked
// for, and not more than twice that above a tenth of a second.
func TestRoundUp(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "100ms", 340 * time.Millisecond: "500ms", 501 * time.Millisecond: "1s", 5801 * time.Millisecond: "10s", 31 * time.Second: "1m",
		61 * time.Second: "2m", 31 * time.Minute: "1h", 5 * time.Hour: "6h", 25 * time.Hour: "48h",
	} {
		if got := report.Show(report.RoundUp(d)); got != want {
			t.Errorf("RoundUp(%s) = %s, want %s", d, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(int64(100*time.Millisecond), int64(1000*time.Hour)).Draw(t, "d"))
		got := report.RoundUp(d)
		if got < d || got > 2*d+time.Nanosecond {
			t.Fatalf("RoundUp(%s) = %s", d, got)
		}
		if parsed, err := time.ParseDuration(report.Show(got)); err != nil || parsed != got {
			t.Fatalf("%s is written %q: %v", got, report.Show(got), err)
		}
	})
}
