// Package access says who may do what with the locks of which class: the users
// file against the policy of the classes. It decides nothing, it tells.
package access

import (
	"time"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/users"
	"github.com/locksteward/locksteward/release"
)

// Report is who may do what.
type Report struct {
	Users    []User   `json:"users"`
	Classes  []Class  `json:"classes"`
	Warnings []string `json:"warnings"`
}

// User is one user of the users file.
type User struct {
	Name     string   `json:"name"`
	Roles    []string `json:"roles"`
	Teams    []string `json:"teams"`
	Disabled bool     `json:"disabled"`
	External bool     `json:"external"`
	Tokens   int      `json:"tokens"`
	// Password is how the password is hashed, "" for none.
	Password string `json:"password"`
	// LastSignIn is the last sign-in with a browser that the audit trail knows of;
	// nil where that was not asked, or it knows of none.
	LastSignIn *time.Time `json:"last_sign_in,omitempty"`
}

// Class is one class with who may do what with its locks.
type Class struct {
	Class        string   `json:"class"`
	Release      string   `json:"release"`
	Approvals    int      `json:"approvals"`
	SelfApproval string   `json:"self_approval"`
	Requesters   []string `json:"requesters"`
	Approvers    []string `json:"approvers"`
	BreakGlass   []string `json:"break_glass"`
}

// Actors are the users who are not disabled, as package release knows them.
func Actors(set *users.Set) []release.Actor {
	var out []release.Actor
	for _, u := range set.Users() {
		a := release.Actor{Name: u.Name, Teams: u.Teams}
		for _, r := range u.Roles {
			a.Roles = append(a.Roles, release.Role(r))
		}
		out = append(out, a)
	}
	return out
}

// Undecidable says of which classes nobody could ever approve a release; nothing
// while there are no users at all.
func Undecidable(classes []class.Class, set *users.Set) []string {
	if set.Len() == 0 {
		return nil
	}
	return release.Undecidable(classes, Actors(set))
}

// Users are all users in the order of the file.
func Users(set *users.Set) []User {
	out := []User{}
	for _, a := range set.Accounts() {
		u := User{
			Name: a.Name, Roles: []string{}, Teams: append([]string{}, a.Teams...), Disabled: a.Disabled, External: a.External, Tokens: a.Tokens, Password: a.Password,
		}
		for _, r := range a.Roles {
			u.Roles = append(u.Roles, string(r))
		}
		out = append(out, u)
	}
	return out
}

// New reports on the users of a set and on classes in the order in which they
// match.
func New(classes []class.Class, set *users.Set) Report {
	out := Report{Users: Users(set), Classes: []Class{}, Warnings: append([]string{}, Undecidable(classes, set)...)}
	people := Actors(set)
	for _, c := range classes {
		g := release.GrantsOn(c, people)
		out.Classes = append(out.Classes, Class{
			Class: c.Name, Release: string(c.ReleaseOrDefault()), Approvals: c.ApprovalsOrDefault(), SelfApproval: string(c.SelfApprovalOrDefault()),
			Requesters: append([]string{}, g.Requesters...), Approvers: append([]string{}, g.Approvers...), BreakGlass: append([]string{}, g.BreakGlass...),
		})
	}
	return out
}
