package lockhistory

import (
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/store"
)

// Event is one event of a lock. Its details become JSON when it is written.
type Event struct {
	store.LockEvent
	details any
}

// hold is a hold that ended, as the store keeps it.
type hold struct {
	// Began is when it was acquired, as its holder says, or when it was first seen.
	Began       time.Time  `json:"began"`
	Renewals    int        `json:"renewals,omitempty"`
	LastRenewal time.Time  `json:"last_renewal,omitzero"`
	HeldMs      int64      `json:"held_ms"`
	AtLeast     bool       `json:"at_least,omitempty"`
	ByHolder    bool       `json:"by_holder,omitempty"`
	Digest      string     `json:"digest,omitempty"`
	Holder      api.Holder `json:"holder"`
}

// finding is a finding that changed, as the store keeps it.
type finding struct {
	Rule     string              `json:"rule"`
	Severity string              `json:"severity"`
	Summary  locksteward.Message `json:"summary"`
}

// HoldEnded returns the event of a hold that ended. Watched says that the watch reported the end when it happened;
// otherwise the last reading bounds the duration of the hold.
func HoldEnded(e locksteward.Ending, watched bool) Event {
	l := e.Lock
	began, exact := begin(l)
	h := hold{Began: began, AtLeast: true, ByHolder: e.ByHolder, Digest: l.TokenDigest, Holder: api.NewHolder(l.Holder)}
	h.Renewals, h.LastRenewal = renewals(l)
	last := l.At
	switch {
	case e.How == locksteward.EndedExpired && l.ExpireAt > 0:
		last, h.AtLeast = time.UnixMilli(l.ExpireAt), !exact
	case watched:
		last, h.AtLeast = e.At, !exact
	}
	h.HeldMs = max(0, last.Sub(began).Milliseconds())
	return event(l.DB, l.Key, e.At, kindOf(e.How), h)
}

// HoldMissed returns the event of a hold that ended at an unknown time while no agent ran.
func HoldMissed(r scanner.HistoryRow, at time.Time) Event {
	return event(r.DB, r.Key, at, api.EventGone, hold{
		Began: r.FirstSeen, Renewals: r.Renewals, LastRenewal: r.LastRenewal, HeldMs: max(0, r.LastSeen.Sub(r.FirstSeen).Milliseconds()),
		AtLeast: true, Digest: r.TokenDigest,
	})
}

// FindingChanged returns the event of a change of a finding; the name of the lock is empty where it is about a class, a host or a server.
func FindingChanged(t locksteward.Transition) Event {
	f := t.Finding
	return event(f.DB, f.Key, t.At, string(f.Status), finding{
		Rule: f.Rule, Severity: f.Severity.String(), Summary: f.Message(),
	})
}

func event(db int, key string, at time.Time, kind string, details any) Event {
	return Event{store.LockEvent{DB: db, Key: key, At: at, Kind: kind}, details}
}

// begin returns when a hold began, and whether its holder says so.
func begin(l locksteward.Lock) (_ time.Time, exact bool) {
	if l.Claim != nil && !l.Claim.Acquired.IsZero() {
		return l.Claim.Acquired, true
	}
	return l.History.FirstSeen, false
}

// renewals returns the renewals that were seen, or those that the holder counts.
func renewals(l locksteward.Lock) (int, time.Time) {
	n, at := l.History.Renewals, l.History.LastRenewal
	if l.Claim != nil && l.Claim.Renewals > int64(n) {
		n = int(l.Claim.Renewals)
		if l.Claim.Renewed.After(at) {
			at = l.Claim.Renewed
		}
	}
	return n, at
}

func kindOf(how locksteward.EndedHow) string {
	switch how {
	case locksteward.EndedReleased:
		return api.EventReleased
	case locksteward.EndedExpired:
		return api.EventExpired
	case locksteward.EndedDeleted:
		return api.EventDeleted
	default:
		return api.EventGone // it ended, nobody knows how
	}
}
