package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/rules/expr"
)

var batch = []class.Class{{Name: "batch", Match: []string{"batch:*"}}, {Name: "orders", Match: []string{"lock:order:*"}}}

func oldBatch() RuleConfig {
	return RuleConfig{Rule: "custom/old-batch", When: "lock.class == 'batch' && lock.age > duration('30m')"}
}

func TestCustomRuleFiresAndResolves(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Config{oldBatch()}, batch)
	young := lockAt("batch:import", after(time.Minute), ofClass("batch"))
	wantBrief(t, e.Evaluate(sweepAt(after(time.Minute), young)))
	old := lockAt("batch:import", after(time.Hour), ofClass("batch"))
	other := lockAt("lock:order:1", after(time.Hour), ofClass("orders"))
	wantBrief(t, e.Evaluate(sweepAt(after(time.Hour), old, other)), "custom/old-batch firing warning batch:import")
	f := e.Findings()[0]
	if catalogue.Text("en", f.Summary) != "the rule custom/old-batch holds for batch:import" || catalogue.Text("zh", f.Summary) == "" || catalogue.Text("en", f.Cause) == "" || catalogue.Text("zh", f.Remedy) == "" {
		t.Errorf("finding %+v", f)
	}
	want := []locksteward.Message{
		locksteward.Literal("holds: "+oldBatch().When, "成立："+oldBatch().When),
		locksteward.Literal("lock.class is batch", "lock.class 为 batch"),
		locksteward.Literal("lock.age is at least 1h0m0s (observed)", "lock.age 至少为 1h0m0s（observed）"),
	}
	if !slices.Equal(rendered("en", f.Evidence), rendered("en", want)) || !slices.Equal(rendered("zh", f.Evidence), rendered("zh", want)) {
		t.Errorf("evidence %q, want %q", rendered("en", f.Evidence), rendered("en", want))
	}
	wantInChinese(t, "custom/old-batch", f)
	wantBrief(t, e.Evaluate(sweepAt(after(2*time.Hour), other)), "custom/old-batch resolved warning batch:import")
}

func TestCustomRuleAsConfigured(t *testing.T) {
	t.Parallel()
	rc := oldBatch()
	rc.Severity, rc.For, rc.Classes, rc.Summary, rc.Remedy = "critical", new(time.Minute), []string{"batch"}, "too old", "restart it"
	rc.When = "lock.age > duration('30m')"
	e := newEngine(t, Config{rc}, batch)
	locks := func(at time.Time) []locksteward.Lock {
		return []locksteward.Lock{lockAt("batch:a", at, ofClass("batch")), lockAt("lock:order:1", at, ofClass("orders"))}
	}
	wantBrief(t, e.Evaluate(sweepAt(after(time.Hour), locks(after(time.Hour))...)))
	wantFindings(t, e, "custom/old-batch pending critical batch:a")
	wantBrief(t, e.Evaluate(sweepAt(after(61*time.Minute), locks(after(61*time.Minute))...)), "custom/old-batch firing critical batch:a")
	f := e.Findings()[0]
	if catalogue.Text("en", f.Summary) != "too old: batch:a" || catalogue.Text("en", f.Remedy) != "restart it" {
		t.Errorf("finding %+v", f)
	}
	// Switched off it resolves, as any rule does.
	rc.Off, rc.Severity, rc.For = true, "", nil
	set, err := class.NewSet(batch)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Reload(Config{rc}, set); err != nil {
		t.Fatal(err)
	}
	wantBrief(t, e.Evaluate(sweepAt(after(62*time.Minute), locks(after(62*time.Minute))...)), "custom/old-batch resolved critical batch:a")
}

