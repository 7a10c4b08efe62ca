package class

import (
	"regexp"
	"strings"
	"testing"
)

func matches(g glob, key string) bool {
	rest, ok := strings.CutPrefix(key, g.prefix)
	return ok && g.matchRest(rest)
}

func TestGlobMatch(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern string
		yes, no []string
	}{
		{"lock", []string{"lock"}, []string{"", "loc", "lock:", "Lock"}},
		{"lock:*", []string{"lock:", "lock:1", "lock:\x00\n\xff{}"}, []string{"lock", "xlock:1", "LOCK:1"}},
		{"*", []string{"", "a", "\xff"}, nil},
		{"**", []string{"", "a", "ab"}, nil},
		{"*:lock", []string{":lock", "a:lock", "a:lock:lock"}, []string{"lock", "a:lock:"}},
		{"a*b*c", []string{"abc", "aXbYc", "abbc", "abcc"}, []string{"ab", "acb", "abcd", "ac"}},
		{"a*a", []string{"aa", "aba", "aaa"}, []string{"a", "ab"}},
		{"a?c", []string{"abc", "a?c", "a\xffc"}, []string{"ac", "abbc"}},
		{"?", []string{"a", "\x00"}, []string{"", "ab"}},
		{"??", []string{"é"}, []string{"e"}}, // one byte each, not one letter
		{"*?", []string{"a", "ab"}, []string{""}},
		{"?*?", []string{"ab", "abc"}, []string{"", "a"}},
		{"*b?d*", []string{"bcd", "abcde", "bbbcd"}, []string{"bd", "bcx"}},
		{`a\*b`, []string{"a*b"}, []string{"ab", "axb"}},
		{`a\?`, []string{"a?"}, []string{"ab"}},
		{`a\\`, []string{`a\`}, []string{"a"}},
		{`\*\**`, []string{"**", "**x"}, []string{"*", "*x"}},
		{`\[x]`, []string{"[x]"}, []string{"x"}},
		{"{order}:lock*", []string{"{order}:lock", "{order}:lock:1"}, []string{"order:lock"}},
	}
	for _, tt := range tests {
		g, err := parseGlob(tt.pattern)
		if err != nil {
			t.Errorf("parseGlob(%q): %v", tt.pattern, err)
			continue
		}
		for _, key := range tt.yes {
			if !matches(g, key) {
				t.Errorf("%q does not match %q, want a match", tt.pattern, key)
			}
		}
		for _, key := range tt.no {
			if matches(g, key) {
				t.Errorf("%q matches %q, want no match", tt.pattern, key)
			}
		}
	}
}

// fault: 55
func TestParseGlobRefuses(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"":                       "must not be empty",
		`lock\`:                  "lone backslash",
		"lock:[ab]":              "no character sets",
		strings.Repeat("a", 513): "at most 512 bytes",
	} {
		if _, err := parseGlob(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseGlob(%.20q) = %v, want an error with %q", pattern, err, want)
		}
	}
}

// A pattern that makes a backtracking matcher take for ever must stay linear in
// the key: an attacker who may name keys must not be able to stop a sweep. Each
// part is looked for once, behind the one before, so no byte is gone over twice;
// and at each place at most the part's own length is compared.
// fault: 55
func TestGlobIsNotExponential(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{
		strings.Repeat("a*", 200) + "c",
		strings.Repeat("*a", 200) + "*c*",
		strings.Repeat("a?*", 150) + "c",
		"*" + strings.Repeat("a", 255) + "?" + strings.Repeat("a", 200) + "c*",
	} {
		g, err := parseGlob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{1 << 12, 1 << 14, 1 << 16} {
			key := strings.Repeat("a", size) + "b"
			rest, ok := strings.CutPrefix(key, g.prefix)
			if !ok {
				t.Fatalf("%.20q… does not begin as the key does", pattern)
			}
			asked, gone := map[*part]int{}, 0
			if g.matchBy(rest, func(p *part, s string) int {
				asked[p]++
				at := p.index(s)
				if at < 0 {
					gone += len(s)
				} else {
					gone += at + len(p.text)
				}
				return at
			}) {
				t.Errorf("%.20q… matches, want no match", pattern)
			}
			if gone > len(key) {
				t.Errorf("%.20q… goes over %d bytes of a key of %d", pattern, gone, len(key))
			}
			for p, n := range asked {
				if n > 1 {
					t.Errorf("%.20q…: %q was looked for %d times", pattern, p.text, n)
				}
			}
		}
	}
}

// FuzzGlob compares the matcher with a regular expression of the same meaning.
func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{
		{"lock:*", "lock:1"},
		{"a*b?c*", "axbyc"},
		{`\*`, "*"},
		{"*?*", ""},
		{"**a", "a"},
		{"a*a*a*b", "aaaaaaaaaa"},
		{"?\\?*", "x?y"},
		{"a\x00*", "a\x00\n"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, key string) {
		g, err := parseGlob(pattern)
		if err != nil {
			return
		}
		var expr strings.Builder
		expr.WriteString(`^(?s:`)
		for i := 0; i < len(pattern); i++ {
			switch c := pattern[i]; c {
			case '*':
				expr.WriteString(`.*`)
			case '?':
				expr.WriteString(`.`)
			case '\\':
				i++
				fallthrough
			default:
				expr.WriteString(regexp.QuoteMeta(string(rune(pattern[i]))))
			}
		}
		expr.WriteString(`)$`)
		re, err := regexp.Compile(expr.String())
		if err != nil {
			t.Skip(err) // too large for regexp
		}
		if got, want := matches(g, key), re.MatchString(latin1(key)); got != want {
			t.Errorf("%q on %q = %t, want %t", pattern, key, got, want)
		}
	})
}

// latin1 makes one rune of each byte, as the expression expects.
func latin1(s string) string {
	runes := make([]rune, 0, len(s))
	for i := range len(s) {
		runes = append(runes, rune(s[i]))
	}
	return string(runes)
}
