package catalogue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/locksteward/locksteward"
)

func hasHan(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) })
}

// verbsOf are the verbs of a format by the number of their argument; %q is a text as %s.
func verbsOf(format string) []string {
	var out []string
	for i, m := range verb.FindAllStringSubmatch(format, -1) {
		n := m[1]
		if n == "" {
			n = fmt.Sprint(i + 1)
		}
		out = append(out, n+strings.ReplaceAll(m[0][len(m[0])-1:], "q", "s"))
	}
	slices.Sort(out)
	return out
}

// partial are the sentences in which one language has less to say.
var partial = []string{
	"release.alone", "release.failed", "release.glass-broken", "release.reminder", "release.requested", "wait/cycle.locks-more",
}

func TestSentencesAreInBothLanguages(t *testing.T) {
	t.Parallel()
	for id, e := range all {
		if e.EN == "" || hasHan(e.EN) {
			t.Errorf("%s: the English is %q", id, e.EN)
		}
		// Some sentences are only arguments and punctuation, or have Latin terms.
		if e.ZH == "" || e.ZH == e.EN && strings.ContainsFunc(verb.ReplaceAllString(e.EN, ""), unicode.IsLetter) && !slices.Contains([]string{"lock.pid", "size.gib", "size.mib"}, id) {
			t.Errorf("%s: the Chinese is %q", id, e.ZH)
		}
		if en, zh := verbsOf(e.EN), verbsOf(e.ZH); !slices.Equal(en, zh) && !slices.Contains(partial, id) {
			t.Errorf("%s: English has the arguments %v, Chinese %v", id, en, zh)
		}
		if e.One != "" && e.arity != 1 {
			t.Errorf("%s: One is for sentences with one argument", id)
		}
	}
}

// An id stands in one file only: merge takes the last.
func TestIDsAreUnique(t *testing.T) {
	t.Parallel()
	n := 0
	for _, file := range files {
		n += len(file)
	}
	if n != len(all) {
		t.Errorf("%d sentences have %d ids", n, len(all))
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	odd := locksteward.LockName("lock:\n")
	for _, c := range []struct {
		m      locksteward.Message
		en, zh string
	}{
		{locksteward.Message{}, "", ""},
		{locksteward.NewMessage("ttl/none.no-expiry"), "it never expires by itself", "不会自行过期"},
		{locksteward.NewMessage("lock.ttl", 90*time.Second), "TTL 1m30s left", "距过期还有 1m30s"},
		{locksteward.NewMessage("count.locks", 1), "1 lock", "1 把锁"},
		{locksteward.NewMessage("count.locks", int64(2)), "2 locks", "2 把锁"},
		{locksteward.NewMessage("hold/lost.found-at", time.UnixMilli(0)), "found at 1970-01-01T00:00:00Z", "发现于 1970-01-01T00:00:00Z"},
		{locksteward.NewMessage("lock.names", locksteward.NewMessage("names", odd, "b")), `locks: lock:\n, b`, `锁：lock:\n、b`},
		{locksteward.NewMessage("class.limit", "a b", time.Minute), `the limit of class "a b" is 1m`, `class "a b" 的上限为 1m`},
		{locksteward.Literal("100 %s"), "100 %s", "100 %s"},
		{locksteward.Literal("two", "二"), "two", "二"},
		{locksteward.NewMessage("of another version", "a", 2), "of another version (a, 2)", "of another version (a, 2)"},
		{locksteward.NewMessage("ttl/none.summary"), "ttl/none.summary ()", "ttl/none.summary ()"},
	} {
		if en, zh := Text("en", c.m), Text("zh", c.m); en != c.en || zh != c.zh {
			t.Errorf("%s: got %q, %q; want %q, %q", c.m.ID, en, zh, c.en, c.zh)
		}
	}
}

// Only names of locks are shown in another way, in parts of sentences too.
func TestNaming(t *testing.T) {
	t.Parallel()
	m := locksteward.NewMessage("fact", "a", locksteward.NewMessage("names", locksteward.LockName("a"), "a", locksteward.LockName("bc")))
	if got := Naming("en", m, func(name string) string { return fmt.Sprint(len(name)) }); got != "a is 1, a, 2" {
		t.Errorf("got %q", got)
	}
}
