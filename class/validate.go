package class

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
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
	case ReleaseAuto:
		errs = append(errs, c.autoProblems()...)
	default:
		add("release: must be %s, %s or %s, got %q, write one of the three", ReleaseOff, ReleaseApprove, ReleaseAuto, c.Release)
	}
	if c.Release != ReleaseAuto && (c.Proof != "" || c.AutoAfter != 0) {
		add("proof and auto_after: say when release: %s needs no person, got release: %s, remove them or write release: %s", ReleaseAuto, c.ReleaseOrDefault(), ReleaseAuto)
	}
	if c.Approvals < 0 || c.Approvals > maxApprovals {
		add("approvals: must be from 1 to %d, got %d, write how many people must approve", maxApprovals, c.Approvals)
	}
	if c.Denials < 0 || c.Denials > maxApprovals {
		add("denials: must be from 1 to %d, got %d, write how many people must deny", maxApprovals, c.Denials)
	}
	switch c.SelfApproval {
	case "", SelfApprovalDeny, SelfApprovalAlert, SelfApprovalAllow:
	default:
		add("self_approval: must be %s, %s or %s, got %q, write one of the three", SelfApprovalDeny, SelfApprovalAlert, SelfApprovalAllow, c.SelfApproval)
	}
	for i, who := range c.Approvers {
		kind, name, ok := strings.Cut(who, ":")
		if !ok || name == "" || !isPrintable(who) || kind != "team" && kind != "role" && kind != "user" {
			add("approvers[%d]: must be team:NAME, role:NAME or user:NAME, got %q, write one such as %q", i, who, "team:checkout")
		}
	}
	if c.MaxPerHour < 0 {
		add("max_per_hour: must not be negative, got %d, write how many releases an hour are in order, or 0 for %d", c.MaxPerHour, DefaultMaxPerHour)
	}
	if c.ManyPerMinute < 0 {
		add("many_per_minute: must not be negative, got %d, write how many releases a minute need nobody else, or 0 for %d", c.ManyPerMinute, DefaultManyPerMinute)
	}
	if c.LockDelay < 0 || c.LockDelay > MaxPlaceholder {
		add("lock_delay: must be from 0 to %s, got %s, write how long nobody shall get the lock after a release", MaxPlaceholder, c.LockDelay)
	}
	return errs
}

// MaxPlaceholder is the longest lock-delay or take-over.
const MaxPlaceholder = 24 * time.Hour

// autoProblems are those of a class whose locks are released without a person.
func (c Class) autoProblems() []error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch c.Proof {
	case "", ProofHeartbeat, ProofRule:
	default:
		add("proof: must be %s or %s, got %q, write one of the two", ProofHeartbeat, ProofRule, c.Proof)
	}
	if c.AutoAfter < 0 || c.AutoAfter > 0 && c.AutoAfter < time.Minute {
		add("auto_after: must be at least 1m, got %s, write how long dead_when must hold, or 0 for %s", c.AutoAfter, DefaultAutoAfter)
	}
	if len(c.DeadWhen) == 0 {
		add("dead_when: must not be empty with release: %s, got [], write what makes a lock dead such as [\"holder/dead\"]", ReleaseAuto)
	} else if c.ProofOrDefault() == ProofHeartbeat && !slices.Contains(c.DeadWhen, "holder/dead") {
		add("dead_when: must have holder/dead with release: %s and proof: %s, got %q, add it or write proof: %s", ReleaseAuto, ProofHeartbeat, c.DeadWhen, ProofRule)
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
