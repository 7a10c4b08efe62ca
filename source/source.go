// Package source is the seam between the agent and the stores that keep locks: what a
// store has to offer so that its locks can be scanned, watched and released.
//
// A [Source] reads one target. It keeps no locks: what is known of them is the table of
// its [Host], the scanner, which alone decides what a reading means. [Conformance]
// (package sourcetest) is the suite that every source passes.
package source

import (
	"context"
	"errors"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/pace"
)

// Errors that scanner and source agree on.
var (
	// ErrStalled is the cause of a sweep's cancelled context if no server answered within the timeout.
	ErrStalled = errors.New("sweep timed out")
	// ErrLoading is wrapped by the error of a store that reads its data from disk.
	ErrLoading = errors.New("the server is loading its data")
)

// Source reads the locks of one target. Its methods are safe for concurrent use, except
// that Bind is called first and once, and Sweep and Watch each run once at a time.
type Source interface {
	// Traits returns what the store and its locks have. It does no I/O.
	Traits() Traits
	// Topology returns how the servers of the target belong together, as far as is known.
	Topology() locksteward.Mode
	// DB returns the database that is read; 0 for stores without numbered databases.
	DB() int
	// Bind sets the host that the source reads for.
	Bind(Host)
	// SetClasses replaces the classes, from the next sweep and push on.
	SetClasses(*class.Set)

	// Sweep reads all locks once and passes them to sink. Trouble with a part of the target
	// makes that part incomplete; an error means that the target is away.
	Sweep(ctx context.Context, opts SweepOptions, sink Sink) (*Sweep, error)
	// Read reads some locks by name. It waits for the pace of the servers if paced is set.
	// Locks of a server that could not be read are in no batch; the error says why, and the
	// batches are valid.
	Read(ctx context.Context, names []string, paced bool) ([]Batch, error)

	// Watch passes changes between sweeps to Host.Apply until ctx is done, and then returns nil.
	Watch(ctx context.Context) error
	// AwaitWatch returns when Watch has tried to reach all servers once, or when ctx is done.
	AwaitWatch(ctx context.Context)
	// Request has Watch read a lock soon. Urgent is for a lock whose reading is due now.
	Request(name string, urgent bool)
	// WatchState returns how far the target is watched.
	WatchState() WatchState

	// Renewed is closed when credentials changed, so that another attempt is worth it.
	Renewed() <-chan struct{}
	// Ready returns how much later than at a sweep must begin to stay within the share of the
	// servers' time that sweeps may take.
	Ready(at time.Time) time.Duration
	// Stats returns counters and what the last sweep had to do without.
	Stats() Stats
	// Explain says in one sentence what an error of the source means and what to do.
	Explain(error) string
}

// Traits are what a store and its locks have. The scanner and the rules that are about
// one kind of store ask for them.
type Traits struct {
	// Lifetimes are those that its locks may have.
	Lifetimes []locksteward.Lifetime
	// ExpiryTolerance is by how much the expiry of a lease that nobody renewed may differ
	// between two readings: more of a store that returns the time left in whole seconds.
	ExpiryTolerance time.Duration
	// Watch: changes are passed between sweeps, pushed by the store or polled.
	Watch bool
	// Waiters: who waits for a lock can be read.
	Waiters bool
	// Fences: locks carry fencing tokens.
	Fences bool
	// Heartbeats: processes that hold locks write heartbeats.
	Heartbeats bool
	// ServerFacts: servers report their memory, persistence, replication, restarts and
	// flushes. The rules of the group server are about stores that have it.
	ServerFacts bool
}

// Host is what a source may ask of and report to the scanner that it reads for. It is safe
// for concurrent use; no method blocks for I/O but Apply.
type Host interface {
	Target() locksteward.Target
	// Throttle is where calls to the target wait.
	Throttle() *Throttle
	// Len returns how many locks are known.
	Len() int
	// Lookup returns what is known of a lock; false if it is not known.
	Lookup(name string) (Known, bool)
	// Each passes all known locks to yield, which must not call the host.
	Each(yield func(Known))

	// ClockOffset returns how far a server's clock is ahead of ours, as far as is known.
	ClockOffset(node string) time.Duration
	// SetClockOffset reports it.
	SetClockOffset(node string, offset time.Duration)
	// ClockRead reports that a server's clock showed now between two moments of ours.
	ClockRead(node string, now, began, ended time.Time)
	// SetLine reports which line of data a server has: another one after a restart or failover.
	SetLine(node, line string)
	// Lost reports that a server's data went at at, by its own clock: ordered by a command, or
	// with its process.
	Lost(node string, at time.Time, ordered bool)

	// Alive reports that a server was asked something or has answered: a sweep is not stalled.
	Alive()
	// RequestSweep begins the next sweep as soon as possible.
	RequestSweep()
	// Apply takes what the watch has read.
	Apply(ctx context.Context, b Batch)
}

// Known is what the scanner knows of a lock.
type Known struct {
	Name     string
	Type     string // as the store calls it
	Library  string
	TooLarge bool
	At       int64 // of the last reading, server time, µs since 1970
	ExpireAt int64 // ms since 1970; as [locksteward.Observation.ExpireAt]
	Waiters  int32 // negative: not known
}

// State is how the reading of a lock ended.
type State int

// The states.
const (
	// Unread: it could not be read this time; nothing is known.
	Unread State = iota
	// Absent: nothing is there under its name.
	Absent
	// Held: a lock is there.
	Held
	// NotLock: something else is there, or a candidate.
	NotLock
)

