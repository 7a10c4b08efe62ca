package formats

import (
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// The years in which a number is taken for a point in time.
var (
	firstTime = time.Date(2001, time.September, 9, 1, 46, 40, 0, time.UTC) // 1,000,000,000
	lastTime  = time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC)
)

// timeShape recognises an expiry or acquisition time as the value: redis-mutex
// (Ruby), errorception's redis-lock, Discourse and much code written by hand.
// Such a value names no holder, and two holders may write the same one.
func timeShape(_, text string) (tokenShape, bool) {
	whole, fraction, hasFraction := strings.Cut(text, ".")
	if !isDigits(whole) || hasFraction && !isDigits(fraction) {
		return tokenShape{}, false
	}
	unit, perSecond := "", int64(0)
	switch {
	case len(whole) == 10:
		unit, perSecond = "seconds", 1
	case len(whole) == 13 && !hasFraction:
		unit, perSecond = "milliseconds", 1000
	case len(whole) == 16 && !hasFraction:
		unit, perSecond = "microseconds", 1_000_000
	default:
		return tokenShape{}, false
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n < firstTime.Unix()*perSecond || n >= lastTime.Unix()*perSecond {
		return tokenShape{}, false
	}
	return tokenShape{
		kind:       "a point in time in " + unit + ", which names no holder",
		origin:     originTime,
		confidence: locksteward.ConfidenceLow,
	}, true
}
