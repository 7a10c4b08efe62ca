package api

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// Target is one watched store of locks and its health.
type Target struct {
	Name string `json:"name"`
	// Source is the kind of store, such as "redis" or "postgresql".
	Source string `json:"source"`
	// Mode is how a Redis is deployed, and DB which of its databases is watched; empty and 0 of
	// other stores.
	//
	//api:enum |standalone|sentinel|cluster
	Mode string `json:"mode"`
	DB   int    `json:"db"`
	Up   bool   `json:"up"`
	// Reason is why the target is down and what to do; empty when it is up.
	Reason string `json:"reason"`
	// ReleaseEnabled says that release credentials are configured.
	ReleaseEnabled bool   `json:"release_enabled"`
	Nodes          []Node `json:"nodes"`
	LastSweep      *Swept `json:"last_sweep"`
	// Sweeping is the sweep under way, null for none.
	Sweeping *Sweeping `json:"sweeping"`
	// Watch is how changes are noticed between sweeps, Budget what looking may cost
	// the servers; both are null where nobody runs them.
	Watch  *Watch  `json:"watch"`
	Budget *Budget `json:"budget"`
	// Paused is an operator's pause that lasts: nothing is asked of the target.
	Paused *Pause `json:"paused,omitempty"`
	// Replica is the name of the replica that works on it; absent where there is one
	// agent alone.
	Replica string `json:"replica,omitempty"`
}

// Pause is who keeps a target quiet since when; Until is absent without an end.
type Pause struct {
	By    string    `json:"by"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"`
}

// Watch is how far a target is watched between sweeps.
type Watch struct {
	// Mode is "tracking", "keyspace" or "sweep", of the least watched master.
	//api:enum tracking|keyspace|sweep
	Mode string `json:"mode"`
	// Reason is why it is not tracking and what to do; empty if it is.
	Reason string `json:"reason"`
	// BlindMs is the time in which changes may have gone unseen until the next
	// complete sweep, Missed how many went unseen outside of it: it must be 0. Both
	// count since the watch began.
	BlindMs int64 `json:"blind_ms"`
	Missed  int64 `json:"missed"`
	// Waiting is how many keys are about to be read.
	Waiting int          `json:"waiting"`
	Classes []ClassWatch `json:"classes"`
}

// ClassWatch is how far the locks of a class are watched.
type ClassWatch struct {
	Class string `json:"class"`
	// Coverage is "watched", "partly" or "sweep"; Reason is why it is not watched.
	//api:enum watched|partly|sweep
	Coverage string `json:"coverage"`
	Reason   string `json:"reason,omitempty"`
}

// Budget is what looking at a target may cost its servers.
type Budget struct {
	// Idle and Busy bound the share of each server's time that sweeping may take: of one that nobody else uses, and of
	// one in full use.
	Idle float64 `json:"idle"`
	Busy float64 `json:"busy"`
	// Servers is the pace of each server that was swept, by address.
	Servers []Pace `json:"servers"`
	// ThrottledMs is the time waited by reason, summed over masters since the start;
	// every reason is there.
	ThrottledMs map[string]int64 `json:"throttled_ms"`
	// Degraded says what the last sweep had to do without, and what to do.
	Degraded []string `json:"degraded"`
}

// Pace is how fast a server may be read, as of the sweep under way or the last one.
type Pace struct {
	Addr string `json:"addr"`
	// Share is of the time of the server's main thread.
	Share float64 `json:"share"`
	// Use is the part of that thread that others use, 1 where it is not known.
	Use float64 `json:"use"`
	// Bound is "idle" or "busy", the end of the configured pace that applies.
	Bound string `json:"bound"`
	// Reason is why it is no more: headroom, used, starting, unknown, jumped, delayed, memory or average.
	Reason string `json:"reason"`
}

