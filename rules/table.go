package rules

import (
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// subject is what findings are about: a key, or a class (key is empty).
type subject struct {
	target string
	db     int
	class  string // only where key is empty: a reload may move a key to another class
	key    string
}

func subjectOf(f locksteward.Finding) subject {
	s := subject{target: f.Target, db: f.DB, key: f.Key}
	if f.Key == "" {
		s.class = f.Class
	}
	return s
}

// tracked is one finding with what the engine must remember of it.
type tracked struct {
	finding locksteward.Finding
	scope   Scope
	// loss is the first report of a lost hold. Later ones know less: once the
	// deadline has passed, a lock deleted before it looks like one that expired.
	loss lossOrigin
	// confirmed is the number of the last evaluation in which the rule said so.
	confirmed uint64
}

// lossOrigin is how and when a loss was first found.
type lossOrigin struct {
	how locksteward.EndedHow
	at  time.Time
}

// table holds all pending and firing findings. A subject has few, so a slice per
// subject costs less than a map, and a lock without findings costs one lookup.
type table map[subject][]*tracked

func (t table) find(s subject, rule, id string) *tracked {
	for _, tr := range t[s] {
		if tr.finding.Rule == rule && tr.finding.Subject == id {
			return tr
		}
	}
	return nil
}

func (t table) put(s subject, tr *tracked) {
	for i, old := range t[s] {
		if old.finding.Rule == tr.finding.Rule && old.finding.Subject == tr.finding.Subject {
			t[s][i] = tr
			return
		}
	}
	t[s] = append(t[s], tr)
}

func (t table) drop(s subject, tr *tracked) {
	rest := slices.DeleteFunc(t[s], func(x *tracked) bool { return x == tr })
	if len(rest) == 0 {
		delete(t, s)
		return
	}
	t[s] = rest
}

// advance moves a finding on that its rule says again at now: next is the new
// verdict, wait the rule's `for:`, heldSince the first look at the hold (zero if
// not known). It returns what people are told, in order.
func (tr *tracked) advance(next locksteward.Finding, now time.Time, wait time.Duration, heldSince time.Time) []locksteward.Finding {
	old := tr.finding
	next.Status, next.Since, next.FiredAt = old.Status, old.Since, old.FiredAt
	defer func() { tr.finding = next }()
	if old.Status == locksteward.StatusFiring && old.InhibitedBy == "" {
		next.InhibitedBy = "" // people were told of it, and are told its end
	}

	if next.Status == locksteward.StatusPending {
		// Another hold than the one that began to wait, or a server clock that
		// went back: nothing is known of how long this has been so. (A hold first
		// seen in the future is such a clock too.)
		another := heldSince.After(next.Since) && !heldSince.After(now)
		if another || now.Before(next.Since) {
			next.Since = now
		}
		if now.Sub(next.Since) < wait {
			return nil
		}
		next.Status, next.FiredAt = locksteward.StatusFiring, now
		return []locksteward.Finding{next}
	}
	if old.InhibitedBy != "" && next.InhibitedBy == "" {
		next.FiredAt = now // what explained it is over: it is told now
		return []locksteward.Finding{next}
	}
	if next.Severity == old.Severity {
		return nil
	}
	if Notifies(old) && !Notifies(next) {
		// Whoever was told must be told the end, and will not hear of an info.
		next.FiredAt = now
		return []locksteward.Finding{resolved(old, now), next}
	}
	return []locksteward.Finding{next}
}

// resolved is the finding as it ends.
func resolved(f locksteward.Finding, at time.Time) locksteward.Finding {
	f.Status, f.ResolvedAt = locksteward.StatusResolved, at
	return f
}