// Reading is what one reading of one lock saw.
type Reading struct {
	Name  string
	State State
	At    time.Time // server time
	// Lock is what was seen of a lock (Held) or a candidate (its Kind); nil otherwise.
	Lock *locksteward.Observation
	// WaitersApart: in a sweep, who waits for the lock is in [Part.Waiters], not here.
	WaitersApart bool
	// Waiters are those that were read with the lock, all of them.
	Waiters []locksteward.Waiter
	// Losses are holds that it proves to have ended without a release.
	Losses []locksteward.Loss
	// Number counts the locks of a part of a sweep from 0: a second reading of the same lock
	// has the number of the first.
	Number int32
}

// Batch is what was read of some locks of one server.
type Batch struct {
	Node     string
	Began    time.Time // when reading began, by our clock
	Readings []Reading
}

// SweepOptions are the options of one sweep.
type SweepOptions struct {
	// Number counts sweeps from 1.
	Number uint64
	// Early: locks are passed on while the sweep is under way, at most 200 ms after they were
	// found.
	Early bool
}

// Sink takes what a sweep finds while it is under way. Parts are swept side by side; the
// calls for one part come one at a time.
type Sink interface {
	// Parts is called once, when it is known how many parts there are.
	Parts(count int)
	// Total is how many names there are to be scanned in a part; negative if that is not known.
	Total(part int, names int64)
	// Answered is called when a part lets itself be read; state is nil if it is not known.
	Answered(part int, state *locksteward.NodeState)
	// Scanned counts names that were read.
	Scanned(names int)
	// Found takes readings. What they point to is valid until Found returns.
	Found(ctx context.Context, part int, b Batch)
}

// Sweep is what one pass over a target established beside the readings that its sink took.
type Sweep struct {
	Parts []Part
	// Gaps are parts of the target that no server serves.
	Gaps []locksteward.MasterPass
	// Duration is how long reading took.
	Duration time.Duration
	// Unknown are processes whose heartbeats could not be read.
	Unknown map[string]bool
	// Connections is how many connections each process without a heartbeat has; a process that
	// is not in it: not known.
	Connections map[string]int
	Orphans     []locksteward.Orphan
	// Err is trouble beside that of the parts, for the log.
	Err error

	// HomesOf returns the nodes that keep a process's heartbeat; false if one of them did not
	// answer. Nil: there are no heartbeats.
	HomesOf func(process string) ([]string, bool)
	// FenceCounter names the counter that a lock's fencing tokens are from: those of one
	// counter only grow. It may be nil if no lock has a [locksteward.Claim].
	FenceCounter func(name string) string
	// Applied is called when the table has all of it; it may be nil.
	Applied func()
}

// Part is what a sweep established of one part of a target, such as a master.
type Part struct {
	Node string
	// Err is why the part was not read completely; nil if it was, so that absence proves an ending.
	Err error
	// Answered: the server answered at all.
	Answered bool
	Server   Server
	// Replica is the replica that was read in the master's place, as of a replication offset.
	Replica string
	AsOf    int64
	// Scanned is how many names were read.
	Scanned int64
	// At is the server time of the last reading, AnsweredAt the agent's when it came.
	At, AnsweredAt time.Time
	// Owns reports whether the part has a name.
	Owns func(name string) bool

	// Absent and NotLock are known locks that are not there any more, or are no locks any more,
	// with the server time of the reading.
	Absent, NotLock map[string]time.Time
	Losses          []locksteward.Loss
	Instances       map[string]*locksteward.Instance
	// Waiters are those of locks whose readings have WaitersApart set.
	Waiters        map[string]WaiterSet
	Candidates     int
	CandidateNames []string
	// Unannounced takes the names of locks that changed since the sweep before, as this one
	// found: a watch should have noticed them. Nil if it need not.
	Unannounced func(names []string)
}

// WaiterSet is who waits for one lock.
type WaiterSet struct {
	// Count is how many wait; negative: not known.
	Count int
	// Waiters are all of them if they could be read, else none.
	Waiters []locksteward.Waiter
}

// Server is what a server says of its process and its data, from which restarts, failovers
// and losses follow.
type Server struct {
	// State is for people.
	State locksteward.NodeState
	// Process identifies the process, Line its line of data: another one after a restart or
	// failover. "" is not known.
	Process, Line string
	// FormerLine is the line that it followed until it took over, up to FormerOffset; Promoted
	// says that it took over.
	FormerLine   string
	FormerOffset int64
	Promoted     bool
	Replica      bool
	// Uptime is since the process started, in whole seconds; negative: not known.
	Uptime time.Duration
	// Evicted and Flushes count keys evicted and flushes of the data; negative: not known.
	Evicted, Flushes int64
	// Offset is how far its line of data had come at OffsetAt, µs of its clock; negative: not known.
	Offset, OffsetAt int64
	// Refused counts how often writes were refused.
	Refused map[locksteward.RefusalReason]int64
	// InStep is how many replicas are in step, of a server that requires some; negative: it does not.
	InStep int64
}

// Stats are a source's counters.
type Stats struct {
	// Pace is how fast each server may be read, by address.
	Pace map[string]pace.State
	// Degraded says in sentences what the last sweep had to do without, sorted.
	Degraded []string
	// Refused are the commands that it had to do without, sorted: a closed set.
	Refused []string
	// Forbidden is how many reads of single keys were refused in the last sweep.
	Forbidden int64
	// Long is how many names and values were too long to be read in the last sweep.
	Long int64
}
