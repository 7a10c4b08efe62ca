package rules

import (
	"time"

	"github.com/locksteward/locksteward"
)

// fixtureBeyond is what a fixture tells beyond its lock, locks or loss.
type fixtureBeyond struct {
	Nodes  []fixtureNode    `yaml:"nodes"`
	Events []fixtureEvent   `yaml:"events"`
	Silent []fixtureSilence `yaml:"silent"`
	Alive  []fixtureAlive   `yaml:"alive"`
	// Elsewhere are heartbeats on another target.
	Elsewhere []fixtureAlive `yaml:"alive_elsewhere"`
	Drop      *fixtureDrop   `yaml:"fence_drop"`
	Quorum    *Quorum        `yaml:"quorum"`
	Host      *fixtureHost   `yaml:"host"`
	// Unread says that the heartbeat of the lock's process could not be read.
	Unread bool `yaml:"heartbeat_unread"`
	// NoSweep says that no sweep was seen yet.
	NoSweep bool `yaml:"no_sweep"`
	// NoLocks says that no sweep saw a lock.
	NoLocks bool `yaml:"no_locks"`
}

type fixtureNode struct {
	Addr      string         `yaml:"addr"`
	Policy    string         `yaml:"policy"`
	MemoryMax int64          `yaml:"memory_max"`
	Used      int64          `yaml:"memory_used"`
	Evicted   int64          `yaml:"evicted"`
	AOF       bool           `yaml:"aof"`
	Replicas  int64          `yaml:"replicas"`
	SaveFails bool           `yaml:"save_fails"`
	LastSave  *time.Duration `yaml:"last_save"`
	Unsaved   int64          `yaml:"unsaved"`
	NoInfo    bool           `yaml:"no_info"`

	Refusals []fixtureRefusal `yaml:"refusals"`
}

type fixtureRefusal struct {
	Reason   locksteward.RefusalReason `yaml:"reason"`
	Count    int64                     `yaml:"count"`
	After    *time.Duration            `yaml:"after"`
	At       time.Duration             `yaml:"at"`
	Replicas int64                     `yaml:"replicas"`
}

type fixtureEvent struct {
	Kind  string         `yaml:"kind"`
	Node  string         `yaml:"node"`
	Was   string         `yaml:"was"`
	After *time.Duration `yaml:"after"`
	At    time.Duration  `yaml:"at"`
	Count int64          `yaml:"count"`
	Locks int            `yaml:"locks"`
	Keys  []string       `yaml:"keys"`
	Back  []string       `yaml:"back"`
	// Started is how long ago a restarted process began.
	Started *time.Duration `yaml:"started"`
	Classes map[string]int `yaml:"classes"`
	Stood   int            `yaml:"stood"`
	// Pause is how long verdicts still wait from now on.
	Pause time.Duration `yaml:"pause"`
}

type fixtureSilence struct {
	Instance  string         `yaml:"instance"`
	Slot      string         `yaml:"slot"`
	Beat      *time.Duration `yaml:"heartbeat"`
	For       time.Duration  `yaml:"for"`
	Looks     int            `yaml:"looks"`
	Deleted   bool           `yaml:"deleted"`
	Listeners int            `yaml:"listeners"`
	Successor *fixtureAlive  `yaml:"successor"`
}

type fixtureAlive struct {
	ID      string        `yaml:"id"`
	Host    string        `yaml:"host"`
	PID     int           `yaml:"pid"`
	Started time.Duration `yaml:"started"`
}

type fixtureDrop struct {
	ID      string        `yaml:"id"`
	Highest int64         `yaml:"highest"`
	Fence   int64         `yaml:"fence"` // where the lock has no claim
	At      time.Duration `yaml:"at"`
	Counter string        `yaml:"counter"`
}

type fixtureHost struct {
	Name   string        `yaml:"name"`
	Locks  []fixtureLock `yaml:"locks"`
	Losses []fixtureLoss `yaml:"losses"`
}