// Words says why the share is no more.
func (p Pace) Words() string {
	switch p.Reason {
	case "headroom":
		return fmt.Sprintf("others use %.0f %%", 100*p.Use)
	case "used":
		return fmt.Sprintf("others use %.0f %%: the busy bound", 100*p.Use)
	case "starting":
		return "the busy bound, until three samples of its processor time agree"
	case "unknown":
		return "the busy bound: it does not report the processor time of its main thread"
	case "jumped":
		return "the busy bound: its counters of processor time jump, as behind a proxy for several servers"
	case "delayed":
		return "it answers later than it can"
	case "memory":
		return "it is nearly out of memory"
	case "average":
		return "3 % in ten minutes are nearly spent"
	}
	return p.Reason
}

// Waited is the time waited in all, and the reason that most of it is for; "" if
// there was none.
func (b Budget) Waited() (total time.Duration, reason string) {
	most := int64(0)
	for _, r := range slices.Sorted(maps.Keys(b.ThrottledMs)) {
		ms := b.ThrottledMs[r]
		if total += time.Duration(ms) * time.Millisecond; ms > most {
			most, reason = ms, r
		}
	}
	return total, reason
}

// Swept is what the last sweep of a target came to.
type Swept struct {
	// At is the server's time at its end.
	At         time.Time    `json:"at,omitzero"`
	Complete   bool         `json:"complete"`
	Keys       int64        `json:"keys"`
	Locks      int          `json:"locks"`
	Candidates int          `json:"candidates"`
	DurationMs int64        `json:"duration_ms"`
	Incomplete []Incomplete `json:"incomplete,omitempty"`
	// OnReplicas are the masters whose replicas were asked for the names of the keys;
	// absent without any.
	OnReplicas []OnReplica `json:"on_replicas,omitempty"`
}

// Node is one server's own figures; null is "the server did not tell".
type Node struct {
	Addr             string   `json:"addr"`
	Version          string   `json:"version"`
	ConnectedClients *int64   `json:"connected_clients"`
	MaxClients       *int64   `json:"max_clients"`
	MemoryUsedBytes  *int64   `json:"memory_used_bytes"`
	MemoryMaxBytes   *int64   `json:"memory_max_bytes"`
	CPUSysSeconds    *float64 `json:"cpu_sys_seconds"`
	CPUUserSeconds   *float64 `json:"cpu_user_seconds"`
	EvictedKeys      *int64   `json:"evicted_keys"`
	EvictionPolicy   string   `json:"eviction_policy"`
}

// NewTarget converts a target's state. ReleaseEnabled, LastSweep, Sweeping, Watch
// and Budget are for the caller to set.
func NewTarget(s locksteward.TargetState) Target {
	out := Target{
		Name: s.Target.Name, Source: s.Target.Source, Mode: string(s.Target.Mode), DB: s.Target.DB, Up: s.Up, Reason: s.Reason,
		Nodes: make([]Node, 0, len(s.Nodes)),
	}
	if p := s.Paused; p != nil {
		out.Paused = &Pause{By: p.By, Since: stamp(p.Since), Until: stamp(p.Until)}
	}
	for _, n := range s.Nodes {
		out.Nodes = append(out.Nodes, Node{
			Addr:             n.Addr,
			Version:          n.Version,
			ConnectedClients: known(n.ConnectedClients),
			MaxClients:       known(n.MaxClients),
			MemoryUsedBytes:  known(n.MemoryUsed),
			MemoryMaxBytes:   known(n.MemoryMax),
			CPUSysSeconds:    known(n.CPUSys),
			CPUUserSeconds:   known(n.CPUUser),
			EvictedKeys:      known(n.EvictedKeys),
			EvictionPolicy:   n.EvictionPolicy,
		})
	}
	return out
}

// NewSwept converts the outcome of a sweep.
func NewSwept(s locksteward.Sweep) Swept {
	out := Swept{
		At: stamp(s.At), Complete: s.Complete(), Keys: s.Keys(), Locks: s.LockCount(),
		Candidates: s.Candidates, DurationMs: s.Duration.Milliseconds(), OnReplicas: onReplicas(s),
	}
	for _, m := range s.Masters {
		if !m.Complete {
			out.Incomplete = append(out.Incomplete, Incomplete{Node: m.Node, Reason: m.Reason})
		}
	}
	return out
}
