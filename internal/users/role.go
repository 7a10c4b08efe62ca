package users

import (
	"fmt"
	"slices"
	"strings"
)

// Role is what a user is. Each role grants reading and one thing more; none
// includes another, so that asking and approving stay with two people unless
// the file says otherwise. Above all admin neither requests nor approves.
type Role string

// The roles.
const (
	RoleViewer    Role = "viewer"
	RoleRequester Role = "requester"
	RoleApprover  Role = "approver"
	RoleAdmin     Role = "admin"
	// RoleBreakGlass requests a release and decides on it alone; all receivers are
	// notified. See release.Service.BreakGlass.
	RoleBreakGlass Role = "break-glass"
)

// Verb is one kind of act on the console listener.
type Verb string

// The verbs.
const (
	VerbView    Verb = "view"    // every GET
	VerbRequest Verb = "request" // ask for a release
	VerbApprove Verb = "approve" // approve or deny one
	VerbAdmin   Verb = "admin"   // reload, pause and resume targets
	VerbPause   Verb = "pause"   // pause and resume releases
	VerbSilence Verb = "silence" // silence alerts, accept findings

	VerbBreakGlass Verb = "break-glass" // release without another person
)

var grants = map[Role][]Verb{
	RoleViewer:    {VerbView},
	RoleRequester: {VerbView, VerbRequest},
	RoleApprover:  {VerbView, VerbApprove, VerbSilence},
	RoleAdmin:     {VerbView, VerbAdmin, VerbPause, VerbSilence},

	RoleBreakGlass: {VerbView, VerbBreakGlass},
}

// Roles returns all roles in the order of the documentation.
func Roles() []Role {
	return []Role{RoleViewer, RoleRequester, RoleApprover, RoleAdmin, RoleBreakGlass}
}

// ParseRole reads a role's name.
func ParseRole(text string) (Role, error) {
	r := Role(text)
	if _, ok := grants[r]; !ok {
		return "", fmt.Errorf("role %q: must be one of %s", text, roleNames())
	}
	return r, nil
}

// RoleFor returns the role that grants a verb, for telling a person what they
// lack. Viewing needs any role.
func RoleFor(v Verb) Role {
	for _, r := range Roles() {
		if slices.Contains(grants[r], v) {
			return r
		}
	}
	return RoleAdmin
}

func roleNames() string {
	names := make([]string, 0, len(grants))
	for _, r := range Roles() {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}
