package locksteward

import "time"

// ServerEventKind is what happened to a server.
type ServerEventKind string

const (
	// ServerRestarted is a new process that was started since the look before.
	ServerRestarted ServerEventKind = "restarted"
	// ServerFailedOver is another server, or another role, behind the same keys.
	ServerFailedOver ServerEventKind = "failed_over"
	// ServerEvicted is keys given up for want of memory.
	ServerEvicted ServerEventKind = "evicted"
	// ServerFlushed is a FLUSHALL, FLUSHDB or SWAPDB, of whichever database.
	ServerFlushed ServerEventKind = "flushed"
	// ServerClockStepped is a clock that went on by more or less than time did:
	// forward it ended leases early, back it prolongs them.
	ServerClockStepped ServerEventKind = "clock_stepped"
)

// ServerEvent is something that happened to a server between two looks at it,
// and may have taken locks or heartbeats with it.
type ServerEvent struct {
	Kind ServerEventKind
	// Node is the address that serves the keys now, Was the one before; Was is ""
	// where it did not change.
	Node string
	Was  string
	// After is the last look at which it had not happened yet, At the look that
	// noticed it; server time. After is zero if nobody looked before: the server
	// was found young.
	After time.Time
	At    time.Time
	// Count is how many keys were evicted or how many flushes there were; 0 for
	// other kinds and where it is not known yet.
	Count int64
	// Locks is how many known holds stood before a flush, of which none stands any
	// more, as far as they have been read again; 0 where one does, since another
	// database was flushed then. Of a failover
	// it is how many known holds are gone of which it is not proved that the new master
	// ever had them as they were. Of a restart it is how many known holds are gone that
	// had no TTL or a lease that ended after Started. 0 for other kinds. Keys are the
	// first of those of a failover or restart.
	Locks int
	Keys  []string
	// Started is when the process of a restarted server began, server time; zero for
	// other kinds and where it is not known. Classes counts the holds of Locks by their
	// class, and Stood is how many holds from before the restart were found after it.
	Started time.Time
	Classes map[string]int
	Stood   int
	// Back is how many holds stand again after a restart or a failover whose end had
	// been seen before it, and BackKeys are the first of them; 0 for other kinds.
	Back     int
	BackKeys []string
	// Step is how far the clock jumped, negative if back; 0 for other kinds.
	Step time.Duration
	// Pause is until when verdicts of death wait because of it: one longest lease.
	// It is zero for kinds that pause nothing.
	Pause time.Time
}

// MissingHeartbeat is of a process that locks name as their holder and whose heartbeat is
// not there.
type MissingHeartbeat struct {
	// Instance is what was last known of it; only its ID if its heartbeat was
	// never seen.
	Instance Instance
	// Since is the first of Looks looks in a row that missed the heartbeat, server
	// time, and For how long that has been, by the slower of the server's clock and
	// the agent's. A look that could not read it, and whatever happened to the
	// server that keeps it (restart, failover, eviction, flush), begins a new row; where
	// Listeners is 0, so does a look that found the process connected.
	Since time.Time
	For   time.Duration
	Looks int
	// Deleted says that the heartbeat was deleted before its time while nothing
	// happened to the server, and that the process was not found connected since: it ended
	// in order and held, as far as it knew, no lock.
	Deleted bool
	// Listeners is how many connections are subscribed to the process's own
	// channel; negative: not known.
	Listeners int
	// Successor is alive, declares the same slot, and was started after the last
	// heartbeat of this one; nil for none.
	Successor *Instance
}

// FenceDrop is a hold whose fence is not above one that was given before it.
type FenceDrop struct {
	DB  int
	Key string
	ID  string // of the hold, as it claims
	// Fence is the hold's, Highest the largest that was seen before it, at At, of
	// any lock that counts with the same counter.
	Fence   int64
	Highest int64
	At      time.Time
	// Counter is the key that they come from; "" where it is not known.
	Counter string
}
