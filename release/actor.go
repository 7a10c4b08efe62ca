package release

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// Role is what a person may do here.
type Role string

// The roles that this package asks for.
const (
	RoleRequester Role = "requester"
	RoleApprover  Role = "approver"
	// RoleBreakGlass may ask and decide alone, loudly.
	RoleBreakGlass Role = "break-glass"
	// RoleAdmin may stop all releases.
	RoleAdmin Role = "admin"
)

// AgentName is the requester of what the agent proposes by itself; no person may
// have it.
const AgentName = "agent"

// Actor is who asks, as the console or the API authenticated them.
type Actor struct {
	Name  string
	Roles []Role
	// Teams are what classes may ask of approvers.
	Teams []string

	// bundled says that the decision is on the whole bundle.
	bundled bool
}

// maxText is the longest name or reason in bytes.
const maxText = 1000

// may returns nil if the actor has the role.
func (a Actor) may(role Role) error {
	if strings.EqualFold(a.Name, AgentName) {
		return refused("the name %q belongs to the agent itself; give this person another name", AgentName)
	}
	if !slices.Contains(a.Roles, role) {
		return refused("%q does not have the role %s; an admin can give it in the users file", a.Name, role)
	}
	return nil
}

// mayDecideOn returns nil if the class lets the actor decide on its locks.
func (a Actor) mayDecideOn(c class.Class) error {
	if len(c.Approvers) == 0 {
		return nil
	}
	for _, who := range c.Approvers {
		kind, name, _ := strings.Cut(who, ":")
		switch {
		case kind == "user" && a.is(name),
			kind == "team" && slices.Contains(a.Teams, name),
			kind == "role" && slices.Contains(a.Roles, Role(name)):
			return nil
		}
	}
	return refused("%q is not one of those who decide on class %q (approvers: %s); ask one of them", a.Name, c.Name, strings.Join(c.Approvers, ", "))
}

// is says whether name is the same person. Names that differ in case alone are
// one person, or two accounts would make two people.
func (a Actor) is(name string) bool { return strings.EqualFold(a.Name, name) }

// checkName refuses what cannot be a person's name.
func (a Actor) checkName() error {
	if strings.TrimSpace(a.Name) == "" {
		return invalid("who asks is not known; sign in first")
	}
	return checkText("name", a.Name)
}

// cleanReason returns reason without blanks around it, or why it cannot be taken.
func cleanReason(reason string) (string, error) {
	reason = strings.TrimSpace(reason)
	if reason == "" {
		return "", invalid("reason is empty; say why in a sentence, it goes into the audit trail")
	}
	return reason, checkText("reason", reason)
}

func checkText(what, s string) error {
	switch {
	case len(s) > maxText:
		return invalid("%s is %d bytes long; at most %d are kept", what, len(s), maxText)
	case !utf8.ValidString(s):
		return invalid("%s is not valid UTF-8; write it as text", what)
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return invalid("%s has control characters; write it as plain text", what)
	}
	return nil
}

// refused, invalid, conflict and notFound build the errors of this package: the
// sentinel first, so that the sentence ends with what to do.
func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", locksteward.ErrRefused, fmt.Sprintf(format, args...))
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", locksteward.ErrInvalid, fmt.Sprintf(format, args...))
}

func conflict(format string, args ...any) error {
	return fmt.Errorf("%w: %s", locksteward.ErrConflict, fmt.Sprintf(format, args...))
}

func notFound(format string, args ...any) error {
	return fmt.Errorf("%w: %s", locksteward.ErrNotFound, fmt.Sprintf(format, args...))
}
