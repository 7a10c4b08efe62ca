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
	// asked itself. What stands in them was read on Node either way. AsOf is then the
	// replication offset of Node up to which the replica had everything before.
	Replica string
	AsOf    int64
}

// Sweep is one pass over a target by SCAN and what it established.
type Sweep struct {
	Target   string
	Started  time.Time     // agent's clock, for display
	At       time.Time     // server time at the end
	Duration time.Duration // the passes alone
	Masters  []MasterPass

	// Locks are the lock keys seen in this sweep, in the order of (DB, Key); none if
	// the sweep is packed. [Sweep.AllLocks] goes through either.
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
	// Nodes are the servers as INFO told at the begin of the sweep.
	Nodes []NodeState
	// Orphans are helper keys of lock libraries (queues, signals, counters) whose
	// lock is gone and which nothing will remove, in the order of (DB, Key).
	Orphans []Orphan

	// Silent are the processes that Locks or Losses name and whose heartbeat is
	// gone, in the order of their ids.
	Silent []Silence
	// Events are what happened to the servers lately, oldest first: for as long as
	// they pause verdicts or may explain a loss. What a watch hands on has those that
	// it was told of itself.
	Events []ServerEvent
	// FenceDrops are the holds among Locks whose fence went backwards, in the order
	// of (DB, Key).
	FenceDrops []FenceDrop

	packed PackedLocks
}

// Orphan is a helper key of a lock library that outlived its lock.
type Orphan struct {
	Target  string
	DB      int
	Key     string
	Lock    string // the lock it belongs to; "" if its name does not tell
	Dialect string
	TTL     time.Duration // NoExpiry for none
}

// PackedLocks are locks that are unpacked one at a time. They are safe for concurrent
// use.
type PackedLocks interface {
	Len() int
	// Unpack writes the i-th lock over l, as it was seen last: by the sweep, or by a
	// look since. It returns false, and what it left in l is nothing, if the hold is
	// over by now.
	Unpack(i int, l *Lock) bool
}

// Pack gives the sweep its locks packed: those that an agent judges, in a tenth of
// the memory.
func (s *Sweep) Pack(locks PackedLocks) { s.Locks, s.packed = nil, locks }

// AllLocks goes through the locks of the sweep in their order, but for those of a
// packed sweep that are over by now. What it yields is valid until the next one: copy
// what is to be kept.
func (s Sweep) AllLocks() iter.Seq[*Lock] {
	return func(yield func(*Lock) bool) {
		if s.packed == nil {
			for i := range s.Locks {
				if !yield(&s.Locks[i]) {
					return
				}
			}
			return
		}
		var l Lock
		for i := range s.packed.Len() {
			if s.packed.Unpack(i, &l) && !yield(&l) {
				return
			}
		}
	}
}

// LockCount is how many locks the sweep has, those that are over by now included.
func (s Sweep) LockCount() int {
	if s.packed == nil {
		return len(s.Locks)
	}
	return s.packed.Len()
}

// Unpacked returns the sweep with its locks in Locks.
func (s Sweep) Unpacked() Sweep {
	if s.packed == nil {
		return s
	}
	s.Locks = make([]Lock, 0, s.packed.Len())
	for l := range s.AllLocks() {
		s.Locks = append(s.Locks, *l)
	}
	s.packed = nil
	return s
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
