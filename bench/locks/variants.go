package main

import (
	"math/rand/v2"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"

	"github.com/locksteward/locksteward/lock"
)

// Names that the promises refer to.
const (
	plainName     = "locksteward"
	redsyncName   = "redsync"
	redislockName = "redislock"
	rueidisName   = "rueidislock"
	bareName      = "two bare script calls"
)

// tunedRetry is how often the tuned rivals look again. Of 0.5, 1, 2, 5 and 10 ms
// it suits both: longer leaves the lock mostly with who had it, shorter loads
// the server for fewer holds.
const tunedRetry = 5 * time.Millisecond

// variants are all contestants. A further mode of the library is one line here.
func variants() []variant {
	return []variant{
		ours(plainName, "`lock.Options{}`, metadata and fence included",
			pairs|costs|handoff|dead|renewal, lock.Options{}, lock.Lease{}),

		redsyncVariant(redsyncName, "its defaults: 32 tries, 50 to 250 ms apart; then again",
			pairs|costs|handoff),
		redsyncVariant("redsync, tuned", "tries for ever, "+tunedRetry.String()+" apart give or take a half", handoff,
			redsync.WithTries(1<<30),
			redsync.WithRetryDelayFunc(func(int) time.Duration { return tunedRetry/2 + rand.N(tunedRetry) })),

		redislockVariant(redislockName, "`LinearBackoff(100ms)`, as its documentation shows; by default it does not wait at all",
			pairs|costs|handoff, redislock.LinearBackoff(100*time.Millisecond)),
		redislockVariant("redislock, tuned", "`LinearBackoff("+tunedRetry.String()+")`",
			handoff, redislock.LinearBackoff(tunedRetry)),

		rueidisVariant(pairs | costs | handoff | renewal),
		bareVariant(pairs | costs),
	}
}
