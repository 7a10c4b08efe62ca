package class

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
)

func mustSet(t testing.TB, classes ...Class) *Set {
	t.Helper()
	s, err := NewSet(classes)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestClassify(t *testing.T) {
	t.Parallel()
	s := mustSet(t,
		Class{Name: "orders", Match: []string{"lock:order:*"}},
		Class{Name: "vip", Match: []string{"lock:*:vip:*", "vip?"}},
		Class{Name: "any", Match: []string{"*:mutex", "lock:*"}},
	)
	for key, want := range map[string]Match{
		"lock:order:42":       {Class: "orders", Configured: true},
		"lock:order:vip:1":    {Class: "orders", Configured: true}, // the first class wins, not the longest prefix
		"lock:x:vip:1":        {Class: "vip", Configured: true},
		"vip1":                {Class: "vip", Configured: true},
		"a:mutex":             {Class: "any", Configured: true},
		"lock:order:42:mutex": {Class: "orders", Configured: true},
		"lock:x":              {Class: "any", Configured: true},
		"lock:ord":            {Class: "any", Configured: true},
		"orderLock":           {Class: Default, Word: true},
		"unlocked:1":          {Class: Default, Candidate: true},
		"user:1":              {},
		"vip12":               {},
		"":                    {},
	} {
		if got := s.Classify(key); got != want {
			t.Errorf("Classify(%q) = %+v, want %+v", key, got, want)
		}
	}
}

func TestSetWithoutClasses(t *testing.T) {
	t.Parallel()
	for _, s := range []*Set{mustSet(t), {}} {
		if got, want := s.Classify("lock:1"), (Match{Class: Default, Word: true}); got != want {
			t.Errorf("Classify = %+v, want %+v", got, want)
		}
		if c, ok := s.Get(Default); !ok || c.Name != Default || c.Releasable() {
			t.Errorf("Get(default) = %+v, %t, want an unreleasable default", c, ok)
		}
		if _, ok := s.Get("orders"); ok {
			t.Error("Get(orders) found a class that is not there")
		}
		if all := s.All(); len(all) != 0 {
			t.Errorf("All() = %v, want none", all)
		}
	}
}

func TestSetKeepsItsOwnCopy(t *testing.T) {
	t.Parallel()
	classes := []Class{{Name: "a", Match: []string{"a:*"}}}
	s, err := NewSet(classes)
	if err != nil {
		t.Fatal(err)
	}
	classes[0].Name, classes[0].Match[0] = "b", "b:*"
	if c, ok := s.Get("a"); !ok || c.Match[0] != "a:*" {
		t.Errorf("Get(a) = %+v, %t after the caller's slice changed", c, ok)
	}
	s.All()[0].Name = "c"
	if c, _ := s.Get("a"); c.Name != "a" {
		t.Errorf("Get(a) = %+v after the slice of All changed", c)
	}
}

// The tree must claim what trying all patterns one after the other claims.
func TestIndexAgreesWithPlainSearch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab:*?")), 1, 6, -1)
		var (
			x   index
			all []pattern
		)
		for i := range rapid.IntRange(1, 12).Draw(t, "patterns") {
			g, err := parseGlob(text.Draw(t, "pattern"))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, pattern{class: i, glob: g})
			x.add(all[i])
		}
		key := rapid.StringOfN(rapid.SampledFrom([]rune("ab:")), 0, 8, -1).Draw(t, "key")
		want := -1
		for _, p := range all {
			if matches(p.glob, key) {
				want = p.class
				break
			}
		}
		if got := x.first(key); got != want {
			t.Errorf("first(%q) = %d, want %d", key, got, want)
		}
	})
}

