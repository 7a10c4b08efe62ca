package formats

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// familyResqueScheduler is resque-scheduler's lock of the one master:
// <host>:<pid> under …resque_scheduler_master_lock.
// Source: resque/resque-scheduler lib/resque/scheduler/{lock,locking.rb}.
var familyResqueScheduler = stringFamily("resque-scheduler", func(key string) bool {
	return strings.HasSuffix(key, "resque_scheduler_master_lock")
}, stringLock{
	kind:   "a host name with a process id",
	value:  func(text string) bool { return nameAndPID(text).PID > 0 },
	origin: originShared, confidence: locksteward.ConfidenceHigh, holder: nameAndPID,
})

func nameAndPID(text string) locksteward.Holder {
	holder, _ := hostAndPID(text)
	return holder
}
