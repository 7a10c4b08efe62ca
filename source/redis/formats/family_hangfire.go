package formats

import (
	"time"

	"github.com/locksteward/locksteward"
)

// familyHangfire is Hangfire.Redis.StackExchange: the UUID of the process under
// {hangfire}:<resource>.
// Source: marcoCasamento/Hangfire.Redis.StackExchange RedisLock.cs.
var familyHangfire = stringFamily("hangfire", prefixed("{hangfire}:"), stringLock{
	kind: "a UUID of a Hangfire process", value: isUUID,
	origin: originProcess, confidence: locksteward.ConfidenceHigh, renewEvery: 15 * time.Second,
})
