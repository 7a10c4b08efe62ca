package rules

import (
	"fmt"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// text formats both languages of a message with the same arguments.
func text(en, zh string, args ...any) locksteward.Text {
	return locksteward.Text{EN: fmt.Sprintf(en, args...), ZH: fmt.Sprintf(zh, args...)}
}

// dur prints a duration as exactly as a person needs it: whole seconds from ten
// on, tenths below, milliseconds below one; no "0s" behind minutes or hours.
func dur(d time.Duration) string {
	switch abs := d.Abs(); {
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

// at prints a server time.
func at(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// count prints n things with the noun in the right number.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// join drops empty lines, so that evidence can be listed without branches.
func join(lines ...string) []string {
	var out []string
	for _, l := range lines {
		if l != "" {
			out = append(out, l)
		}
	}
	return out
}
