package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/plural"
)

// Enough is how many holds must have ended before anything is suggested: of
// fewer, the longest one is the 99th percentile, and chance decides.
const Enough = 30

// A hold is expected to last at most twice the 99th percentile of those seen, and
// a lease that nothing renews must be three times as long, since a lease that runs
// out while the work still runs lets in a second holder.
const (
	expectFactor = 2
	ttlFactor    = 3
)

// The least that is suggested: below a second a pause of the process is longer
// than the work, and a lease must outlive such a pause.
const (
	leastExpect = time.Second
	leastTTL    = 5 * time.Second
)

// Suggestion is a value with its reason, or the reason why there is none.
type Suggestion struct {
	Value  time.Duration // 0: none
	Reason string        // one English sentence without a full stop
}

// Suggest returns the `expect` and the TTL that fit the holds of a row.
func Suggest(r Row) (expect, ttl Suggestion) {
	if r.Holds() < Enough {
		seen := "no hold"
		if r.Holds() > 0 {
			seen = "only " + plural.Count(r.Holds(), "hold")
		}
		none := Suggestion{Reason: fmt.Sprintf("%s ended while anybody looked, and it takes %d to say", seen, Enough)}
		return none, none
	}
	if r.High.Count() == 0 {
		none := Suggestion{Reason: fmt.Sprintf("the length is unknown: all %s had begun before anybody looked", plural.Count(r.Holds(), "hold"))}
		return none, none
	}
	least, _, _ := r.Low.Quantile(0.99, 0)
	_, p99, ok := r.High.Quantile(0.99, r.unbounded())
	basis := fmt.Sprintf("the 99th percentile of %s, at most %s", plural.Count(r.Holds(), "hold"), Show(p99))
	if !ok {
		// More than one in a hundred began before anybody looked.
		_, p99, _ = r.Low.Quantile(0.99, 0)
		if _, high, ok := r.High.Quantile(1, 0); ok {
			p99 = max(p99, high)
		}
		basis = fmt.Sprintf("the longest of %s that could be measured, %s, since %s had begun before anybody looked", plural.Count(r.Holds(), "hold"), Show(p99), plural.Count(r.unbounded(), "hold"))
	}
	if most := ceilMs(p99); !(api.HoldBounds{AtLeastMs: least.Milliseconds(), AtMostMs: &most}).Known() {
		none := Suggestion{Reason: fmt.Sprintf("the length is unknown: the 99th percentile of %s is between %s and %s, since looks were that far apart", plural.Count(r.Holds(), "hold"), Show(least), Show(p99))}
		return none, none
	}
	expect = Suggestion{
		Value:  RoundUp(max(leastExpect, expectFactor*p99)),
		Reason: fmt.Sprintf("%d x %s", expectFactor, basis),
	}
	if r.Renewed > 0 {
		return expect, Suggestion{Reason: fmt.Sprintf("%d of %s were renewed: such a TTL need not cover the hold", r.Renewed, plural.Count(r.Holds(), "hold"))}
	}
	ttl = Suggestion{
		Value:  RoundUp(max(leastTTL, ttlFactor*p99)),
		Reason: fmt.Sprintf("%d x %s", ttlFactor, basis),
	}
	if low, high, ok := r.Lease.Quantile(0.5, 0); ok {
		switch {
		case high < p99:
			ttl.Reason += fmt.Sprintf("; the TTL now, %s, is too short for one hold in a hundred", Show(high))
		case low > 20*ttl.Value:
			ttl.Reason += fmt.Sprintf("; the TTL now, %s, keeps the lock that long after a crash", Show(low))
		}
	}
	return expect, ttl
}

// Show writes a duration to the precision of a bucket, in the form that
// configurations take: 340ms, 4.2s, 3m10s, 5h2m.
func Show(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	default:
		text := strings.TrimSuffix(d.Round(time.Second).String(), "m0s")
		if text != d.Round(time.Second).String() {
			text += "m"
		}
		if strings.HasSuffix(text, "h0m") {
			text = strings.TrimSuffix(text, "0m")
		}
		return text
	}
}

// RoundUp returns the next number that a person would write: 1, 2, 3, 5, 10, 15,
// 20 or 30 of a unit; hours 1, 2, 3, 4, 6, 8, 12 and 24; then full days.
func RoundUp(d time.Duration) time.Duration {
	for _, unit := range []time.Duration{time.Millisecond * 100, time.Second, time.Minute} {
		for _, n := range []time.Duration{1, 2, 3, 5, 10, 15, 20, 30} {
			if d <= n*unit && (unit >= time.Second || n <= 5) {
				return n * unit
			}
		}
	}
	for _, n := range []time.Duration{1, 2, 3, 4, 6, 8, 12, 24} {
		if d <= n*time.Hour {
			return n * time.Hour
		}
	}
	const day = 24 * time.Hour
	return (d + day - 1) / day * day
}
