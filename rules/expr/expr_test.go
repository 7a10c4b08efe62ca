package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/class"
)

func compile(t testing.TB, source string) *Program {
	t.Helper()
	p, err := Compile(source)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return p
}

func TestEval(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]bool{
		"lock.class == 'batch' && lock.age > duration('2h')":             true,
		"lock.class == 'batch' && lock.age > duration('4h')":             false,
		"lock.key.startsWith('lock:') && lock.holder.pid == 42":          true,
		"now - lock.claim.renewed == duration('5s')":                     true,
		"lock.instance.alive && lock.instance.beat_age < duration('3s')": true,
		"lock.claim.holding.exists(k, k.startsWith('lock:account:'))":    true,
		"lock.claim.holding.all(k, k == 'lock:a')":                       false,
		"lock.renewals == 500 && lock.renew_every == duration('20s')":    true,
		"class.expect == duration('1h') && class.ttl_required":           true,
		"target == 'redis' && now.getHours('UTC') == 12":                 true,
		"lock.age > lock.claim.expect * 2":                               false,
	} {
		p, err := Compile(source)
		if strings.Contains(source, "* 2") {
			if err == nil {
				t.Errorf("%s: a duration times a number is not in the language, and compiled", source)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		if got, err := p.Eval(knownFacts()); err != nil || got != want {
			t.Errorf("%s = %v, %v; want %v", source, got, err, want)
		}
	}
}

// TestUnknownIsNeverTrue: neither a statement about what is not known nor its
// opposite holds, and the error names the fact.
func TestUnknownIsNeverTrue(t *testing.T) {
	t.Parallel()
	for source, fact := range map[string]string{
		"lock.age > duration('1s')":                       "lock.age",
		"lock.age < duration('1s')":                       "lock.age",
		"!(lock.age > duration('1s'))":                    "lock.age",
		"lock.ttl < duration('1s')":                       "lock.ttl",
		"lock.idle > duration('0s')":                      "lock.idle",
		"lock.fence == 0":                                 "lock.fence",
		"lock.waiters == 0":                               "lock.waiters",
		"lock.renewals == 0":                              "lock.renewals",
		"lock.holder.host == ''":                          "lock.holder.host",
		"lock.holder.host != 'web-1'":                     "lock.holder.host",
		"!lock.instance.alive":                            "lock.instance",
		"lock.claim.renewals == 0":                        "lock.claim",
		"lock.claim.holding.all(k, k == 'x')":             "lock.claim",
		"lock.first_seen < now":                           "lock.first_seen",
		"lock.key == 'lock:x' && lock.fence < 3":          "lock.fence",
		"lock.key == 'lock:y' || lock.fence < 3":          "lock.fence",
		"lock.fence < 3 ? true : true":                    "lock.fence",
		"lock.age > class.expect":                         "class.expect",
		"lock.holder.app in ['billing', 'orders']":        "lock.holder.app",
		"!(lock.holder.app in ['billing'])":               "lock.holder.app",
		"string(lock.fence) == '0' || lock.key == 'lock'": "lock.fence",
	} {
		got, err := compile(t, source).Eval(nothingKnown())
		unknown, ok := errors.AsType[*UnknownError](err)
		if got || !ok {
			t.Errorf("%s = %v, %v; want an error that says what is not known", source, got, err)
			continue
		}
		if unknown.Fact != fact && source != "lock.age > class.expect" {
			t.Errorf("%s: %v, want %s", source, err, fact)
		}
	}
	// Where the rest decides alone there is an outcome.
	for source, want := range map[string]bool{
		"lock.fence > 3 || lock.key == 'lock:x'":          true,
		"lock.fence > 3 && lock.key == 'lock:y'":          false,
		"has(lock.fence) && lock.fence > 3":               false,
		"!has(lock.claim) && !has(lock.instance)":         true,
		"has(lock.claim.purpose)":                         false,
		"has(lock.holder.host) || !lock.has_ttl":          true,
		"lock.age_is_minimum && lock.age_basis == 'none'": true,
	} {
		if got, err := compile(t, source).Eval(nothingKnown()); (err != nil && !strings.Contains(source, "claim.purpose")) || got != want {
			t.Errorf("%s = %v, %v; want %v", source, got, err, want)
		}
	}
}

func TestRunTimeErrorsDoNotHold(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"1 / (lock.count - 1) > 0",
		"int(lock.key) > 0",
		"duration(lock.key) > duration('1s')",
		"lock.claim.holding[7] == 'x'",
		"lock.key.matches(lock.holder.app + '(')",
		"now.getHours(lock.key) > 0",
		"lock == lock && lock.holder == lock.holder",
		"lock.count + 9223372036854775807 > 0",
		"now + duration('8760000h') > now + duration('100000000h')",
	} {
		p, err := Compile(source)
		if err != nil {
			continue // refused at load is as good
		}
		if got, err := p.Eval(knownFacts()); got || err == nil {
			t.Errorf("%s = %v, %v; want an error", source, got, err)
		}
	}
}

