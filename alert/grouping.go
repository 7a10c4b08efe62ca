package alert

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// Defaults of a grouping. Wait is short, since what fires together was found by one sweep or
// recheck.
const (
	DefaultGroupWait     = 5 * time.Second
	DefaultGroupInterval = 30 * time.Second
	DefaultRepeat        = 4 * time.Hour
)

// How long the digest of a first sweep waits. While the sweep is under way it is due once, after firstDigestAfter, and the
// rest waits for the end of the sweep ([FirstSweepGroup] is woken then), or laterDigestsAfter; what is critical waits for
// FirstSweepWait alone, and for firstDigestAfter after the digest before.
const (
	// FirstSweepWait is how long it waits for findings that need a second reading.
	FirstSweepWait    = 10 * time.Second
	firstDigestAfter  = time.Minute
	laterDigestsAfter = time.Hour
)

// FirstSweepGroup is the group in which the first sweep of a target waits.
func FirstSweepGroup(target string) string { return firstSweepPrefix + target }

// firstSweepWaits returns for how long a finding of a first sweep waits, and the least time from the digest before it to
// the next. running is for how long the sweep has been under way, negative once it has ended.
func firstSweepWaits(severity locksteward.Severity, running time.Duration) (wait, interval time.Duration) {
	switch {
	case running < 0:
		return FirstSweepWait, 0
	case severity >= locksteward.SeverityCritical:
		return FirstSweepWait, firstDigestAfter
	case running < firstDigestAfter:
		return firstDigestAfter - running, laterDigestsAfter
	default:
		return laterDigestsAfter, laterDigestsAfter
	}
}

// maxGroupKey bounds the key of a group, in bytes.
const maxGroupKey = 512

// groupLabels are the labels by which findings can be grouped: those that a finding
// keeps, so that its end comes in the group of its beginning.
var groupLabels = []string{"target", "db", "class", "rule", "key", "fingerprint"}

// DefaultGrouping is by target, class and rule.
func DefaultGrouping() Grouping {
	return Grouping{
		By: []string{"target", "class", "rule"}, Wait: DefaultGroupWait, Interval: DefaultGroupInterval, Repeat: DefaultRepeat,
	}
}

func (g Grouping) isZero() bool {
	return g.By == nil && g.Wait == 0 && g.Interval == 0 && g.Repeat == 0
}

// but replaces the parts that r names.
func (g Grouping) but(r *Regrouping) Grouping {
	if r == nil {
		return g
	}
	if r.By != nil {
		g.By = r.By
	}
	for _, part := range []struct{ to, from *time.Duration }{{&g.Wait, r.Wait}, {&g.Interval, r.Interval}, {&g.Repeat, r.Repeat}} {
		if part.from != nil {
			*part.to = *part.from
		}
	}
	return g
}

func (g Grouping) problems() []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(g.By) == 0 {
		bad("by: is empty: write some of %s", strings.Join(groupLabels, ", "))
	}
	seen := map[string]bool{}
	for i, label := range g.By {
		if !slices.Contains(groupLabels, label) {
			bad("by[%d]: %q is no label to group by: write some of %s", i, label, strings.Join(groupLabels, ", "))
		} else if seen[label] {
			bad("by[%d]: %q stands twice", i, label)
		}
		seen[label] = true
	}
	if g.Wait < 0 || g.Wait > time.Hour {
		bad("wait: must be 0s to 1h, got %s", g.Wait)
	}
	if g.Interval < 0 || g.Interval > 24*time.Hour {
		bad("interval: must be 0s to 24h, got %s", g.Interval)
	}
	if g.Repeat != 0 && (g.Repeat < time.Minute || g.Repeat > 30*24*time.Hour) {
		bad("repeat: must be 1m to 720h, or 0s for never, got %s", g.Repeat)
	}
	return errs
}

// labelOf is the value of a label of a finding, as people see it.
func labelOf(f locksteward.Finding, label string) string {
	switch label {
	case "target":
		return f.Target
	case "db":
		return strconv.Itoa(f.DB)
	case "class":
		return f.Class
	case "rule":
		return f.Rule
	case "key":
		return locksteward.DisplayKey(f.Key)
	default:
		return f.Fingerprint()
	}
}

// labels are the values by which a finding is grouped.
func (g Grouping) labels(f locksteward.Finding) map[string]string {
	out := make(map[string]string, len(g.By))
	for _, label := range g.By {
		out[label] = labelOf(f, label)
	}
	return out
}

// key names the group of a finding. It is the same whatever the order of By.
func (g Grouping) key(f locksteward.Finding) string {
	by := slices.Sorted(slices.Values(g.By))
	parts := make([]string, 0, len(by))
	for _, label := range by {
		parts = append(parts, label+"="+strconv.Quote(labelOf(f, label)))
	}
	text := strings.Join(parts, " ")
	if len(text) <= maxGroupKey {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return text[:maxGroupKey-2*len(sum)-1] + "~" + hex.EncodeToString(sum[:])
}
