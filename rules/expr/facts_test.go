package expr

import (
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// known are facts of which everything is known; each example of the reference
// has an outcome on them.
func knownFacts() *Facts {
	return &Facts{
		Now: t0,
		Lock: &locksteward.Lock{
			Observation: locksteward.Observation{
				Target: "redis", DB: 0, Node: "10.0.0.7:6379", Key: "lock:order:42", Type: "string",
				At: t0, TTL: time.Minute, ExpireAt: t0.Add(time.Minute).UnixMilli(), Idle: 2 * time.Second,
				Size: 36, Kind: locksteward.KindLock, Class: "batch", Configured: true, Library: "locksteward",
				Confidence: locksteward.ConfidenceHigh, Identity: locksteward.IdentityStrong,
				SharedToken: true, TokenKind: "a one-digit number", Acquired: t0.Add(-2 * time.Hour), Mode: "write",
				Holder: locksteward.Holder{App: "billing", Host: "web-3", PID: 42, Session: "42", Instance: "i1"},
				Count:  1, Fence: 7, Waiters: 3,
				Claim: &locksteward.Claim{
					Version: 1, ID: "c1", Class: "batch", Purpose: "import", Acquired: t0.Add(-3 * time.Hour),
					Renewed: t0.Add(-5 * time.Second), Progress: t0.Add(-time.Minute), TTL: time.Minute,
					RenewEvery: 20 * time.Second, Expect: time.Hour, MaxHold: 4 * time.Hour,
					Renewals: 500, RenewFailures: 1, Fence: 7, Holds: 1,
					Session: "42", Holding: []string{"lock:a", "lock:account:7"},
				},
				Instance: &locksteward.Instance{
					ID: "i1", App: "billing", Host: "web-3", PID: 42, Slot: "worker-0",
					Started: t0.Add(-5 * time.Hour), Beat: t0.Add(-2 * time.Second),
				},
			},
			History: locksteward.History{
				FirstSeen: t0.Add(-2 * time.Hour), LastSeen: t0, Looks: 240, Renewals: 360,
				LastRenewal: t0.Add(-5 * time.Second), RenewEvery: 20 * time.Second,
			},
		},
		Class: class.Class{Name: "batch", Team: "billing", Expect: time.Hour, MaxTTL: 2 * time.Hour, TTL: class.TTLRequired, Release: class.ReleaseApprove},
		Age:   Age{Value: 3 * time.Hour, Basis: locksteward.AgeClaimed},
		Alive: true,
	}
}

// nothing is a lock of which only the key is known.
func nothingKnown() *Facts {
	return &Facts{Now: t0, Lock: &locksteward.Lock{Observation: locksteward.Observation{
		Key: "lock:x", TTL: locksteward.NoExpiry, Idle: -1, Waiters: -1,
	}}}
}