func TestCompileSaysWhatIsWrongAndWhere(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"lock.agee > duration('2h')":       "1:6: there is no fact \"agee\" here; did you mean lock.age?",
		"lock.claim.agee == 1":             "1:12: there is no fact \"agee\" here; did you mean lock.age?",
		"lok.key == 'a'":                   "1:1: unknown name \"lok\"; did you mean lock?",
		"age > duration('2h')":             "1:1: unknown name \"age\"; did you mean lock.age?",
		"lock.age > 7200":                  "1:10: > does not take (duration, int); write a duration as duration('2h')",
		"lock.first_seen > duration('2h')": "1:17: > does not take (timestamp, duration); a time minus a time is a duration",
		"lock.has_ttl && lock.count":       "1:21: is of type int where bool is wanted",
		"lock.age":                         "1:1: is of type duration and must be bool; compare it",
		"lock.key + 'x'":                   "1:1: is of type string and must be bool",
		"lock.age > ":                      "1:12: the expression ends too early",
		"lock.class = 'a'":                 "1:12: cannot read \"=\"; write == to compare",
		"lock.class == 'a":                 "1:15: a text is not closed; write the closing quote",
		"lock.has_ttl & true":              "1:14: cannot read \"&\"; write && or ||",
		"lock.has_ttl lock.too_large":      "1:14: \"lock\" does not belong here",
		"lock.age > duration('2hours')":    "1:21: is no duration; write one such as duration('90s')",
		"now > timestamp('today')":         "1:17: is no time; write one such as timestamp(",
		"lock.key.matches('(')":            "1:18: is no regular expression",
		"lock.key.toUpper() == 'A'":        "1:17: unknown name \"toUpper\"",
		"lock.class in ['a', 1]":           "1:21: is of type int where string is wanted",
		"":                                 "1:1: the expression is empty",
		"  ":                               "1:1: the expression is empty",
		strings.Repeat("lock.has_ttl && ", 200) + "true":                                                           "1:1: the expression has 3204 bytes, 2048 are the limit",
		strings.Repeat("(", 60) + "true" + strings.Repeat(")", 60):                                                 "1:1: nests deeper than 50; split it",
		"lock.has_ttl &&\nlock.agee > duration('1s')":                                                              "2:6: there is no fact",
		"lock.key.matches(lock.key)":                                                                               "1:1: may cost 6571 for one lock, 2000 is the limit; ",
		"lock.claim.holding.exists(a, lock.claim.holding.exists(b, a == b))":                                       "1:55: exists, all or filter inside another one",
		"lock.claim.holding.all(k, k.matches('(a|b|c|d|e|f|g)*(a|b|c|d|e|f|g)*(a|b|c|d|e|f|g)*(a|b|c|d|e|f|g)*'))": "1:1: may cost",
		"Lock{} == lock":  "1:1: has no bound on what it costs",
		"type(lock) == 1": "1:5: unknown name \"type\"",
	} {
		_, err := Compile(source)
		if err == nil {
			t.Errorf("%q compiles", source)
			continue
		}
		var first *Error
		if !errors.As(err, &first) {
			t.Errorf("%q: %v is no *Error", source, err)
			continue
		}
		if got := fmt.Sprintf("%d:%d: %s", first.Line, first.Column, err); !strings.HasPrefix(got, want) {
			t.Errorf("%q:\n got %s\nwant %s", source, got, want)
		}
		if strings.TrimSpace(source) != "" && !strings.Contains(err.Error(), "^") {
			t.Errorf("%q: %v does not show the place", source, err)
		}
	}
}

func TestAllProblemsOfAnExpression(t *testing.T) {
	t.Parallel()
	_, err := Compile("lock.agee > duration('1s') && lok.key == 'a' && lock.age > 3")
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 3 {
		t.Errorf("got %v, want three problems", err)
	}
}

func TestCaretInALongLine(t *testing.T) {
	t.Parallel()
	source := "lock.key != '" + strings.Repeat("锁", 200) + "' && lock.agee > duration('1s') && lock.key != '" + strings.Repeat("x", 200) + "'"
	_, err := Compile(source)
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatal(err)
	}
	lines := strings.Split(e.Caret(), "\n")
	line, caret := []rune(lines[0]), len([]rune(lines[1]))-1
	if len(line) > maxShown+10 || !strings.HasPrefix(string(line[caret:]), "agee") {
		t.Errorf("%s", e.Caret())
	}
	for _, e := range []*Error{{}, {Source: "a", Line: 9, Column: 9}, {Source: "a", Line: 1, Column: -3}, {Source: "\x00\n", Line: 2}} {
		_ = e.Error() // no place is worth a panic
	}
}