// TestCustomRuleWithoutTheFact: what is not known makes a rule say nothing, and
// say why when asked.
func TestCustomRuleWithoutTheFact(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Config{
		{Rule: "custom/fence", When: "lock.fence < 10"},
		{Rule: "custom/age", When: "lock.age < duration('1m') || !(lock.age < duration('1m'))"},
		{Rule: "custom/zero", When: "1 / (lock.count - 1) == 1"},
		{Rule: "custom/other", When: "true", Classes: []string{"batch"}},
		{Rule: "custom/false", When: "lock.key == ''"},
	}, batch)
	l := lockAt("lock:order:1", t0, ofClass("orders"), noTTL, func(l *locksteward.Lock) { l.SharedToken = true })
	if got := brief(e.Evaluate(sweepAt(t0, l))); strings.Contains(strings.Join(got, " "), "custom") {
		t.Errorf("transitions %v", got)
	}
	got := map[string]string{}
	for _, v := range e.Explain(l) {
		got[v.Rule] = string(v.Result) + ": " + v.Reason
	}
	for rule, want := range map[string]string{
		"custom/fence": "not_applicable: lock.fence is not known",
		"custom/age":   "not_applicable: lock.age is not known",
		"custom/zero":  "not_applicable: division by zero",
		"custom/other": `not_applicable: the rule is for other classes than "orders": batch`,
		"custom/false": "clear: does not hold: lock.key == ''",
	} {
		if got[rule] != want {
			t.Errorf("%s: %q, want %q", rule, got[rule], want)
		}
	}
}

// TestCustomAgeIsProven: a constant token shows no more age than hold/too-long
// believes.
func TestCustomAgeIsProven(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Config{{Rule: "custom/old", When: "lock.age > duration('30m')"}}, batch)
	shared := func(l *locksteward.Lock) { l.SharedToken = true }
	renewed := func(l *locksteward.Lock) { l.History.LastRenewal = l.At.Add(-time.Minute) }
	at := after(time.Hour)
	e.Evaluate(sweepAt(at,
		lockAt("a", at),
		lockAt("b", at, shared),
		lockAt("c", at, shared, renewed),
		lockAt("d", at, shared, noTTL),
		lockAt("e", at, noTTL),
	))
	var fired []string
	for _, f := range e.Findings() {
		if f.Rule == "custom/old" {
			fired = append(fired, f.Key)
		}
	}
	if !slices.Equal(fired, []string{"a", "b", "e"}) {
		t.Errorf("fired on %v, want a, b, e", fired)
	}
}

func TestCustomProblems(t *testing.T) {
	t.Parallel()
	c := Config{
		{Rule: "custom/a"},
		{Rule: "custom/b", When: "lock.agee > 1 && lok"},
		{Rule: "ttl/none", When: "true", Summary: "x", Remedy: "y"},
		{Rule: "custom/A b", When: "true"},
		{Rule: "custom/c", When: "true", Summary: strings.Repeat("x", 301), Remedy: "a\nb"},
		{Rule: "custom/c", When: "false", Classes: []string{"batch"}},
		{Rule: "custom/d", When: "true", Off: true, Severity: "info"},
	}
	want := []string{
		"rules[0].when: must not be empty for a rule of your own",
		`rules[1].when: there is no fact "agee" here`,
		`rules[1].when: unknown name "lok"; did you mean lock?`,
		`rules[2].when: is for rules of your own, got it beside "ttl/none"`,
		`rules[2].summary: is for rules of your own`,
		`rules[2].remedy: is for rules of your own`,
		`rules[3].rule: must be custom/ and a name`,
		`rules[4].summary: must be at most 300 bytes, got 301`,
		`rules[4].remedy: must be one line`,
		`rules[5].rule: must be unique, got "custom/c" of rules[4] again`,
	}
	joined, ok := c.Validate().(interface{ Unwrap() []error })
	if !ok {
		t.Fatal("no problems")
	}
	var got []string
	for _, err := range joined.Unwrap() {
		got = append(got, err.Error())
	}
	if len(got) != len(want) {
		t.Errorf("%d problems, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range min(len(got), len(want)) {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("problem %d:\n got %s\nwant %s", i, got[i], want[i])
		}
	}
	if e, ok := errors.AsType[*expr.Error](c.Validate()); !ok || e.Line != 1 || e.Column != 6 {
		t.Errorf("the place is not known: %+v", e)
	}
}

func TestDeadWhenIsChecked(t *testing.T) {
	t.Parallel()
	classes := []class.Class{
		{Name: "a", Match: []string{"a:*"}, DeadWhen: []string{"ttl/none", "custom/old-batch", "!lock.has_ttl && lock.idle > duration('1h')"}},
		{Name: "b", Match: []string{"b:*"}, DeadWhen: []string{"ttl/nine", "custom/young-batch", "lock.age", "lock.age > 7"}},
	}
	set, err := class.NewSet(classes)
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(Config{oldBatch()}, set, nil)
	if err == nil {
		t.Fatal("no problem found")
	}
	for _, want := range []string{
		`classes[1].dead_when[0]: got "ttl/nine", which is no rule; write one of`,
		`classes[1].dead_when[1]: got "custom/young-batch", which is no rule`,
		`classes[1].dead_when[2]: is of type duration and must be bool`,
		`classes[1].dead_when[3]: > does not take (duration, int)`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no problem says %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "classes[0]") {
		t.Errorf("problems of a class that has none: %v", err)
	}
}

