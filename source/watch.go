package source

import "time"

// WatchMode is how changes are noticed between sweeps.
type WatchMode string

const (
	// WatchAuto is the best that the server offers; only in a configuration.
	WatchAuto WatchMode = "auto"
	// WatchTracking is CLIENT TRACKING in broadcast mode (Redis 6.2).
	WatchTracking WatchMode = "tracking"
	// WatchKeyspace is keyspace notifications, which the server must be configured
	// to send.
	WatchKeyspace WatchMode = "keyspace"
	// WatchPoll is reading in short turns what the store does not push; never in a
	// configuration.
	WatchPoll WatchMode = "poll"
	// WatchSweep is sweeps alone; never in a configuration.
	WatchSweep WatchMode = "sweep"
	// WatchOff asks for sweeps alone; only in a configuration.
	WatchOff WatchMode = "off"
)

// Coverage is how much of a class is watched.
type Coverage string

const (
	// CoverageFull is every key of the class.
	CoverageFull Coverage = "watched"
	// CoveragePart is some of its patterns.
	CoveragePart Coverage = "partly"
	// CoverageNone is by sweeps alone.
	CoverageNone Coverage = "sweep"
)

// ClassWatch says how far the keys of one class are watched.
type ClassWatch struct {
	Class    string
	Coverage Coverage
	// Reason is why it is not all of them, with the remedy; "" for CoverageFull.
	Reason string
}

// WatchState is how far a target is watched now.
type WatchState struct {
	// Mode is that of the least watched master: tracking, keyspace, poll or sweep.
	Mode WatchMode
	// Reason is why it is not tracking, with the remedy; "" if it is.
	Reason string
	// Classes says it for each class, the default class last.
	Classes []ClassWatch
	Nodes   []NodeWatch // by address
	// Blind is the time in which changes may have gone unseen until the next
	// complete sweep, summed over masters, the intervals under way included.
	Blind time.Duration
	// Missed is how many changes complete sweeps found that no push had announced,
	// outside of blind intervals. It must be 0.
	Missed int64
	// Events is how many changed keys pushes named, Reads how many keys were read
	// because of pushes, deadlines and rounds.
	Events, Reads int64
	// Waiting is how many keys wait to be read.
	Waiting int
	// Delay is the longest within the last minute or half of it from a push, or from the
	// moment at which a look was due, until its reading had been passed on; what waits
	// still counts.
	Delay time.Duration
}

// NodeWatch is how one master is watched.
type NodeWatch struct {
	Addr   string
	Mode   WatchMode
	Reason string
	// Since is when this watch was set up, LastGood when the last check began that
	// found it whole; agent's clock, zero without a watch.
	Since, LastGood time.Time
	// Repaired says that a complete sweep has found all that was there before.
	Repaired bool
	Prefixes []string
}
