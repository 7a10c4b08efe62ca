package record

import "time"

// Version is the format version that this package writes.
const Version = 2

// Grace is how long metadata outlives a lock whose lease ran out, so that an
// observer can tell that it was lost and not released.
const Grace = 5 * time.Minute

// Heartbeat and HeartbeatTTL are how often a process refreshes its instance key
// and how long that key lives without.
const (
	Heartbeat    = 5 * time.Second
	HeartbeatTTL = 15 * time.Second
)

// Meta is the metadata of one hold. Times are milliseconds of server time since
// 1970, durations milliseconds; 0 is "not said".
type Meta struct {
	V          int
	ID         string // acquisition id, as in the lock's value
	Seq        int64  // grows with each renewal, which writes the metadata anew
	Session    string
	Instance   string
	App        string
	Host       string
	PID        int
	Class      string
	Purpose    string
	Acquired   int64
	TTL        int64
	RenewEvery int64
	Expect     int64
	MaxHold    int64
	// EndsWithHeartbeat is 1 if the holder gives up when it cannot keep its heartbeat.
	EndsWithHeartbeat int64
	Renewed           int64
	Renewals          int64
	RenewFailures     int64
	Progress          int64
	Fence             int64
	Holds             int64
	Holding           []string
	Trace             string
	// Lost is the hold before this one, if that ended without a release.
	Lost *Lost
	// Offered is the end of the turn for which a release gave the lock to a waiter
	// that has not confirmed it yet; 0 for a lock that is held.
	Offered int64
	// Free is since when the lock is free while waiters stand in its queue. Such
	// metadata has no ID: it is of no hold.
	Free int64
}

// Lost is what an acquire copies of the metadata it found without its lock.
type Lost struct {
	ID       string
	Holder   string // instance id
	Fence    int64
	Deadline int64 // ms, when the lost lease ran out
	Offered  bool  // it was handed over, and never confirmed
}
