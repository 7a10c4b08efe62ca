package suggest

import (
	"testing"

	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	words := []string{"expect", "match", "max_ttl", "team", "ttl"}
	for got, want := range map[string]string{
		"expct": "expect", "expect": "expect", "tll": "ttl", "max_tl": "max_ttl", "teem": "team", "runbook": "", "matching": "", "": "",
	} {
		if w := Nearest(got, words, nil); w != want {
			t.Errorf("Nearest(%q) = %q, want %q", got, w, want)
		}
	}
	// Of equally near words it is the first; and a word may have several forms.
	if w := Nearest("ab", []string{"ac", "ad"}, nil); w != "ac" {
		t.Errorf("of two as near it is %q", w)
	}
	last := func(w string) []string { return []string{w, w[len(w)-3:]} }
	if w := Nearest("agf", []string{"lock.ttl", "lock.age"}, last); w != "lock.age" {
		t.Errorf("by its last part it is %q", w)
	}
}

// Edits are a metric, and one edit is 1.
func TestEdits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[abc]{0,6}`)
		a, b, c := text.Draw(t, "a"), text.Draw(t, "b"), text.Draw(t, "c")
		switch ab := edits(a, b); {
		case ab != edits(b, a), (ab == 0) != (a == b), ab > edits(a, c)+edits(c, b), ab > max(len(a), len(b)):
			t.Fatalf("edits(%q, %q) = %d", a, b, ab)
		case edits(a, a+"x") != 1, edits(a+"x", a+"y") != 1:
			t.Fatalf("one edit of %q is not 1", a)
		}
	})
}