func TestClassFromYAML(t *testing.T) {
	t.Parallel()
	const text = `
- class: orders
  match: ["lock:order:*"]
  team: checkout
  runbook_url: https://wiki/locks
  expect: 30s
  ttl: required
  max_ttl: 1h
  warn_ttl_below: 10s
  max_wait: 1m
  max_failures: 0.8
  dead_when: ["ttl/none"]
  release: approve
  approvals: 2
  self_approval: allow
- class: batch/night
  match: ["batch:*"]
`
	var classes []Class
	if err := yaml.Unmarshal([]byte(text), &classes); err != nil {
		t.Fatal(err)
	}
	s := mustSet(t, classes...)
	orders, _ := s.Get("orders")
	if orders.WarnTTLBelow != 10*time.Second || orders.MaxWait != time.Minute || orders.MaxFailuresOrDefault() != 0.8 {
		t.Errorf("orders = %+v", orders)
	}
	if orders.Expect != 30*time.Second || orders.MaxTTLOrDefault() != time.Hour || orders.TTL != TTLRequired ||
		!orders.Releasable() || orders.ApprovalsOrDefault() != 2 || orders.SelfApprovalOrDefault() != SelfApprovalAllow {
		t.Errorf("orders = %+v", orders)
	}
	batch, _ := s.Get("batch/night")
	if batch.MaxFailuresOrDefault() != DefaultMaxFailures || batch.MaxWait != 0 || batch.WarnTTLBelow != 0 {
		t.Errorf("defaults of %+v are wrong", batch)
	}
	if batch.MaxTTLOrDefault() != 24*time.Hour || batch.Releasable() || batch.ReleaseOrDefault() != ReleaseOff ||
		batch.ApprovalsOrDefault() != 1 || batch.SelfApprovalOrDefault() != SelfApprovalDeny {
		t.Errorf("defaults of %+v are wrong", batch)
	}
}