func TestDeadWhen(t *testing.T) {
	t.Parallel()
	noTTLDead, oldDead := "!lock.has_ttl", "lock.age > duration('30m')"
	e := newEngine(t, nil, []class.Class{
		{Name: "batch", Match: []string{"batch:*"}, DeadWhen: []string{"ttl/none", oldDead, noTTLDead, "lock.fence < 5"}},
		{Name: "orders", Match: []string{"lock:order:*"}},
	})
	at := after(time.Hour)
	shared := func(l *locksteward.Lock) { l.SharedToken = true }
	claimed := func(l *locksteward.Lock) { l.Claim = &locksteward.Claim{ID: "c", Acquired: t0} }
	for name, c := range map[string]struct {
		lock locksteward.Lock
		want []string
	}{
		"both hold":         {lockAt("batch:a", at, ofClass("batch"), noTTL), []string{oldDead, noTTLDead}},
		"one holds":         {lockAt("batch:a", at, ofClass("batch")), []string{oldDead}},
		"none holds":        {lockAt("batch:a", after(time.Minute), ofClass("batch")), nil},
		"another class":     {lockAt("lock:order:1", at, ofClass("orders"), noTTL), nil},
		"a class long gone": {lockAt("x", at, ofClass("gone"), noTTL), nil},
		"a constant token":  {lockAt("batch:a", at, ofClass("batch"), noTTL, shared), nil},
		"the holder's word": {lockAt("batch:a", at, ofClass("batch"), noTTL, shared, claimed), []string{oldDead, noTTLDead}},
		"only a candidate":  {lockAt("batch:a", at, ofClass("batch"), noTTL, func(l *locksteward.Lock) { l.Kind = locksteward.KindCandidate }), nil},
		"nothing is known":  {locksteward.Lock{Observation: locksteward.Observation{Class: "batch", TTL: time.Second}}, nil},
	} {
		if got := e.DeadWhen(c.lock); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	var said []string
	for _, v := range e.Explain(lockAt("batch:a", at, ofClass("batch"))) {
		if v.Rule == "dead_when" {
			said = append(said, fmt.Sprintf("%s %s", v.Result, v.Reason))
		}
	}
	if want := []string{"fires holds: " + oldDead, "clear does not hold: " + noTTLDead, "not_applicable lock.fence is not known: lock.fence < 5"}; !slices.Equal(said, want) {
		t.Errorf("explain says %q, want %q", said, want)
	}
}

func TestIsRuleID(t *testing.T) {
	t.Parallel()
	for element, want := range map[string]bool{
		"ttl/none": true, "custom/old-batch": true, "lock.age > duration('1h')": false, "true": false, "a / b": false, "lock.count/2": false,
	} {
		if got := IsRuleID(element); got != want {
			t.Errorf("IsRuleID(%q) = %v", element, got)
		}
	}
	for _, name := range Names() {
		if !IsRuleID(name) {
			t.Errorf("%s is a rule and does not look like one", name)
		}
	}
}

// BenchmarkCustom judges a complete sweep of 100,000 locks with one rule of the
// configuration more, against the same without.
func BenchmarkCustom(b *testing.B) {
	locks := make([]locksteward.Lock, 0, 100_000)
	for i := range 100_000 {
		locks = append(locks, lockAt(fmt.Sprintf("batch:%06d", i), after(time.Minute), ofClass("batch")))
	}
	for name, cfg := range map[string]Config{"none": nil, "one": {oldBatch()}} {
		b.Run(name, func(b *testing.B) {
			e := newEngine(b, cfg, batch)
			sweep := sweepAt(after(time.Minute), locks...)
			b.ReportAllocs()
			for b.Loop() {
				e.Evaluate(sweep)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(locks)), "ns/lock")
		})
	}
}
