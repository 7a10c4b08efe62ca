package redis

import (
	"fmt"
	"sync"
	"time"
)

// The watch reads at shares of their own, in multiples of pace.busy: what changed is read soon however busy the server
// is. All of it is booked in the server's pace too, so that sweeps slow down for it.
const (
	// watchPart is for reading after pushes, at deadlines and of unwatched locks.
	watchPart = 1.5
	// pollPart is for reading again locks that no push covers, so that a push never waits behind a long round.
	pollPart = 1.0
)

// Costs of a command of the watch, which all take constant time.
const (
	callCost    = 20 * time.Microsecond // of a round trip, as measured on Redis 7.0
	commandCost = 500 * time.Nanosecond // of a command of a pipeline
	// aroundCommand is what the server spends on a command of a pipeline before and
	// after it runs it: reading, looking it up, answering (Redis 7.0).
	aroundCommand = 300 * time.Nanosecond
	// unlearnedCost is booked while the server has not reported it.
	unlearnedCost = 2 * commandCost
	maxCost       = 8 * commandCost
	// learnEvery is how often the server is asked, learnFrom from how many calls on
	// its answer counts.
	learnEvery = 10 * time.Second
	learnFrom  = 100
)

// watchCommands are the commands of the watch whose times count.
var watchCommands = []string{
	"exists", "pttl", "pexpiretime", "getrange", "type", "hlen", "memory|usage", "hgetall", "hmget", "zcard", "scard", "llen", "strlen",
}

// readCost estimates what the server spends on the watch's pipelines, by what it
// says of how long such commands take there (INFO commandstats). Round trips
// would tell more of our own work than of the server's: a pipeline of a hundred
// commands takes a client longer to write and read than the server to run. It is
// safe for concurrent use.
type readCost struct {
	mu    sync.Mutex
	per   time.Duration // of one command
	calls int64         // as last reported
	usec  int64
}

func newReadCost() *readCost { return &readCost{per: unlearnedCost} }

// of returns what a pipeline of n commands that took rtt cost the server.
func (c *readCost) of(n int, rtt time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return min(rtt, callCost+time.Duration(n)*c.per)
}

// learn takes the server's answer to INFO commandstats.
func (c *readCost) learn(stats info) {
	var calls, usec int64
	for _, command := range watchCommands {
		var n, us int64
		if _, err := fmt.Sscanf(stats["cmdstat_"+command], "calls=%d,usec=%d", &n, &us); err == nil {
			calls, usec = calls+n, usec+us
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n, us := calls-c.calls, usec-c.usec
	if n < 0 || us < 0 { // another process, or CONFIG RESETSTAT
		c.calls, c.usec = calls, usec
		return
	}
	if n < learnFrom {
		return
	}
	c.calls, c.usec = calls, usec
	c.per = min(max(time.Duration(us)*time.Microsecond/time.Duration(n)+aroundCommand, commandCost), maxCost)
}

// share is how often something was so lately, as a moving average.
type share float64

func (s *share) note(so bool) {
	*s *= 1 - 1.0/256
	if so {
		*s += 1.0 / 256
	}
}
