package console

import (
	"fmt"
	"slices"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// advice is what the world's guide says.
type advice struct {
	possible Possible
	resolved map[string]locksteward.Finding
}

func (w *world) Possible(locksteward.Lock) Possible { return w.advice.possible }

func (w *world) WhyNotApprove(actor Actor, r locksteward.Request) error {
	switch {
	case !slices.Contains(actor.Roles, "approver"):
		return fmt.Errorf("%w: %q does not have the role approver", locksteward.ErrRefused, actor.Name)
	case actor.Name == r.Requester:
		return fmt.Errorf("%w: request %s is your own; another approver has to decide", locksteward.ErrRefused, r.ID)
	default:
		return nil
	}
}

func (w *world) Resolved(fingerprint string) (locksteward.Finding, bool) {
	f, ok := w.advice.resolved[fingerprint]
	return f, ok
}

func (w *world) Rules(lang string) []api.Rule {
	remedy := "request its release"
	if lang == "zh" {
		remedy = "申请释放"
	}
	return []api.Rule{{
		Rule: "ttl/none", Title: "a lock has no TTL", Severity: "critical", ForMs: 2000, Risk: "deadlock", Judges: "lock", Since: "0.1.0",
		Cause: "A crash between SETNX and EXPIRE", Remedy: remedy, Page: "docs/rules/ttl/none.md",
		Entries: []api.RuleEntry{{Classes: []string{"orders"}, Severity: "warning"}},
	}}
}
