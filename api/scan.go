package api

import "github.com/locksteward/locksteward"

// Scan is the one object that `locksteward scan --output json` prints.
type Scan struct {
	Target      string `json:"target"`
	Complete    bool   `json:"complete"`
	KeysScanned int64  `json:"keys_scanned"`
	// DurationMs is the sweep alone, without the re-read of ttl/none.
	DurationMs int64     `json:"duration_ms"`
	Locks      []Lock    `json:"locks"`
	Candidates int       `json:"candidates"`
	Findings   []Finding `json:"findings"`
	// Incomplete says which masters were not read to the end and why; absent
	// when Complete.
	Incomplete []Incomplete `json:"incomplete,omitempty"`
	// OnReplicas are the masters whose replicas were asked for the names of the keys;
	// absent without any.
	OnReplicas []OnReplica `json:"on_replicas,omitempty"`
	// BaselineGone are the findings of the baseline that a complete scan did not
	// find any more; absent without any.
	BaselineGone []BaselineFinding `json:"baseline_gone,omitempty"`
}

// Incomplete is a master that a sweep did not read to the end.
type Incomplete struct {
	Node   string `json:"node"`
	Reason string `json:"reason"`
}

// OnReplica is a master that was spared the walk over its keys. What is in them
// was read on it all the same.
type OnReplica struct {
	Node    string `json:"node"`
	Replica string `json:"replica"`
	// AsOfOffset is the replication offset of the master up to which the replica had
	// everything when the walk began.
	AsOfOffset int64 `json:"as_of_offset"`
}

// onReplicas are those of a sweep.
func onReplicas(s locksteward.Sweep) []OnReplica {
	var out []OnReplica
	for _, m := range s.Masters {
		if m.Replica != "" {
			out = append(out, OnReplica{Node: m.Node, Replica: m.Replica, AsOfOffset: m.AsOf})
		}
	}
	return out
}

// NewScan converts a sweep and the findings on it, their texts in lang.
func NewScan(s locksteward.Sweep, findings []locksteward.Finding, lang string) Scan {
	out := Scan{
		Target:      s.Target,
		Complete:    s.Complete(),
		KeysScanned: s.Keys(),
		DurationMs:  s.Duration.Milliseconds(),
		Locks:       make([]Lock, 0, s.LockCount()),
		Candidates:  s.Candidates,
		OnReplicas:  onReplicas(s),
		Findings:    NewFindings(findings, lang),
	}
	rules := RulesByLock(findings)
	for l := range s.AllLocks() {
		lock := NewLock(*l, rules[LockKey{Target: l.Target, DB: l.DB, Key: l.Key}], s.At)
		lock.Target = ""
		out.Locks = append(out.Locks, lock)
	}
	for i := range out.Findings {
		out.Findings[i].Target = ""
	}
	for _, m := range s.Masters {
		if !m.Complete {
			out.Incomplete = append(out.Incomplete, Incomplete{Node: m.Node, Reason: m.Reason})
		}
	}
	return out
}
