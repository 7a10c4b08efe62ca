package catalogue

import (
	"strings"
	"time"
)

// longest is the longest duration that is printed as such. A key may live for longer
// than a time.Duration holds, so that what is longer need not be exact.
const longest = 100 * 365 * 24 * time.Hour

// Duration prints a duration as exactly as a person needs it: whole seconds from ten
// on, tenths below, milliseconds below one; no "0s" behind minutes or hours.
func Duration(d time.Duration) string {
	switch abs := d.Abs(); {
	case d > longest:
		return ">" + Duration(longest)
	case abs >= 10*time.Second:
		d = d.Round(time.Second)
	case abs >= time.Second:
		d = d.Round(100 * time.Millisecond)
	default:
		d = d.Round(time.Millisecond)
	}
	s := d.String()
	if cut, ok := strings.CutSuffix(s, "m0s"); ok {
		s = cut + "m"
	}
	if cut, ok := strings.CutSuffix(s, "h0m"); ok {
		s = cut + "h"
	}
	return s
}

// Time prints a moment of a server's clock.
func Time(t time.Time) string { return t.UTC().Format(time.RFC3339) }