func (a fixtureAlive) instance(now time.Time) *locksteward.Instance {
	return &locksteward.Instance{ID: a.ID, Host: a.Host, PID: a.PID, Started: now.Add(-a.Started), Beat: now}
}

// into adds what the fixture tells to the input of a rule.
func (b fixtureBeyond) into(in *Input) {
	now := in.Now
	if b.Unread {
		in.Lock.Instance = &locksteward.Instance{ID: in.Lock.Holder.Instance}
	}
	in.Quorum = b.Quorum
	if b.Host != nil {
		in.Host = &Host{Name: b.Host.Name}
		for _, fl := range b.Host.Locks {
			l := fl.lock(now)
			in.Host.add(&l, now)
		}
		for _, fl := range b.Host.Losses {
			l := fl.loss(now)
			in.Host.Losses = append(in.Host.Losses, &l)
		}
	}
	if b.NoSweep {
		return
	}
	s := locksteward.Sweep{At: now, Masters: []locksteward.MasterPass{{Complete: true}}}
	for _, n := range b.Nodes {
		node := locksteward.NodeState{
			Addr: n.Addr, RunID: "r", EvictionPolicy: n.Policy, MemoryMax: n.MemoryMax, MemoryUsed: n.Used, EvictedKeys: n.Evicted,
			AOF: n.AOF, Replicas: n.Replicas, LastSaveOK: !n.SaveFails, LastSave: ago(now, n.LastSave), ChangesUnsaved: n.Unsaved,
		}
		for _, r := range n.Refusals {
			node.Refusals = append(node.Refusals, locksteward.Refusal{
				Reason: r.Reason, Count: r.Count, After: ago(now, r.After), At: now.Add(-r.At), Replicas: r.Replicas,
			})
		}
		if n.NoInfo {
			node.RunID = ""
		}
		s.Nodes = append(s.Nodes, node)
	}
	for _, e := range b.Events {
		event := locksteward.ServerEvent{
			Kind: locksteward.ServerEventKind(e.Kind), Node: e.Node, Was: e.Was, After: ago(now, e.After), At: now.Add(-e.At), Count: e.Count,
			Locks: e.Locks, Keys: e.Keys, Back: len(e.Back), BackKeys: e.Back,
			Started: ago(now, e.Started), Classes: e.Classes, Stood: e.Stood,
		}
		if e.Pause > 0 {
			event.Pause = now.Add(e.Pause)
		}
		s.Events = append(s.Events, event)
	}
	for _, q := range b.Silent {
		silence := locksteward.MissingHeartbeat{
			Instance: locksteward.Instance{ID: q.Instance, Slot: q.Slot, Beat: ago(now, q.Beat)},
			Since:    now.Add(-q.For), For: q.For, Looks: q.Looks, Deleted: q.Deleted, Listeners: q.Listeners,
		}
		if q.Successor != nil {
			silence.Successor = q.Successor.instance(now)
		}
		s.Silent = append(s.Silent, silence)
	}
	for _, a := range b.Alive {
		s.Instances = append(s.Instances, *a.instance(now))
	}
	if b.Drop != nil {
		fence := b.Drop.Fence
		if in.Lock.Claim != nil {
			fence = in.Lock.Claim.Fence
		}
		s.FenceDrops = []locksteward.FenceDrop{{
			Key: in.Lock.Key, ID: b.Drop.ID, Fence: fence, Highest: b.Drop.Highest, At: now.Add(-b.Drop.At),
			Counter: b.Drop.Counter,
		}}
	}
	in.Situation = newSituation(s)
	in.Situation.HadLocks = !b.NoLocks
	in.situations = map[string]*Situation{"redis": in.Situation}
	if len(b.Elsewhere) > 0 {
		other := locksteward.Sweep{At: now, Masters: s.Masters}
		for _, a := range b.Elsewhere {
			other.Instances = append(other.Instances, *a.instance(now))
		}
		in.situations["other"] = newSituation(other)
	}
}
