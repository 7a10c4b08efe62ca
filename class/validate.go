package class

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	maxName      = 64 // a class is a metric label and a column on screens
	maxTeam      = 100
	maxApprovals = 10 // more people than that is a typing error
)

// Validate returns all problems of the class on its own, joined, one a line,
// each beginning with its YAML key ("match: …"). What two classes may not have
// in common is checked by [NewSet]; whether the rules of dead_when exist
// and its expressions compile is checked where the rules are known.
func (c Class) Validate() error { return errors.Join(c.problems()...) }

// problems are the errors of one class; [NewSet] puts its path before each.
func (c Class) problems() []error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	switch {
	case c.Name == "":
		add(`class: must not be empty, write a name such as "orders"`)
	case c.Name == Default:
		add("class: %q is the class of locks that no other claims, write another name", Default)
	case len(c.Name) > maxName:
		add("class: must be at most %d characters, got %d, write a shorter name", maxName, len(c.Name))
	case !isLabelSafe(c.Name):
		add("class: must be letters, digits, - _ . and /, beginning with a letter or digit, got %q, write a name such as %q", c.Name, "orders")
	}

	if len(c.Match) == 0 {
		add(`match: must not be empty, got [], write at least one pattern such as ["lock:order:*"]`)
	}
	for i, text := range c.Match {
		if _, err := parseClassGlob(text); err != nil {
			add("match[%d]: %w", i, err)
		}
	}

	if n := utf8.RuneCountInString(c.Team); n > maxTeam {
		add("team: must be at most %d characters, got %d, write a shorter name", maxTeam, n)
	} else if !isPrintable(c.Team) {
		add("team: must be printable text, got %q, write the team's name", c.Team)
	}
	if !isWebURL(c.RunbookURL) {
		add("runbook_url: must be an http or https URL, got %q, write one such as %q", c.RunbookURL, "https://wiki/locks")
	}

	for _, d := range []struct {
		key   string
		value time.Duration
		zero  string
	}{
		{"expect", c.Expect, "no expectation"},
		{"max_ttl", c.MaxTTL, DefaultMaxTTL.String()},
		{"warn_ttl_below", c.WarnTTLBelow, "no warning"},
		{"max_wait", c.MaxWait, "no limit"},
	} {
		if d.value < 0 {
			add("%s: must not be negative, got %s, write a duration such as 30s, or 0 for %s", d.key, d.value, d.zero)
		}
	}

	if !(c.MaxFailures >= 0 && c.MaxFailures <= 1) { // NaN is neither
		add("max_failures: must be from 0 to 1, got %v, write the share of acquires that may fail such as 0.5, 1 for no limit, or 0 for %v", c.MaxFailures, DefaultMaxFailures)
	}

	switch c.TTL {
	case TTLUnset, TTLRequired, TTLAllowedNone:
	default:
		add("ttl: must be %s or %s, got %q, write one of the two or leave the key out", TTLRequired, TTLAllowedNone, c.TTL)
	}

	for i, rule := range c.DeadWhen {
		if rule == "" {
			add(`dead_when[%d]: must not be empty, got "", write a rule id such as "ttl/none" or an expression`, i)
		} else if first := slices.Index(c.DeadWhen, rule); first < i {
			add("dead_when[%d]: must not repeat, got %q of dead_when[%d] again, remove one of the two", i, rule, first)
		}
	}

	return append(errs, c.releaseProblems()...)
}

func (c Class) releaseProblems() []error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	switch c.Release {
	case "", ReleaseOff, ReleaseApprove:
	case "auto":
		add("release: this version does not release without a person, got %q, write %s (a person approves each release) or %s", c.Release, ReleaseApprove, ReleaseOff)
	default:
		add("release: must be %s or %s, got %q, write one of the two", ReleaseOff, ReleaseApprove, c.Release)
	}
	if c.Approvals < 0 || c.Approvals > maxApprovals {
		add("approvals: must be from 1 to %d, got %d, write how many people must approve", maxApprovals, c.Approvals)
	}
	switch c.SelfApproval {
	case "", SelfApprovalDeny, SelfApprovalAllow:
	case "alert":
		add("self_approval: this version cannot alert on self-approval, got %q, write %s (another person approves) or %s", c.SelfApproval, SelfApprovalDeny, SelfApprovalAllow)
	default:
		add("self_approval: must be %s or %s, got %q, write one of the two", SelfApprovalDeny, SelfApprovalAllow, c.SelfApproval)
	}
	return errs
}

// isLabelSafe says whether name is safe in a metric label, a URL and a shell.
func isLabelSafe(name string) bool {
	for i := range len(name) {
		c := name[i]
		switch {
		case isUpper(c), isLower(c), isDigit(c):
		case i > 0 && (c == '-' || c == '_' || c == '.' || c == '/'):
		default:
			return false
		}
	}
	return true
}

func isPrintable(s string) bool {
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// isWebURL accepts the empty string and what may stand in a link on a page: a
// javascript: URL there would run with the reader's session.
func isWebURL(text string) bool {
	if text == "" {
		return true
	}
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && isPrintable(text)
}