// TestCostIsLimited: what passes the estimate since names are usually short is
// stopped when they are not.
func TestCostIsLimited(t *testing.T) {
	t.Parallel()
	p := compile(t, "lock.claim.purpose.matches('^(a|b|c|d|e|f)*$') || lock.claim.purpose.matches('^[a-z ]*(import|export)[a-z ]*$')")
	f := knownFacts()
	if _, err := p.Eval(f); err != nil {
		t.Fatal(err)
	}
	f.Lock.Claim.Purpose = strings.Repeat("import ", 10_000)
	if got, err := p.Eval(f); got || !errors.Is(err, ErrTooDear) {
		t.Errorf("Eval = %v, %v; want %v", got, err, ErrTooDear)
	}
	f.Lock.Claim.Purpose = ""
	f.Lock.Claim.Holding = slices.Repeat([]string{"lock:other"}, 5000)
	if got, err := compile(t, "lock.claim.holding.exists(k, k == 'lock:a')").Eval(f); got || !errors.Is(err, ErrTooDear) {
		t.Errorf("Eval = %v, %v; want %v", got, err, ErrTooDear)
	}
}

func english(texts []locksteward.Message) []string {
	var out []string
	for _, t := range texts {
		out = append(out, catalogue.Text("en", t))
	}
	return out
}

// contains says whether one of the messages has the texts of want.
func contains(messages []locksteward.Message, want locksteward.Message) bool {
	return slices.ContainsFunc(messages, func(m locksteward.Message) bool {
		return catalogue.Text("en", m) == catalogue.Text("en", want) && catalogue.Text("zh", m) == catalogue.Text("zh", want)
	})
}

func TestShowTellsWhatTheExpressionRests(t *testing.T) {
	t.Parallel()
	p := compile(t, "lock.age > duration('2h') && lock.ttl > duration('1s') && lock.holder.host == 'web-3' && "+
		"lock.claim.holding.exists(k, k == 'lock:a') && has(lock.instance) && now > lock.first_seen && target != lock.key && lock.count == 1")
	shown, missing := p.Show(knownFacts())
	want := []string{
		"lock.age is 3h0m0s (claimed)", "lock.ttl is 1m0s", "lock.holder.host is web-3",
		"lock.claim.holding is lock:a, lock:account:7", "now is 2026-03-01T12:00:00Z", "lock.first_seen is 2026-03-01T10:00:00Z",
		"target is redis", "lock.key is lock:order:42", "lock.count is 1",
	}
	if !slices.Equal(english(shown), want) || missing != nil {
		t.Errorf("shown %q, missing %q", english(shown), english(missing))
	}
	shown, missing = p.Show(nothingKnown())
	for _, fact := range []string{"lock.age", "lock.ttl", "lock.holder.host", "lock.claim.holding", "lock.first_seen"} {
		if !contains(missing, locksteward.Literal(fact+" is not known", fact+" 未知")) {
			t.Errorf("missing %q, want %s among them (shown %q)", english(missing), fact, english(shown))
		}
	}
	f := knownFacts()
	f.Age = Age{Value: time.Minute, Basis: locksteward.AgeObserved, Minimum: true}
	f.Lock.Key, f.Lock.Claim.Holding = "a\nb", slices.Repeat([]string{"k"}, 9)
	shown, _ = p.Show(f)
	for _, line := range []locksteward.Message{
		locksteward.Literal("lock.age is at least 1m0s (observed)", "lock.age 至少为 1m0s（observed）"),
		locksteward.Literal(`lock.key is a\nb`, `lock.key 为 a\nb`),
		locksteward.Literal("lock.claim.holding is k, k, k, k, k, and 4 more", "lock.claim.holding 为 k、k、k、k、k，另有 4 个"),
	} {
		if !contains(shown, line) {
			t.Errorf("shown %q, want %q", english(shown), catalogue.Text("en", line))
		}
	}
}

// A program is used by several targets at once.
func TestProgramIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	p := compile(t, "lock.claim.holding.exists(k, k == 'lock:a') && lock.age > duration('2h') && lock.key.matches('^lock:')")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			f := knownFacts()
			for range 200 {
				if got, err := p.Eval(f); !got || err != nil {
					t.Errorf("Eval = %v, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

// FuzzCompile: whatever people write and whatever a lock holds, nothing panics,
// and only true is true.
func FuzzCompile(f *testing.F) {
	for _, s := range Sections() {
		for _, fact := range s.Facts {
			f.Add(fact.Example, "lock:a", int64(60))
		}
	}
	for _, fn := range Functions() {
		f.Add(fn.Example, "", int64(-1))
	}
	f.Add("lock.key.matches('(a*)*$')", strings.Repeat("a", 100), int64(0))
	f.Add("[[[[lock.key]]]] == []", "\xff", int64(1)<<62)
	f.Add("lock.age > \"\u0000", "x", int64(1))
	f.Fuzz(func(t *testing.T, source, text string, n int64) {
		p, err := Compile(source)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		facts := knownFacts()
		facts.Lock.Key, facts.Lock.Holder.Host, facts.Lock.Claim.Purpose = text, text, text
		facts.Lock.TTL, facts.Lock.Fence, facts.Age.Value = time.Duration(n), n, time.Duration(n)
		facts.Lock.Claim.Renewed = time.Unix(n, 0)
		facts.Lock.Claim.Holding = []string{text, text}
		for _, f := range []*Facts{facts, nothingKnown(), {Lock: &locksteward.Lock{}, Class: class.Class{}}} {
			if got, err := p.Eval(f); got && err != nil {
				t.Errorf("%q holds and is an error: %v", source, err)
			}
			p.Show(f)
		}
	})
}
