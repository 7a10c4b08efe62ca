package class_test

import (
	"testing"

	"github.com/locksteward/locksteward/class"
)

func TestLiteralPrefix(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"lock:order:*":  "lock:order:",
		"lock:42":       "lock:42",
		"*:lock":        "",
		"a?b*":          "a",
		`we\*ird\?:*`:   "we*ird?:",
		"order:*:lock":  "order:",
		"":              "",
		"[broken":       "",
		`ends with \`:   "",
		"\x00\xff:bin*": "\x00\xff:bin",
	} {
		if got := class.LiteralPrefix(pattern); got != want {
			t.Errorf("LiteralPrefix(%q) = %q, want %q", pattern, got, want)
		}
	}
}
