package api

import (
	"time"

	"github.com/locksteward/locksteward"
)

// LockDetail is one lock with all that is known of it and what the rules say:
// the object of `locksteward explain` and of GET /api/v1/locks/one.
type LockDetail struct {
	Lock
	//api:enum lock|candidate
	Kind       string `json:"kind"`
	Confidence string `json:"confidence"`
	// Configured says that a configured class claims the key.
	Configured bool   `json:"configured"`
	Node       string `json:"node"`
	// SeenAt is the server's time of the look this object comes from.
	SeenAt time.Time `json:"seen_at,omitzero"`
	// ExpiresAt is absent when the lock has no TTL or the server did not say.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	Size      int64     `json:"size"`
	TooLarge  bool      `json:"too_large"`
	// SharedToken says that any client could release the lock; TokenKind says
	// why in words that do not give the token away.
	SharedToken bool   `json:"shared_token"`
	TokenKind   string `json:"token_kind,omitempty"`

	// Session is the one with which the lock ends; null of a lock that does not end with a
	// session, and where nothing is known of it.
	Session *Session `json:"session"`

	History   History   `json:"history"`
	Claim     *Claim    `json:"claim"`
	Heartbeat *Instance `json:"heartbeat"`

	// Verdicts are what each rule makes of the lock, in the order of their names.
	Verdicts []Verdict `json:"verdicts"`
}

// Session is the connection or session that keeps a lock. Unknown parts are absent.
type Session struct {
	// ID is how the store names it.
	ID   string `json:"id"`
	User string `json:"user,omitempty"`
	// Addr is the client's address, without a port.
	Addr  string    `json:"addr,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// State is "active", "idle" or "in transaction", StateSince since when.
	State      string    `json:"state,omitempty"`
	StateSince time.Time `json:"state_since,omitzero"`
	// Locks are the other locks that end with it.
	Locks []Key `json:"locks"`
}

// History is what repeated readings of this hold showed.
type History struct {
	FirstSeen    time.Time `json:"first_seen,omitzero"`
	LastSeen     time.Time `json:"last_seen,omitzero"`
	Looks        int       `json:"looks"`
	Renewals     int       `json:"renewals"`
	LastRenewal  time.Time `json:"last_renewal,omitzero"`
	RenewEveryMs int64     `json:"renew_every_ms,omitempty"`
}

// Claim is what the holder itself wrote beside the lock. Absent times and
// durations were not said.
type Claim struct {
	ID            string    `json:"id"`
	Class         string    `json:"class,omitempty"`
	Purpose       string    `json:"purpose,omitempty"`
	Acquired      time.Time `json:"acquired,omitzero"`
	Renewed       time.Time `json:"renewed,omitzero"`
	Progress      time.Time `json:"progress,omitzero"`
	TTLMs         int64     `json:"ttl_ms,omitempty"`
	RenewEveryMs  int64     `json:"renew_every_ms,omitempty"`
	ExpectMs      int64     `json:"expect_ms,omitempty"`
	MaxHoldMs     int64     `json:"max_hold_ms,omitempty"`
	Renewals      int64     `json:"renewals"`
	RenewFailures int64     `json:"renew_failures"`
	Trace         string    `json:"trace,omitempty"`
}

// Instance is the heartbeat of a process that uses the lock library.
type Instance struct {
	ID      string    `json:"id"`
	App     string    `json:"app"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started,omitzero"`
	Beat    time.Time `json:"beat,omitzero"`
}

// NewLockDetail converts a lock and what the rules make of it; findings on the
// list are those of the verdicts that fire.
func NewLockDetail(l locksteward.Lock, verdicts []Verdict) LockDetail {
	out := LockDetail{
		Lock:        NewLock(l, fired(verdicts), l.At),
		Kind:        string(l.Kind),
		Confidence:  string(l.Confidence),
		Configured:  l.Configured,
		Node:        l.Node,
		SeenAt:      stamp(l.At),
		Size:        l.Size,
		TooLarge:    l.TooLarge,
		SharedToken: l.SharedToken,
		TokenKind:   l.TokenKind,
		History: History{
			FirstSeen:    stamp(l.History.FirstSeen),
			LastSeen:     stamp(l.History.LastSeen),
			Looks:        l.History.Looks,
			Renewals:     l.History.Renewals,
			LastRenewal:  stamp(l.History.LastRenewal),
			RenewEveryMs: l.History.RenewEvery.Milliseconds(),
		},
		Verdicts: append([]Verdict{}, verdicts...),
	}
	if l.ExpireAt > 0 {
		out.ExpiresAt = stamp(time.UnixMilli(l.ExpireAt))
	}
	if c := l.Claim; c != nil {
		out.Claim = &Claim{
			ID: c.ID, Class: c.Class, Purpose: c.Purpose,
			Acquired: stamp(c.Acquired), Renewed: stamp(c.Renewed), Progress: stamp(c.Progress),
			TTLMs: c.TTL.Milliseconds(), RenewEveryMs: c.RenewEvery.Milliseconds(),
			ExpectMs: c.Expect.Milliseconds(), MaxHoldMs: c.MaxHold.Milliseconds(),
			Renewals: c.Renewals, RenewFailures: c.RenewFailures, Trace: c.Trace,
		}
	}
	if s := l.Session; s != nil {
		out.Session = &Session{
			ID: s.ID, User: s.User, Addr: s.Addr, Since: stamp(s.Since), State: string(s.State), StateSince: stamp(s.StateSince),
			Locks: make([]Key, 0, len(s.Locks)),
		}
		for _, name := range s.Locks {
			out.Session.Locks = append(out.Session.Locks, NewKey(name))
		}
	}
	if i := l.Instance; i != nil {
		out.Heartbeat = &Instance{
			ID: i.ID, App: i.App, Host: i.Host, PID: i.PID, Started: stamp(i.Started), Beat: stamp(i.Beat),
		}
	}
	return out
}