func TestNewSetTellsAllProblems(t *testing.T) {
	t.Parallel()
	_, err := NewSet([]Class{
		{Match: []string{"a:*"}},
		{Name: "orders", Match: []string{"lock:order:*"}},
		{Name: "orders", Match: []string{"lock:order:*", "", `b\`, "c[d]"}},
		{Name: "-x", Match: nil, Expect: -time.Second, MaxTTL: -1, WarnTTLBelow: -time.Minute, MaxWait: -2, MaxFailures: math.NaN(), TTL: "never", Release: "auto", SelfApproval: "alert", Approvals: -1},
		{Name: "a b", Match: []string{"x"}, Release: "now", SelfApproval: "maybe", Approvals: 11, RunbookURL: "javascript:alert(1)", Team: "a\nb"},
		{Name: Default, Match: []string{"y"}, DeadWhen: []string{"ttl/none", "", "ttl/none"}, RunbookURL: "wiki/locks"},
		{Name: strings.Repeat("n", 65), Match: []string{"z"}, Team: strings.Repeat("t", 101)},
		{Name: "größe", Match: []string{"w"}, RunbookURL: "https://"},
	})
	if err == nil {
		t.Fatal("NewSet accepted it all")
	}
	lines := strings.Split(err.Error(), "\n")
	want := []string{
		"classes[0].class: must not be empty, write ",
		"classes[2].match[1]: must not be empty, write ",
		"classes[2].match[2]: ends with a lone backslash, got ",
		"classes[2].match[3]: has no character sets, got ",
		`classes[2].class: must be unique, got "orders" of classes[1] again, write `,
		`classes[2].match[0]: can never match, got "lock:order:*" of classes[1].match[0] again, remove `,
		`classes[3].class: must be letters, digits, - _ . and /, beginning with a letter or digit, got "-x", write `,
		"classes[3].match: must not be empty, got [], write ",
		"classes[3].expect: must not be negative, got -1s, write ",
		"classes[3].max_ttl: must not be negative, got -1ns, write ",
		"classes[3].warn_ttl_below: must not be negative, got -1m0s, write ",
		"classes[3].max_wait: must not be negative, got -2ns, write ",
		"classes[3].max_failures: must be from 0 to 1, got NaN, write ",
		`classes[3].ttl: must be required or allowed-none, got "never", write `,
		`classes[3].dead_when: must not be empty with release: auto, got [], write `,
		"classes[3].approvals: must be from 1 to 10, got -1, write ",
		`classes[4].class: must be letters`,
		`classes[4].team: must be printable text, got "a\nb", write `,
		`classes[4].runbook_url: must be an http or https URL, got "javascript:alert(1)", write `,
		`classes[4].release: must be off, approve or auto, got "now", write `,
		"classes[4].approvals: must be from 1 to 10, got 11, write ",
		`classes[4].self_approval: must be deny, alert or allow, got "maybe", write `,
		`classes[5].class: "default" is the class of locks that no other claims, write `,
		`classes[5].runbook_url: must be an http or https URL, got "wiki/locks", write `,
		`classes[5].dead_when[1]: must not be empty, got "", write `,
		`classes[5].dead_when[2]: must not repeat, got "ttl/none" of dead_when[0] again, remove `,
		"classes[6].class: must be at most 64 characters, got 65, write ",
		"classes[6].team: must be at most 100 characters, got 101, write ",
		"classes[7].class: must be letters",
		`classes[7].runbook_url: must be an http or https URL, got "https://", write `,
	}
	if len(lines) != len(want) {
		t.Errorf("%d problems, want %d:\n%v", len(lines), len(want), err)
	}
	for i, line := range lines {
		if i < len(want) && !strings.HasPrefix(line, want[i]) {
			t.Errorf("problem %d = %q, want it to begin with %q", i, line, want[i])
		}
	}
}

func TestValidateOneClass(t *testing.T) {
	t.Parallel()
	if err := (Class{Name: "a", Match: []string{"a*"}}).Validate(); err != nil {
		t.Errorf("Validate() = %v, want nil", err)
	}
	if err := (Class{Name: "a"}).Validate(); err == nil || !strings.HasPrefix(err.Error(), "match: ") {
		t.Errorf("Validate() = %v, want the path first", err)
	}
}

func TestClassifyDoesNotAllocate(t *testing.T) {
	s := benchSet(t)
	for _, key := range benchKeys {
		if n := testing.AllocsPerRun(100, func() { s.Classify(key) }); n != 0 {
			t.Errorf("Classify(%q) allocates %v times", key, n)
		}
	}
}

var benchKeys = map[string]string{
	"plain":     "user:profile:0123456789:settings",
	"session":   "spring:session:sessions:2f5a1e3c-44d1-4c5e-9c1b-8d0f7c1f9f10",
	"near-miss": "lock:order-archive:2024:11:stock",
	"first":     "lock:team00:1",
	"last":      "lock:team49:order:42",
	"word":      "checkout:order:42:lock",
	"candidate": "user:0123456789:unlocked",
}

// benchSet has fifty classes of two patterns, as a large company would.
func benchSet(tb testing.TB) *Set {
	tb.Helper()
	var classes []Class
	for i := range 50 {
		classes = append(classes, Class{
			Name:  fmt.Sprintf("team%02d", i),
			Match: []string{fmt.Sprintf("lock:team%02d:*", i), fmt.Sprintf("svc%02d:*:mutex", i)},
		})
	}
	return mustSet(tb, classes...)
}

func BenchmarkClassify(b *testing.B) {
	s := benchSet(b)
	for name, key := range benchKeys {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Classify(key)
			}
		})
	}
}

func BenchmarkNewSet(b *testing.B) {
	classes := benchSet(b).All()
	for b.Loop() {
		if _, err := NewSet(classes); err != nil {
			b.Fatal(err)
		}
	}
}

func TestMatchSet(t *testing.T) {
	t.Parallel()
	s, err := NewMatchSet([]string{"job:*", "lock:?"})
	if err != nil {
		t.Fatal(err)
	}
	want := Match{Class: Default, Configured: true}
	for _, key := range []string{"job:", "job:7", "lock:a"} {
		if got := s.Classify(key); got != want {
			t.Errorf("Classify(%q) = %+v, want %+v", key, got, want)
		}
	}
	if got := s.Classify("lock:ab"); got.Configured || !got.Word {
		t.Errorf("Classify of a key that only a word speaks for = %+v", got)
	}
	if _, err := NewMatchSet([]string{"a[b", "", "ok"}); err == nil || !strings.Contains(err.Error(), `"a[b"`) || !strings.Contains(err.Error(), `""`) {
		t.Errorf("NewMatchSet with two bad globs: %v, want both named", err)
	}
}
