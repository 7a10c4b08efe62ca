package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// showKey is a key for a table: one line, no control characters.
func showKey(k api.Key) string {
	if k.KeyB64 != "" {
		return k.Key // escaped already
	}
	return locksteward.DisplayKey(k.Key)
}

// maxCell bounds a name in a table, in characters: one endless key must not push
// the columns of all others off the screen. JSON and `show` have it in full.
const maxCell = 120

// cellKey is showKey for a column.
func cellKey(k api.Key) string {
	text := showKey(k)
	if utf8.RuneCountInString(text) <= maxCell {
		return text
	}
	return string([]rune(text)[:maxCell]) + fmt.Sprintf("… (%d characters)", utf8.RuneCountInString(text))
}

// showTTL is how long a lock still lasts by itself; one that ends with a session has no TTL.
func showTTL(l api.Lock) string {
	switch {
	case l.Lifetime == string(locksteward.LifetimeSession):
		return "session"
	case l.TTLMs < 0:
		return "none"
	}
	return span(time.Duration(l.TTLMs) * time.Millisecond)
}

// showSession says whose session keeps a lock, and what it does.
func showSession(s api.Session) string {
	parts := []string{oneLine(s.ID)}
	if s.User != "" {
		parts = append(parts, "of "+oneLine(s.User))
	}
	if s.Addr != "" {
		parts = append(parts, "from "+oneLine(s.Addr))
	}
	text := strings.Join(parts, " ")
	if !s.Since.IsZero() {
		text += ", since " + s.Since.Local().Format(time.DateTime)
	}
	if s.State != "" {
		text += ", " + s.State
		if !s.StateSince.IsZero() {
			text += " since " + s.StateSince.Local().Format(time.DateTime)
		}
	}
	return text
}

func showAge(l api.Lock) string {
	if l.AgeMs == nil {
		return "-"
	}
	text := span(time.Duration(*l.AgeMs) * time.Millisecond)
	if l.AgeIsMinimum {
		return "≥" + text
	}
	return text
}

// showHolder names a holder by what is known of it: app@host:pid, or the
// instance and session that a foreign library writes.
func showHolder(h api.Holder) string {
	text := h.App
	if h.Host != "" {
		text += "@" + h.Host
	}
	if h.PID != 0 {
		text += fmt.Sprintf(":%d", h.PID)
	}
	if text == "" && h.Instance != "" {
		text = h.Instance
		if h.Session != "" {
			text += "/" + h.Session
		}
	}
	text = oneLine(text)
	if utf8.RuneCountInString(text) > maxCell { // anybody may have written it
		text = string([]rune(text)[:maxCell]) + "…"
	}
	return dash(text)
}

// writeLocks shows locks, the oldest first.
func writeLocks(w io.Writer, locks []api.Lock, targets bool) error {
	sorted := slices.Clone(locks)
	slices.SortStableFunc(sorted, func(a, b api.Lock) int { return int(age(b)/time.Millisecond) - int(age(a)/time.Millisecond) })
	return writeLockRows(w, sorted, targets)
}

// writeLockRows shows locks in the order given.
func writeLockRows(w io.Writer, locks []api.Lock, targets bool) error {
	header := []string{"KEY", "CLASS", "LIBRARY", "TTL", "AGE", "WAITERS", "HOLDER", "FINDINGS"}
	if targets {
		header = append([]string{"TARGET"}, header...)
	}
	var rows [][]string
	for _, l := range locks {
		waiters := "-"
		if l.WaitersKnown {
			waiters = fmt.Sprint(l.Waiters)
		}
		row := []string{
			cellKey(l.Key), l.Class, l.Library, showTTL(l), showAge(l), waiters,
			showHolder(l.Holder), dash(strings.Join(l.Findings, " ")),
		}
		if targets {
			row = append([]string{l.Target}, row...)
		}
		rows = append(rows, row)
	}
	return writeTable(w, header, rows)
}

