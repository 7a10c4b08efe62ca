package api

import (
	"slices"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
)

// Lock is one lock key as it was last seen, with its age by now.
type Lock struct {
	// Target is empty inside a [Scan], which names it once.
	Target string `json:"target,omitempty"`
	DB     int    `json:"db"`
	Key
	Class   string `json:"class"`
	Library string `json:"library"`
	Type    string `json:"type"`
	// Lifetime is what ends the lock by itself: "lease" a TTL, "session" its holder's
	// connection, "persistent" nothing.
	//api:enum lease|session|persistent
	Lifetime string `json:"lifetime"`
	// TTLMs is -1 when the lock has no TTL.
	TTLMs int64 `json:"ttl_ms"`
	// AgeMs is null when AgeBasis is "none".
	AgeMs *int64 `json:"age_ms"`
	//api:enum claimed|observed|idle|none
	AgeBasis     string `json:"age_basis"`
	AgeIsMinimum bool   `json:"age_is_minimum"`
	// Acquired is when the lock was taken as its value says, by the holder's clock;
	// absent if the value does not say. AcquiredDoubt is why the age does not count
	// it; absent if it may.
	Acquired      time.Time `json:"acquired,omitzero"`
	AcquiredDoubt string    `json:"acquired_doubt,omitempty"`
	// Mode is "read" or "write" of a lock that has both; absent of any other.
	//api:enum read|write
	Mode string `json:"mode,omitempty"`
	//api:enum strong|lineage|none
	Identity string `json:"identity"`
	// TokenDigest is empty when the value was too large to be read.
	TokenDigest string `json:"token_digest"`
	// Fence is 0 when the library has none.
	Fence int64 `json:"fence"`
	// Waiters is 0 too when the library cannot tell: WaitersKnown says which.
	Waiters      int  `json:"waiters"`
	WaitersKnown bool `json:"waiters_known"`
	// Count is the re-entrancy depth, 1 if the library has none.
	Count  int64  `json:"count"`
	Holder Holder `json:"holder"`
	// Findings are the ids of the rules that fire or are pending on the lock.
	Findings []string `json:"findings"`
}

// Holder is who has the lock; unknown parts are empty.
type Holder struct {
	App      string `json:"app"`
	Host     string `json:"host"`
	PID      int    `json:"pid"`
	Session  string `json:"session"`
	Instance string `json:"instance"`
}

// NewHolder converts a holder.
func NewHolder(h locksteward.Holder) Holder {
	return Holder{App: h.App, Host: h.Host, PID: h.PID, Session: h.Session, Instance: h.Instance}
}

// NewLock converts a lock; findings are the ids of the rules that fire or are
// pending on it, in any order and with repeats. The age is that at now, by the
// server's clock, or that of the look if it was later.
func NewLock(l locksteward.Lock, findings []string, now time.Time) Lock {
	age, basis, minimum := l.AgeAt(now)
	out := Lock{
		Target:       l.Target,
		DB:           l.DB,
		Key:          NewKey(l.Key),
		Class:        l.Class,
		Library:      l.Library,
		Type:         l.Type,
		Lifetime:     lifetime(l),
		TTLMs:        ttlMs(l.TTL),
		AgeBasis:     string(basis),
		AgeIsMinimum: minimum,
		Acquired:     stamp(l.Acquired),
		Mode:         l.Mode,
		Identity:     string(l.Identity),
		TokenDigest:  l.TokenDigest,
		Fence:        l.Fence,
		Waiters:      max(0, l.Waiters),
		WaitersKnown: l.Waiters >= 0,
		Count:        l.Count,
		Holder:       NewHolder(l.Holder),
	}
	_, doubt := l.WrittenAge()
	out.AcquiredDoubt = catalogue.Text("en", doubt)
	if out.Identity == "" {
		out.Identity = string(locksteward.IdentityNone)
	}
	if basis != locksteward.AgeNone {
		ms := age.Milliseconds()
		out.AgeMs = &ms
	}
	out.Findings = list(findings)
	slices.Sort(out.Findings)
	out.Findings = slices.Compact(out.Findings)
	return out
}

// lifetime is that of the lock, by its TTL where its source does not say.
func lifetime(l locksteward.Lock) string {
	switch {
	case l.Lifetime != "":
		return string(l.Lifetime)
	case l.TTL == locksteward.NoExpiry:
		return string(locksteward.LifetimePersistent)
	}
	return string(locksteward.LifetimeLease)
}

// ttlMs never turns a lock that expires within the millisecond into -1 or one
// without TTL into 0.
func ttlMs(ttl time.Duration) int64 {
	if ttl == locksteward.NoExpiry {
		return -1
	}
	return max(0, ttl.Milliseconds())
}

// LockKey is what tells locks apart over all targets; it is comparable.
type LockKey struct {
	Target string
	DB     int
	Key    string // exact bytes
}

// RulesByLock returns the rules that fire or are pending on each lock, from
// findings in any order. Findings on a class or target, and resolved ones, are
// left out.
func RulesByLock(findings []locksteward.Finding) map[LockKey][]string {
	out := make(map[LockKey][]string)
	for _, f := range findings {
		if f.Key == "" || f.Status == locksteward.StatusResolved {
			continue
		}
		k := LockKey{Target: f.Target, DB: f.DB, Key: f.Key}
		out[k] = append(out[k], f.Rule)
	}
	return out
}
