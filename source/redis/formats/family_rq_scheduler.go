package formats

import (
	"strconv"

	"github.com/locksteward/locksteward"
)

// familyRQScheduler is RQ's lock of the scheduler of one queue,
// rq:scheduler-lock:<queue>: the scheduler's process id, in later versions its
// name, which by default is a UUID in hex.
// Source: rq/rq rq/scheduler.py.
var familyRQScheduler = stringFamily("rq-scheduler", prefixed("rq:scheduler-lock:"), stringLock{
	kind: "the name or process id of an RQ scheduler",
	value: func(text string) bool {
		return text != "" && len(text) <= maxShared && isPrintableText(text)
	},
	origin: originProcess, confidence: locksteward.ConfidenceHigh,
	// Name and id are no secret that opens the lock: RQ deletes by name alone.
	holder: func(text string) locksteward.Holder {
		if isDigits(text) && len(text) <= 7 {
			pid, _ := strconv.Atoi(text) // at most seven digits
			return locksteward.Holder{PID: pid}
		}
		return locksteward.Holder{Session: text}
	},
})
