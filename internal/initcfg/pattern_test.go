package initcfg_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/initcfg"
)

// many returns n keys with a word of its own each in the place of %s.
func many(format string, n int) []string {
	words := strings.Fields("alice bob carol dave erin frank grace heidi ivan judy mallory niaj olivia peggy rupert sybil trent victor walter wendy xena yuri zoe")
	var out []string
	for _, w := range words[:n] {
		out = append(out, fmt.Sprintf(format, w))
	}
	return out
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		keys []string
		want []string // NAME MATCH
		rest []string
	}{
		{"numbers", []string{"lock:order:42", "lock:order:7"}, []string{"order lock:order:*"}, nil},
		{"one key is a family too", []string{"lock:order:42"}, []string{"order lock:order:*"}, nil},
		{"uuids", []string{"lock:pay:3f2b8c1e-9d1a-4b6e-8f0a-1c2d3e4f5a6b"}, []string{"pay lock:pay:*"}, nil},
		{"hashes and object ids", []string{"job:507f1f77bcf86cd799439011:lock"}, []string{"job job:*:lock"}, nil},
		{"ids in base 62", []string{"lock:cart:aZ3kQ9xT2"}, []string{"cart lock:cart:*"}, nil},
		{"dates are one variable", []string{"lock:report-2026-03-01", "lock:report-2026-03-02T10:00:00Z"}, []string{"report lock:report-*"}, nil},
		{"the number of a thing", []string{"lock:order42", "lock:order43"}, []string{"order lock:order*"}, nil},
		{"versions are words", []string{"v2:lock:db0:nightly"}, []string{"v2-db0-nightly v2:lock:db0:nightly"}, nil},
		{"hash tags", []string{"{order:42}:lock", "{order:43}:lock"}, []string{"order {order:*}:lock"}, nil},
		{"underscores", []string{"lock_stock_57", "lock_stock_58"}, []string{"stock lock_stock_*"}, nil},
		{"families stay apart", []string{"lock:order:1", "lock:invoice:1", "lock:cart:1"}, []string{"invoice lock:invoice:*", "order lock:order:*", "cart lock:cart:*"}, nil},
		{"few words at the end are names", []string{"lock:import", "lock:export"}, []string{"export lock:export", "import lock:import"}, nil},
		{"many words at the end are things", many("lock:user:%s", 6), []string{"user lock:user:*"}, nil},
		{"also inside of a segment", many("lock_user_%s_session", 6), []string{"user-session lock_user_*_session"}, nil},
		{"and in the middle, where there are more", many("lock:%s:cart", 20), []string{"cart lock:*:cart"}, nil},
		{"fewer in the middle are families", many("lock:%s:cart", 2), []string{"alice-cart lock:alice:cart", "bob-cart lock:bob:cart"}, nil},
		{"the longer name first", []string{"lock:order:42", "lock:order:42:items"}, []string{"order-items lock:order:*:items", "order lock:order:*"}, nil},
		{"no constant part", []string{"3f2b8c1e-9d1a-4b6e-8f0a-1c2d3e4f5a6b", "42"}, nil, []string{"3f2b8c1e-9d1a-4b6e-8f0a-1c2d3e4f5a6b", "42"}},
		{"glob characters", []string{"lock:[a]*?\\:7"}, []string{`a lock:\[a]\*\?\\:*`}, nil},
		{"bytes that are no text", []string{"lock:\xff\xfe:7"}, []string{"lock lock:??:*"}, nil},
		{"what a configuration would replace", []string{"lock:${HOME}:7"}, []string{"home lock:?{HOME}:*"}, nil},
		{"the same word twice", []string{"order:lock:1", "lock:order:1"}, []string{"order lock:order:*", "order-2 order:lock:*"}, nil},
		{"default is taken", []string{"lock:default:1"}, []string{"default-2 lock:default:*"}, nil},
		{"no letters", []string{"锁:订单:42"}, []string{"locks 锁:订单:*"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			families, rest := initcfg.Patterns(c.keys)
			var got []string
			for _, f := range families {
				got = append(got, f.Name+" "+f.Match)
			}
			if !slices.Equal(got, c.want) || !slices.Equal(rest, c.rest) {
				t.Errorf("got %q, rest %q\nwant %q, rest %q", got, rest, c.want, c.rest)
			}
		})
	}
}

// A name of any length and any bytes gives a pattern that a configuration takes.
func TestEndlessNamesAreCut(t *testing.T) {
	t.Parallel()
	families, rest := initcfg.Patterns([]string{"lock:" + strings.Repeat("päth/", 5000), "lock:" + strings.Repeat("*", 5000)})
	if len(families) != 2 || len(rest) != 0 {
		t.Fatalf("got %v, rest %d", families, len(rest))
	}
	for _, f := range families {
		if len(f.Match) > 512 || !strings.HasSuffix(f.Match, "*") {
			t.Errorf("pattern of %d bytes", len(f.Match))
		}
	}
}

// Whatever the keys are, class.NewSet takes the families, every key is in exactly
// one family or in the rest, and its own pattern is the first that matches it.
func TestPatternsMatchTheirKeys(t *testing.T) {
	t.Parallel()
	part := rapid.OneOf(
		rapid.SampledFrom([]string{"lock", "order", "order-42", "user_7", "v2", "a.b", "*", "?", "[x]", `\`, "${A}", "default", ""}),
		rapid.StringMatching(`[a-z]{1,6}`),
		rapid.StringMatching(`[0-9]{1,8}`),
		rapid.StringMatching(`[0-9a-f]{16,20}`),
		rapid.StringMatching(`[a-zA-Z0-9]{8,12}`),
		rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 5), func(b []byte) string { return string(b) }),
	)
	key := rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for i := range rapid.IntRange(1, 4).Draw(t, "parts") {
			if i > 0 {
				b.WriteString(rapid.SampledFrom([]string{":", ":", ":", "/", "-", "_", ".", "{", "}", "|"}).Draw(t, "separator"))
			}
			b.WriteString(part.Draw(t, "part"))
		}
		return b.String()
	})
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(key, 0, 40).Draw(t, "keys")
		families, rest := initcfg.Patterns(keys)
		var list []class.Class
		count := len(rest)
		for _, f := range families {
			list = append(list, class.Class{Name: f.Name, Match: []string{f.Match}})
			count += len(f.Keys)
			if len(f.Keys) == 0 || f.Match == "*" {
				t.Fatalf("family %q with %d keys", f.Match, len(f.Keys))
			}
		}
		set, err := class.NewSet(list)
		if err != nil {
			t.Fatalf("the families are no configuration: %v", err)
		}
		for _, f := range families {
			for _, k := range f.Keys {
				if m := set.Classify(k); m.Class != f.Name || !m.Configured {
					t.Fatalf("%q of %q (%s) is of class %q", k, f.Match, f.Name, m.Class)
				}
			}
		}
		if want := len(slices.Compact(slices.Sorted(slices.Values(keys)))); count != want {
			t.Fatalf("%d keys in families and rest, want %d", count, want)
		}
	})
}
