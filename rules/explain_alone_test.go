package rules

import (
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
)

// Explaining one key that was read without a sweep says of servers and hosts that
// nobody looked at them, and not that they are well or do not answer.
func TestExplainWithoutASweep(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil, nil)
	l := held("lock:a", "I1", after(0), after(0), after(0))
	evaluateLocks(e, "redis", after(0), []locksteward.Lock{l}, nil)
	judged := 0
	for _, v := range e.Explain(l) {
		if !strings.HasPrefix(v.Rule, "server/") && v.Rule != HostLost {
			continue
		}
		if judged++; v.Result != NotApplicable || !strings.HasPrefix(v.Reason, "only single keys were read: ") {
			t.Errorf("%s: %s: %s", v.Rule, v.Result, v.Reason)
		}
	}
	if judged != 7 {
		t.Errorf("%d rules about servers and hosts, want 7", judged)
	}
	// After a sweep they are judged.
	e.Evaluate(hostSweep(after(0), l))
	for _, v := range e.Explain(l) {
		if strings.Contains(v.Reason, "only single keys were read") {
			t.Errorf("%s after a sweep: %s", v.Rule, v.Reason)
		}
	}
}
