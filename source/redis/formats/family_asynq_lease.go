package formats

import "github.com/locksteward/locksteward"

// familyAsynqLease is asynq's leases on the tasks of one queue that are being
// done: a sorted set of task ids and the time in seconds when each lease ends.
// Its workers move that every 5 s; the key itself never expires.
// Source: hibiken/asynq internal/rdb/rdb.go (dequeueCmd, ExtendLease), heartbeat.go, recoverer.go.
var familyAsynqLease = &family{
	name: "asynq-lease",
	key: func(key string) bool {
		_, rest, ok := asynqQueue(key)
		return ok && rest == "lease"
	},
	recognise: func(s Sample) (Decoded, bool) {
		if s.Type != typeZSet || s.TooLarge || len(s.Members) == 0 || int64(len(s.Members)) != s.Size {
			return Decoded{}, false
		}
		for _, m := range s.Members {
			if m.Score < float64(firstTime.Unix()) || m.Score >= float64(lastTime.Unix()) {
				return Decoded{}, false
			}
		}
		return Decoded{
			Confidence: locksteward.ConfidenceHigh,
			Identity:   lineage(s),
			Count:      s.Size,
			Waiters:    -1,
			TokenKind:  "the ids of asynq tasks and the time when each lease ends",
		}, true
	},
	refuse:    "asynq's own servers take back a lease that ran out within 90 seconds, and a task whose live lease is taken away is done twice",
	companion: asynqCompanion,
}
