package release

import (
	"fmt"
	"slices"

	"github.com/locksteward/locksteward/class"
)

// Undecidable says of which classes nobody could ever approve a release, by the
// people there are, each with what to do.
func Undecidable(classes []class.Class, people []Actor) []string {
	var out []string
	for _, c := range classes {
		if !c.Releasable() {
			continue
		}
		approvers := slices.DeleteFunc(slices.Clone(people), func(a Actor) bool {
			return a.may(RoleApprover) != nil || a.mayDecideOn(c) != nil
		})
		requesters := slices.DeleteFunc(slices.Clone(people), func(a Actor) bool { return a.may(RoleRequester) != nil })
		switch n := len(approvers); {
		case n < c.ApprovalsOrDefault():
			out = append(out, fmt.Sprintf("class %q: approvals needed %d, people who may approve %d; give more people the role approver, or lower approvals",
				c.Name, c.ApprovalsOrDefault(), n))
		case len(requesters) > 0 && n == c.ApprovalsOrDefault() && c.SelfApprovalOrDefault() == class.SelfApprovalDeny &&
			!slices.ContainsFunc(requesters, func(a Actor) bool { return !slices.ContainsFunc(approvers, func(b Actor) bool { return b.is(a.Name) }) }):
			out = append(out, fmt.Sprintf("class %q: the requester is one of the %d who must approve, and self_approval is deny; give one more person a role, or write self_approval: alert",
				c.Name, n))
		}
	}
	return out
}
