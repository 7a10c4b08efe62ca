package locksteward

import (
	"iter"
	"time"
)

// MasterPass is one master's part of a sweep.
type MasterPass struct {
	Node string
	// Complete says that the cursor came back to 0 without an error and the
	// topology did not change meanwhile. Reason is why not, safe to show.
	Complete bool
	Reason   string
	Keys     int64 // keys the server returned, duplicates counted
	// Replica is the replica of Node that was asked for its keys, "" if Node was
	// asked itself. The locks were read on Node either way. AsOf is then the
	// replication offset of Node up to which the replica had everything before.
	Replica string
	AsOf    int64
}

// Sweep is one pass over a target and what it established.
type Sweep struct {
	Target   string
	Started  time.Time     // agent's clock, for display
	At       time.Time     // server time at the end
	Duration time.Duration // the passes alone
	Masters  []MasterPass

	// Locks are the lock keys seen in this sweep, in the order of (DB, Key); none where
	// they stay in the scanner's table ([Sweep.SetLocks]). [Sweep.AllLocks] goes through
	// either.
	Locks []Lock
	// Endings are holds known before and certainly over now.
	Endings []Ending
	// Losses are holds of ours that ended without a release.
	Losses []Loss
	// Candidates is how many keys only a built-in pattern matched.
	Candidates int

	// Waiters wait for locks of ours, in the order of (DB, Key, Since, ID).
	Waiters []Waiter
	// Instances are the processes that use the lock library, by heartbeat, in the
	// order of their ids.
	Instances []Instance
	// Nodes are the servers as they reported themselves when the sweep began.
	Nodes []NodeState
	// NoServerFacts says that servers of this kind report nothing by which a loss of locks
	// could be foreseen: their memory, persistence and replication.
	NoServerFacts bool
	// Orphans are helper keys of lock libraries (queues, signals, counters) whose
	// lock is gone and which nothing will remove, in the order of (DB, Key).
	Orphans []Orphan

	// Silent are the processes that Locks or Losses name and whose heartbeat is
	// gone, in the order of their ids.
	Silent []MissingHeartbeat
	// Events are what happened to the servers lately, oldest first: for as long as
	// they pause verdicts or may explain a loss.
	Events []ServerEvent
	// FenceDrops are the holds among Locks whose fence went backwards, in the order
	// of (DB, Key).
	FenceDrops []FenceDrop

	count int
	all   iter.Seq[*Lock]
}

// Update is what was read of some locks of a target between sweeps, because a server
// pushed a change, a moment was due, or somebody asked for it. Nothing follows from what
// is not in it.
type Update struct {
	Target   string
	Started  time.Time // agent's clock, for display
	At       time.Time // server time of the last reading
	Duration time.Duration

	// Locks are those that are there, in the order of (DB, Key).
	Locks []Lock
	// Endings are holds known before and certainly over now.
	Endings []Ending
	// Losses are holds of ours that ended without a release.
	Losses []Loss
	// Waiters wait for the locks of which they were read, in the order of (DB, Key,
	// Since, ID).
	Waiters []Waiter
	// Events are what the servers pushed of themselves since the update before.
	Events []ServerEvent
}

// Orphan is a helper key of a lock library that outlived its lock.
type Orphan struct {
	Target  string
	DB      int
	Key     string
	Lock    string // the lock it belongs to; "" if its name does not tell
	Library string
	TTL     time.Duration // NoExpiry for none
}

// SetLocks gives the sweep count locks that stay where they are: all goes through them in
// the order of (DB, Key), each as it is known then, without those that are over by then.
// What it yields is valid until the next one. It is safe for concurrent use.
func (s *Sweep) SetLocks(count int, all iter.Seq[*Lock]) { s.Locks, s.count, s.all = nil, count, all }

// AllLocks goes through the locks of the sweep in their order, but for those that are
// over by now and not in Locks. What it yields is valid until the next one: copy what is
// to be kept.
func (s Sweep) AllLocks() iter.Seq[*Lock] {
	if s.all != nil {
		return s.all
	}
	return LocksOf(s.Locks)
}

// LocksOf goes through a list of locks without copying them.
func LocksOf(locks []Lock) iter.Seq[*Lock] {
	return func(yield func(*Lock) bool) {
		for i := range locks {
			if !yield(&locks[i]) {
				return
			}
		}
	}
}

// LockCount is how many locks the sweep has, those that are over by now included.
func (s Sweep) LockCount() int {
	if s.all != nil {
		return s.count
	}
	return len(s.Locks)
}

// Collect returns the sweep with copies of its locks in Locks.
func (s Sweep) Collect() Sweep {
	if s.all == nil {
		return s
	}
	s.Locks = make([]Lock, 0, s.count)
	for l := range s.all {
		s.Locks = append(s.Locks, *l)
	}
	s.count, s.all = 0, nil
	return s
}

// Update is what the sweep says of Locks alone, of those who wait for them, and of what
// happened: nothing follows from it for other locks.
func (s Sweep) Update() Update {
	return Update{
		Target: s.Target, Started: s.Started, At: s.At, Duration: s.Duration,
		Locks: s.Locks, Endings: s.Endings, Losses: s.Losses, Waiters: s.Waiters, Events: s.Events,
	}
}

// Complete says that every master's pass was complete. A sweep without masters
// (the target was away) is not.
func (s Sweep) Complete() bool {
	for _, m := range s.Masters {
		if !m.Complete {
			return false
		}
	}
	return len(s.Masters) > 0
}

// Keys is how many keys the masters returned.
func (s Sweep) Keys() int64 {
	var n int64
	for _, m := range s.Masters {
		n += m.Keys
	}
	return n
}
