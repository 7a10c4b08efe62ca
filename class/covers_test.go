package class

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wide, narrow string
		want         bool
	}{
		{"lock:*", "lock:order:*", true},
		{"lock:order:*", "lock:*", false},
		{"lock:*", "lock:*", true},
		{"lock:*", "lock:?", true},
		{"lock:?", "lock:*", false},
		{"*:lock", "order:*:lock", true},
		{"*lock*", "my-lock-1", true},
		{"*lock*", "my-l?ck-1", false},
		{"a*", "*a", false},
		{"a?*", "a*", false},
		{"a*", "a?*", true},
		{"a*?", "a?*", true},
		{"a?*", "a*?", true},
		{"a*b*c", "axbxc", true},
		{"a*b*c", "axcxb", false},
		{"a*b*c", "a*c*b*c", true},
		{`a\*`, "a*", false},
		{"a*", `a\*`, true},
		{`a\*`, `a\*`, true},
		{"a??", "a?", false},
		{"*", "", true},
		{"lock:*:vip:*", "lock:order:*", false},
		{"lock:*", "locks:*", false},
		{"a**b", "a*b", true},
	} {
		if got := covers(units(c.wide), units(c.narrow)); got != c.want {
			t.Errorf("covers(%q, %q) = %v, want %v", c.wide, c.narrow, got, c.want)
		}
	}
}

// TestCoversIsSure: where one pattern is said to cover another, no key tells them
// apart.
func TestCoversIsSure(t *testing.T) {
	t.Parallel()
	said := 0
	rapid.Check(t, func(t *rapid.T) {
		wide := rapid.StringMatching(`[ab*?]{1,6}`).Draw(t, "wide")
		narrow := rapid.StringMatching(`[ab*?]{1,6}`).Draw(t, "narrow")
		if !covers(units(wide), units(narrow)) {
			return
		}
		said++
		// A key of narrow: each wildcard filled in.
		var key strings.Builder
		for i := range len(narrow) {
			switch narrow[i] {
			case '*':
				key.WriteString(rapid.StringMatching(`[abc]{0,4}`).Draw(t, "star"))
			case '?':
				key.WriteString(rapid.StringMatching(`[abc]`).Draw(t, "one"))
			default:
				key.WriteByte(narrow[i])
			}
		}
		for _, pattern := range []string{narrow, wide} {
			g, err := parseGlob(pattern)
			if err != nil {
				t.Fatal(err)
			}
			if rest, ok := strings.CutPrefix(key.String(), g.prefix); !ok || !g.matchRest(rest) {
				t.Fatalf("%q is said to cover %q, but %q does not match %q", wide, narrow, pattern, key.String())
			}
		}
	})
	if said == 0 {
		t.Error("no pattern was ever said to cover another: the test shows nothing")
	}
}

func TestClassThatCanNeverMatch(t *testing.T) {
	t.Parallel()
	_, err := NewSet([]Class{
		{Name: "all", Match: []string{"lock:*", "*:mutex"}},
		{Name: "orders", Match: []string{"lock:order:*", "order:?:mutex"}},
		{Name: "half", Match: []string{"lock:batch:*", "batch:*"}},
		{Name: "fine", Match: []string{"mutex:*", "mutex:a:*"}}, // within one class nothing is lost
	})
	want := []string{
		`classes[1].match: class "orders" can never match, "lock:*" of classes[0].match[0] and "*:mutex" of classes[0].match[1] takes all its keys first; move it before classes[0], or make the earlier pattern narrower`,
		`classes[2].match[0]: can never match, "lock:*" of classes[0].match[0] takes all keys of "lock:batch:*" first; move class "half" before classes[0], or make that pattern narrower`,
	}
	if err == nil || err.Error() != strings.Join(want, "\n") {
		t.Errorf("got\n%v\nwant\n%s", err, strings.Join(want, "\n"))
	}
	// The other way round each has something left.
	if _, err := NewSet([]Class{
		{Name: "orders", Match: []string{"lock:order:*"}},
		{Name: "all", Match: []string{"lock:*"}},
	}); err != nil {
		t.Error(err)
	}
}

func TestPatternThatTakesAll(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"*", "**", "?*", "???"} {
		_, err := NewSet([]Class{{Name: "a", Match: []string{pattern}}})
		if err == nil || !strings.HasPrefix(err.Error(), "classes[0].match[0]: must have a literal part, got "+fmt.Sprintf("%q", pattern)) {
			t.Errorf("%q: error %v", pattern, err)
		}
		if _, err := NewMatchSet([]string{pattern}); err == nil || !strings.Contains(err.Error(), "must have a literal part") {
			t.Errorf("--match %q: error %v", pattern, err)
		}
	}
	for _, pattern := range []string{"*a*", `\*`, "?:?"} {
		if _, err := NewSet([]Class{{Name: "a", Match: []string{pattern}}}); err != nil {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}
