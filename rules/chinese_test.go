package rules

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/locksteward/locksteward"
)

func english(lines []locksteward.Text) []string {
	var out []string
	for _, l := range lines {
		out = append(out, l.EN)
	}
	return out
}

func chinese(lines []locksteward.Text) []string {
	var out []string
	for _, l := range lines {
		out = append(out, l.ZH)
	}
	return out
}

// value is what a line has that no language changes: numbers with what belongs to
// them (durations, times, versions, percent, ids), names with a sign in them, quoted names,
// and words that no text but code writes.
var value = regexp.MustCompile(`"[^"]*"|[\w:.@/{}*+-]*(?:\d|[:_/@]\w)[\w:.@/{}*+-]*|[A-Z]{3,}`)

// valuesOf are the values of a line. Punctuation around one is the sentence's own.
func valuesOf(line string) []string {
	var out []string
	for _, v := range value.FindAllString(line, -1) {
		if v = strings.TrimRight(v, ":.,;"); v != "TTL" {
			out = append(out, v)
		}
	}
	return out
}

// wantInChinese fails where a line of evidence says nothing in Chinese, or not what it
// says in English.
func wantInChinese(t *testing.T, rule string, f locksteward.Finding) {
	t.Helper()
	for _, l := range append(append([]locksteward.Text{f.Summary}, f.Evidence...), f.CounterEvidence...) {
		for _, wrong := range wrongIn(l) {
			t.Errorf("%s: %s\n%s\n%s", rule, wrong, l.EN, l.ZH)
		}
	}
}

// wrongIn says what is wrong with the Chinese of a line.
func wrongIn(l locksteward.Text) []string {
	var out []string
	if l.EN == l.ZH || !strings.ContainsFunc(l.ZH, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
		out = append(out, "no Chinese")
	}
	if strings.Contains(l.EN+l.ZH, "%!") {
		out = append(out, "a format without its value")
	}
	for _, v := range valuesOf(l.EN) {
		if strings.Count(l.ZH, v) < strings.Count(l.EN, v) {
			out = append(out, v+" is missing")
		}
	}
	// A name beside a letter is not found by those who hide names (alert/keynames.go).
	var before rune
	for _, r := range l.ZH {
		if unicode.Is(unicode.Han, r) && isNamed(before) || isNamed(r) && unicode.Is(unicode.Han, before) {
			out = append(out, string([]rune{before, r})+" stand together")
		}
		before = r
	}
	return out
}

func isNamed(r rune) bool { return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// The test of lines finds what it is for.
func TestLinesWithoutChineseAreFound(t *testing.T) {
	t.Parallel()
	for _, l := range []locksteward.Text{
		{EN: "never renewed"}, {EN: "never renewed", ZH: "never renewed"}, {EN: "seen 3 times", ZH: "看到过"},
		{EN: "in 2 looks, 2 too few", ZH: "看到 2 次"}, {EN: "lock job:1 is held", ZH: "锁被持有"}, {EN: "PERSIST was called", ZH: "被调用"},
		{EN: "lock a is held", ZH: "锁a被持有"}, {EN: `class "x" says so`, ZH: "如 class 所写"}, {EN: "1m30s ago", ZH: "1m 前"},
	} {
		if len(wrongIn(l)) == 0 {
			t.Errorf("nothing is found in %+v", l)
		}
	}
	if wrong := wrongIn(text("lock %s: %d looks, TTL %s left", "锁 %s：看到 %d 次，距过期还有 %s", "job:1", 3, "1m30s")); len(wrong) > 0 {
		t.Error(wrong)
	}
}
