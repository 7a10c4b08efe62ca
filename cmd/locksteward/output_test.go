package main

import (
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                       "0s",
		340 * time.Millisecond:  "340ms",
		4200 * time.Millisecond: "4.2s",
		190 * time.Second:       "3m10s",
		302 * time.Minute:       "5h02m",
		76 * time.Hour:          "3d04h",
		-2 * time.Second:        "-2.0s",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain, with \\n escaped": "plain, with \\n escaped",
		"two\nlines":              "two\\nlines",
		"\x1b[2Jgone":             "\\x1b[2Jgone",
		"锁":                       "锁",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("oneLine(%q) = %q, want %q", text, got, want)
		}
	}
}
