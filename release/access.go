package release

import "github.com/locksteward/locksteward/class"

// Grants is who may do what with the locks of a class, by name.
type Grants struct {
	Requesters []string
	Approvers  []string
	// BreakGlass may release without another person.
	BreakGlass []string
}

// GrantsOn says who of these people may do what with the locks of a class; of one
// that cannot be released nobody may do anything.
func GrantsOn(c class.Class, people []Actor) Grants {
	var out Grants
	if !c.Releasable() {
		return out
	}
	for _, a := range people {
		if a.may(RoleRequester) == nil {
			out.Requesters = append(out.Requesters, a.Name)
		}
		if a.may(RoleApprover) == nil && a.mayDecideOn(c) == nil {
			out.Approvers = append(out.Approvers, a.Name)
		}
		if a.may(RoleBreakGlass) == nil {
			out.BreakGlass = append(out.BreakGlass, a.Name)
		}
	}
	return out
}