func age(l api.Lock) time.Duration {
	if l.AgeMs == nil {
		return 0
	}
	return time.Duration(*l.AgeMs) * time.Millisecond
}

// writeFindings shows findings with their evidence in the order given. What
// neighbours have in common, cause and remedy, stands once behind the last.
func writeFindings(w io.Writer, findings []api.Finding) error {
	var b strings.Builder
	for i, f := range findings {
		if i > 0 {
			b.WriteByte('\n')
		}
		writeEvidence(&b, f)
		if i+1 == len(findings) || findings[i+1].Cause != f.Cause || findings[i+1].Remedy != f.Remedy {
			writeAdvice(&b, f)
		}
	}
	return writeText(w, b.String())
}

// showSubject is what a finding is about: a key, a class, or a target as a whole.
func showSubject(k api.Key, class, target string) string {
	switch {
	case k.Key != "":
		return showKey(k)
	case class != "":
		return "class " + class
	case target != "":
		return "target " + target
	default:
		return "the target"
	}
}

func writeEvidence(b *strings.Builder, f api.Finding) {
	subject := showSubject(f.Key, f.Class, f.Target)
	status := ""
	if f.Status != string(locksteward.StatusFiring) {
		status = " (" + f.Status + ")"
	}
	if f.Baseline == api.BaselineKnown {
		status += " (accepted)"
	}
	fmt.Fprintf(b, "%-8s  %s%s  %s\n", strings.ToUpper(f.Severity), f.Rule, status, subject)
	fmt.Fprintf(b, "  %s\n", oneLine(f.Summary))
	for _, e := range f.Evidence {
		fmt.Fprintf(b, "  + %s\n", oneLine(e))
	}
	for _, e := range f.CounterEvidence {
		fmt.Fprintf(b, "  - %s\n", oneLine(e))
	}
	if f.InhibitedBy != "" {
		fmt.Fprintf(b, "  inhibited by finding %s, which is notified instead\n", f.InhibitedBy)
	}
	if f.Team != "" || f.RunbookURL != "" {
		fmt.Fprintln(b, strings.TrimRight(fmt.Sprintf("  team %s  %s", dash(f.Team), f.RunbookURL), " "))
	}
	if f.Unlock != "" {
		fmt.Fprintf(b, "  release it, once its holder is known to be dead:\n    %s\n", f.Unlock)
	}
}

func writeAdvice(b *strings.Builder, f api.Finding) {
	if f.Cause != "" {
		fmt.Fprintf(b, "  cause:  %s\n", oneLine(f.Cause))
	}
	if f.Remedy != "" {
		fmt.Fprintf(b, "  remedy: %s\n", oneLine(f.Remedy))
	}
}

// acquired is the time in the lock's value beside what was observed.
func acquired(d api.LockDetail) string {
	text := d.Acquired.Local().Format(time.DateTime) + " by its value and the holder's clock"
	if d.AcquiredDoubt != "" {
		text += "; not counted: " + d.AcquiredDoubt
	}
	if first := d.History.FirstSeen; !first.IsZero() {
		text += "; first seen " + first.Local().Format(time.DateTime)
	}
	return text
}

func writeRequests(w io.Writer, requests []api.Request) error {
	var rows [][]string
	for _, r := range requests {
		rows = append(rows, []string{
			r.ID, r.State, r.Evidence.Target, cellKey(r.Evidence.Key), r.Requester,
			r.CreatedAt.Local().Format(time.DateTime), dash(oneLine(r.Reason)),
		})
	}
	return writeTable(w, []string{"ID", "STATE", "TARGET", "KEY", "REQUESTER", "CREATED", "REASON"}, rows)
}

// showAct says what an approval would do.
func showAct(e api.Evidence) string {
	stand := span(time.Duration(e.PlaceholderMs) * time.Millisecond)
	text := e.Act
	switch {
	case e.Of != "":
		text += " of " + e.Of
	case e.Act == string(locksteward.ActTakeOver):
		text += " for " + stand
	case e.PlaceholderMs > 0:
		text += ", and the lock is unavailable for " + stand
	}
	if e.HolderAlive {
		text += "; its holder is alive: owner, type and count are compared, not the expiry"
	}
	if e.BreakGlass {
		text += "; break-glass: by one person, without approvals"
	}
	return text
}

