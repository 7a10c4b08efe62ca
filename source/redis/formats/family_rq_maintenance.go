package formats

import "github.com/locksteward/locksteward"

// familyRQMaintenance is RQ's rq:clean_registries:<queue>: "1" for 899 s, so
// that one worker in a quarter of an hour cleans the registries.
// Source: rq/rq rq/queue.py.
var familyRQMaintenance = stringFamily("rq-maintenance", prefixed("rq:clean_registries:"), stringLock{
	kind: "a one-digit number", value: func(text string) bool { return text == "1" },
	origin: originShared, confidence: locksteward.ConfidenceHigh,
	refuse: "it has no holder to compare, marks work that was done and not work that goes on, and ends by itself within 15 minutes",
})
