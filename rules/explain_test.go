package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

func verdicts(vs []Verdict) map[string]Verdict {
	out := map[string]Verdict{}
	for _, v := range vs {
		out[v.Rule] = v
	}
	return out
}

func TestExplainSaysWhyOfEveryRule(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Config{{Rule: "renewal/failing", Off: true}}, []class.Class{{Name: "orders", Match: []string{"o:*"}, Expect: time.Second}})
	at := after(30 * time.Second)
	vs := e.Explain(lockAt("o:1", at, ofClass("orders"), shared))
	if len(vs) != len(All()) {
		t.Fatalf("%d verdicts for %d rules", len(vs), len(All()))
	}
	for i, name := range Names() {
		if vs[i].Rule != name || vs[i].Reason == "" {
			t.Errorf("verdict %d is %+v, want one of %s with a reason", i, vs[i], name)
		}
	}
	v := verdicts(vs)
	for rule, want := range map[string]Verdict{
		"hold/lost":           {Result: Clear, Reason: "no earlier hold of this key is known to have been lost"},
		"hold/too-long":       {Result: Fires, Reason: "o:1 has been held for 30s, expected 1s"},
		"holder/shared-token": {Result: Fires, Reason: "class orders: 1 of 1 locks have a constant or shared token, so any client can release them"},
		"renewal/failing":     {Result: Off, Reason: "switched off by rules[0]"},
		"ttl/none":            {Result: Clear, Reason: "TTL 1m left"},
		"ttl/too-long":        {Result: Clear, Reason: "TTL 1m left, within the limit of 24h"},
	} {
		if got := v[rule]; got.Result != want.Result || got.Reason != want.Reason {
			t.Errorf("%s: %s because %q, want %s because %q", rule, got.Result, got.Reason, want.Result, want.Reason)
		}
	}
	if f := v["hold/too-long"].Finding; f.Status != locksteward.StatusFiring || f.Key != "o:1" || f.Target != "redis" || f.Class != "orders" || f.Library != "token" {
		t.Errorf("finding %+v", f)
	}
	wantFindings(t, e)
}

func TestExplainKnowsWhatIsPending(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	l := lockAt("a", t0, noTTL)
	if f := verdicts(e.Explain(l))["ttl/none"].Finding; f.Status != locksteward.StatusPending || !f.Since.Equal(t0) {
		t.Errorf("before the first look: %+v", f)
	}
	e.Evaluate(sweepAt(t0, l))
	e.Evaluate(sweepAt(after(time.Minute), lockAt("a", after(time.Minute), noTTL)))
	later := lockAt("a", after(2*time.Minute), noTTL)
	if f := verdicts(e.Explain(later))["ttl/none"].Finding; f.Status != locksteward.StatusFiring || !f.Since.Equal(t0) || !f.FiredAt.Equal(after(time.Minute)) {
		t.Errorf("when firing: %+v", f)
	}
}

func TestExplainGivesTheLossesOnRecord(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	e.Evaluate(lossAt(t0, nil))
	v := verdicts(e.Explain(lockAt("a", t0)))["hold/lost"]
	if v.Result != Fires || v.Finding.Subject != "#c1" || !strings.Contains(v.Reason, "was lost") {
		t.Errorf("verdict %+v", v)
	}
}

func TestExplainOfACandidate(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	for _, v := range e.Explain(lockAt("a", t0, noTTL, func(l *locksteward.Lock) { l.Kind = locksteward.KindCandidate })) {
		if v.Result != NotApplicable || !strings.Contains(v.Reason, "candidate") {
			t.Errorf("verdict %+v", v)
		}
	}
}
