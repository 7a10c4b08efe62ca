package api

import (
	"time"

	"github.com/locksteward/locksteward"
)

// Target is one watched Redis deployment and its health.
type Target struct {
	Name string `json:"name"`
	Mode string `json:"mode"`
	DB   int    `json:"db"`
	Up   bool   `json:"up"`
	// Reason is why the target is down and what to do; empty when it is up.
	Reason string `json:"reason"`
	// ReleaseEnabled says that release credentials are configured.
	ReleaseEnabled bool   `json:"release_enabled"`
	Nodes          []Node `json:"nodes"`
	LastSweep      *Swept `json:"last_sweep"`
	// Paused is an operator's pause that lasts: nothing is asked of the target.
	Paused *Pause `json:"paused,omitempty"`
}

// Pause is who keeps a target quiet since when; Until is absent without an end.
type Pause struct {
	By    string    `json:"by"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"`
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

// NewTarget converts a target's state. ReleaseEnabled and LastSweep are for the
// caller to set.
func NewTarget(s locksteward.TargetState) Target {
	out := Target{
		Name: s.Target.Name, Mode: string(s.Target.Mode), DB: s.Target.DB, Up: s.Up, Reason: s.Reason,
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
		At: stamp(s.At), Complete: s.Complete(), Keys: s.Keys(), Locks: len(s.Locks),
		Candidates: s.Candidates, DurationMs: s.Duration.Milliseconds(),
	}
	for _, m := range s.Masters {
		if !m.Complete {
			out.Incomplete = append(out.Incomplete, Incomplete{Node: m.Node, Reason: m.Reason})
		}
	}
	return out
}
