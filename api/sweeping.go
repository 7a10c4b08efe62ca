package api

import (
	"fmt"
	"strings"
	"time"
)

// Sweeping is how far a sweep under way has come.
type Sweeping struct {
	// First says that no sweep of the target has ended since the agent's
	// start: lists have no more of it than what was found meanwhile.
	First   bool      `json:"first"`
	Started time.Time `json:"started"`
	// Keys is how many were scanned so far, OfKeys how many there were at its start;
	// null while the servers have not reported it.
	Keys   int64  `json:"keys"`
	OfKeys *int64 `json:"of_keys"`
	// Percent of the keys were scanned, 0 to 99; null without OfKeys. Findings of single
	// locks come meanwhile, all others at the end.
	Percent *int `json:"percent"`
	// EndsAt is an estimate; absent while it cannot be given.
	EndsAt time.Time `json:"ends_at,omitzero"`
}

// Words says it in a sentence: "43 % of 20001 keys scanned in 12s, about 16s to go".
func (s Sweeping) Words(now time.Time) string {
	var b strings.Builder
	if s.Percent == nil || *s.OfKeys == 0 {
		fmt.Fprintf(&b, "%d keys scanned", s.Keys)
	} else {
		fmt.Fprintf(&b, "%d %% of %d keys scanned", *s.Percent, *s.OfKeys)
	}
	fmt.Fprintf(&b, " in %s", roundly(now.Sub(s.Started)))
	switch {
	case s.EndsAt.IsZero():
	case s.EndsAt.Sub(now) < time.Second:
		b.WriteString(", about to end")
	default:
		fmt.Fprintf(&b, ", about %s to go", roundly(s.EndsAt.Sub(now)))
	}
	return b.String()
}

// roundly is a duration without digits that nobody can vouch for.
func roundly(d time.Duration) string {
	if d = max(d, 0); d < time.Minute {
		return d.Round(time.Second).String()
	}
	if d < time.Hour {
		return d.Round(10 * time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// Unseen is a target of which a list of locks or findings may say too little.
type Unseen struct {
	Target string `json:"target"`
	// Reason is a sentence: what is missing, and what to do or to wait for.
	Reason string `json:"reason"`
	// Sweeping is how far its sweep under way has come; null for none.
	Sweeping *Sweeping `json:"sweeping"`
}

// Beginning says that the target was not read yet, and that nothing is known to
// keep it from being read: its first sweep is under way or about to begin.
func (t Target) Beginning() bool {
	return t.LastSweep == nil || t.Up && t.Sweeping != nil && t.Sweeping.First
}

// Unseen says why a list may lack something of the target; false if it does not.
func (t Target) Unseen(now time.Time) (Unseen, bool) {
	out := Unseen{Target: t.Name, Sweeping: t.Sweeping}
	switch {
	case t.Beginning():
		out.Reason = t.FirstSweep(now)
	case !t.Up:
		out.Reason = "it is down: " + t.Reason
	case !t.LastSweep.Complete:
		out.Reason = "its last sweep was not complete"
		if t.Reason != "" {
			out.Reason += ": " + t.Reason
		}
	default:
		return Unseen{}, false
	}
	return out, true
}

// FirstSweep says how far the first sweep of a target is that is beginning.
func (t Target) FirstSweep(now time.Time) string {
	switch {
	case t.Paused != nil:
		return "its first sweep waits: " + t.Paused.By + " paused it"
	case t.Sweeping == nil:
		return "its first sweep is about to begin"
	case !t.Up:
		return "its first sweep is under way: the server has not answered yet"
	default:
		return "its first sweep is under way: " + t.Sweeping.Words(now)
	}
}

// UnseenOf says of which targets a list may lack something; name is that of one
// target, or "" for all.
func UnseenOf(targets []Target, name string, now time.Time) []Unseen {
	var out []Unseen
	for _, t := range targets {
		if u, ok := t.Unseen(now); ok && (name == "" || name == t.Name) {
			out = append(out, u)
		}
	}
	return out
}