// identity is how surely the hold is distinguished from the next one, and whether who
// approves has to confirm it.
func identity(e api.Evidence) string {
	if e.WeakIdentity && e.Identity != string(locksteward.IdentityNone) {
		return e.Identity + " (weak: a constant value)"
	}
	return e.Identity
}

// identityMeans are the values of identity for people.
var identityMeans = map[locksteward.Identity]string{
	locksteward.IdentityStrong:  "the value of this hold is of no other",
	locksteward.IdentityLineage: "a later hold may have the same value; its expiry is compared, too",
	locksteward.IdentityNone:    "a later hold may look the same",
}

// explainedIdentity is an identity with what it means.
func explainedIdentity(shown, identity string) string {
	if means := identityMeans[locksteward.Identity(identity)]; means != "" {
		return shown + ": " + means
	}
	return shown
}

// inDB names the database of a lock on Redis, unless it is the first.
func inDB(db int) string {
	if db == 0 {
		return ""
	}
	return fmt.Sprintf(", db %d", db)
}

// maxAlso is how many of the other locks of a session are named.
const maxAlso = 10

func writeDetail(w io.Writer, d api.LockDetail) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", name+":", fmt.Sprintf(format, args...))
	}
	line("lock", "%s", showKey(d.Key))
	where := d.Node + inDB(d.DB)
	if d.Target != "" {
		where = d.Target + ", " + where
	}
	line("on", "%s", where)
	line("class", "%s", d.Class)
	line("library", "%s (%s, %s confidence)", d.Library, d.Type, dash(d.Confidence))
	line("identity", "%s", explainedIdentity(d.Identity, d.Identity))
	if d.Lifetime == string(locksteward.LifetimeSession) {
		line("ttl", "none, it ends with its session")
	} else {
		line("ttl", "%s", showTTL(d.Lock))
	}
	line("age", "%s (%s)", showAge(d.Lock), d.AgeBasis)
	if !d.Acquired.IsZero() {
		line("acquired", "%s", acquired(d))
	}
	if d.Mode != "" {
		line("mode", "%s", d.Mode)
	}
	line("holder", "%s", showHolder(d.Holder))
	if d.Session != nil {
		line("session", "%s", showSession(*d.Session))
		for i, k := range d.Session.Locks {
			if i == maxAlso {
				line("ends too", "%d other locks", len(d.Session.Locks)-i)
				break
			}
			line("ends too", "%s", showKey(k))
		}
	}
	if d.Fence > 0 {
		line("fence", "%d", d.Fence)
	}
	if d.WaitersKnown {
		line("waiters", "%d", d.Waiters)
	}
	switch {
	case d.SharedToken:
		line("token", "shared: %s", d.TokenKind)
	case d.TokenKind == locksteward.UnverifiedPlaceholder, d.Library == "token" && d.TokenKind != "":
		line("token", "%s", d.TokenKind)
	}
	if c := d.Claim; c != nil {
		if c.Purpose != "" {
			line("purpose", "%s", oneLine(c.Purpose))
		}
		line("claims", "acquired %s, renewed %d times, %d failures", c.Acquired.Local().Format(time.DateTime), c.Renewals, c.RenewFailures)
		if c.ExpectMs > 0 {
			line("expects", "%s", span(time.Duration(c.ExpectMs)*time.Millisecond))
		}
	}
	if h := d.Heartbeat; h != nil {
		line("heartbeat", "%s, pid %d, last at %s", dash(oneLine(h.Host)), h.PID, h.Beat.Local().Format(time.DateTime))
	}
	if d.History.Renewals > 0 {
		line("seen", "renewed %d times", d.History.Renewals)
	}
	return writeText(w, b.String())
}
