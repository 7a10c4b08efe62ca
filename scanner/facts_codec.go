package scanner

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// factsVersion is that of [factsRow].
const factsVersion = 2

// factsRow is how facts are stored.
type factsRow struct {
	Version   int                   `json:"v"`
	Nodes     map[string]nodeRow    `json:"nodes,omitempty"`
	Masters   []string              `json:"masters,omitempty"`
	Longest   time.Duration         `json:"longest,omitempty"`
	Events    []eventRow            `json:"events,omitempty"`
	Processes map[string]processRow `json:"processes,omitempty"`
	Fences    map[string]highRow    `json:"fences,omitempty"`
	Foreign   []highRow             `json:"foreign,omitempty"`
}

type nodeRow struct {
	RunID   string    `json:"run_id"`
	ReplID  string    `json:"repl_id,omitempty"`
	At      time.Time `json:"at"`
	Evicted int64     `json:"evicted"`
	Flushes int64     `json:"flushes"`
	// Not there: not known.
	Refused  map[locksteward.RefusalReason]int64 `json:"refused,omitempty"`
	Refusals []refusalRow                        `json:"refusals,omitempty"`
}

type refusalRow struct {
	Reason   locksteward.RefusalReason `json:"reason"`
	Count    int64                     `json:"count,omitempty"`
	After    time.Time                 `json:"after,omitzero"`
	At       time.Time                 `json:"at"`
	Replicas int64                     `json:"replicas,omitempty"`
}

type eventRow struct {
	Kind  locksteward.ServerEventKind `json:"kind"`
	Node  string                      `json:"node"`
	Was   string                      `json:"was,omitempty"`
	After time.Time                   `json:"after,omitzero"`
	At    time.Time                   `json:"at"`
	Count int64                       `json:"count,omitempty"`
	Locks int                         `json:"locks,omitempty"`
	Keys  []string                    `json:"keys,omitempty"`

	Started time.Time      `json:"started,omitzero"`
	Classes map[string]int `json:"classes,omitempty"`
	Stood   int            `json:"stood,omitempty"`

	Back     int      `json:"back,omitempty"`
	BackKeys []string `json:"back_keys,omitempty"`

	Step  time.Duration `json:"step,omitempty"`
	Pause time.Time     `json:"pause,omitzero"`
}

type processRow struct {
	App     string    `json:"app,omitempty"`
	Host    string    `json:"host,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Started time.Time `json:"started,omitzero"`
	Beat    time.Time `json:"beat,omitzero"`
	Slot    string    `json:"slot"`
}

type highRow struct {
	Fence int64     `json:"f"`
	ID    string    `json:"i,omitempty"`
	Key   []byte    `json:"k"`
	At    time.Time `json:"t"`
}

func (h high) row() highRow { return highRow{Fence: h.fence, ID: h.id, Key: []byte(h.key), At: h.at} }

func (r highRow) high() high { return high{fence: r.Fence, id: r.ID, key: string(r.Key), at: r.At} }

// encode keeps of the processes those that declare a slot: nothing else about a
// process is of use after a restart.
func (f *facts) encode() (string, error) {
	row := factsRow{
		Version: factsVersion, Nodes: map[string]nodeRow{}, Masters: f.servers.masters, Longest: f.servers.longest,
		Processes: map[string]processRow{}, Fences: map[string]highRow{},
	}
	for counter, top := range f.fences.tops {
		row.Fences[counter] = top.row()
	}
	for _, top := range f.fences.foreign {
		row.Foreign = append(row.Foreign, top.row())
	}
	for addr, n := range f.servers.nodes {
		node := nodeRow{RunID: n.runID, ReplID: n.replID, At: n.at, Evicted: n.evicted, Flushes: n.flushes, Refused: n.refused}
		for _, r := range n.refusals {
			node.Refusals = append(node.Refusals, refusalRow(r))
		}
		row.Nodes[addr] = node
	}
	for _, e := range f.servers.events {
		row.Events = append(row.Events, eventRow(e))
	}
	for id, p := range f.processes {
		if i := p.instance; i.Slot != "" {
			row.Processes[id] = processRow{App: i.App, Host: i.Host, PID: i.PID, Started: i.Started, Beat: i.Beat, Slot: i.Slot}
		}
	}
	raw, err := json.Marshal(row)
	if err != nil {
		return "", fmt.Errorf("encode facts: %w", err)
	}
	return string(raw), nil
}

// decode takes what encode gave; now is the agent's clock.
func (f *facts) decode(text string, now time.Time) error {
	var row factsRow
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		return fmt.Errorf("decode facts: %w", err)
	}
	if row.Version != factsVersion {
		return fmt.Errorf("decode facts: version %d is not known (%d is)", row.Version, factsVersion)
	}
	f.servers.masters, f.servers.longest = row.Masters, row.Longest
	for addr, n := range row.Nodes {
		seen := serverSeen{addr: addr, runID: n.RunID, replID: n.ReplID, at: n.At, evicted: n.Evicted, flushes: n.Flushes, offset: -1, refused: n.Refused}
		for _, r := range n.Refusals {
			seen.refusals = append(seen.refusals, locksteward.Refusal(r))
		}
		f.servers.nodes[addr] = seen
	}
	for _, e := range row.Events {
		f.servers.events = append(f.servers.events, locksteward.ServerEvent(e))
	}
	for id, p := range row.Processes {
		f.processes[id] = &process{lastUse: now, instance: locksteward.Instance{
			ID: id, App: p.App, Host: p.Host, PID: p.PID, Started: p.Started, Beat: p.Beat, Slot: p.Slot,
		}}
	}
	for counter, top := range row.Fences {
		f.fences.tops[counter] = top.high()
	}
	for _, top := range row.Foreign {
		f.fences.foreign[string(top.Key)] = top.high()
	}
	return nil
}
