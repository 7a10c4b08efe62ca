package formats

import "github.com/locksteward/locksteward"

// familyBullMQJob is the lock of a BullMQ job that a worker does: the worker's
// UUID and a number that grows with each job it fetches.
// Source: taskforcesh/bullmq src/classes/{worker,lock-manager}.ts, src/commands/{moveToActive-11,extendLock-2}.lua.
var familyBullMQJob = &family{
	name: "bullmq-job",
	typ:  typeString,
	key:  func(key string) bool { _, ok := bullLock(key); return ok },
	recognise: func(s Sample) (Decoded, bool) {
		text := string(s.Value)
		if !whole(s) || !isWorkerToken(text) {
			return Decoded{}, false
		}
		d := Decoded{
			Confidence: locksteward.ConfidenceHigh,
			Identity:   locksteward.IdentityStrong,
			// Enough to tell workers apart; more would give the token away.
			Holder:     locksteward.Holder{Instance: "worker " + text[:8]},
			Count:      1,
			Waiters:    -1, // nobody waits: other workers look for stalled jobs
			TokenKind:  "a BullMQ worker's UUID and a number",
			RenewEvery: bullRenewEvery,
		}
		// Java programs write a UUID and a thread id, which come again.
		if own, _ := bullLock(s.Key); !own {
			d.Confidence, d.Identity = locksteward.ConfidenceMedium, lineage(s)
		}
		return d, true
	},
	release:   func(s Sample, p plan) (Command, error) { return p.command(tokenLua, nil, s.Value), nil },
	companion: bullCompanion,
}
