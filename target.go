package locksteward

import "time"

// Mode is how a target is deployed.
type Mode string

const (
	// ModeStandalone is one server (with or without replicas).
	ModeStandalone Mode = "standalone"
	// ModeSentinel is one master found through Sentinel.
	ModeSentinel Mode = "sentinel"
	// ModeCluster is a Redis Cluster; every master is swept.
	ModeCluster Mode = "cluster"
)

// Target is one store of locks that is watched. Name is its label on every lock, finding and
// metric.
type Target struct {
	Name string
	// Source is the kind of store: "redis", "postgresql", "mysql", "etcd", "zookeeper".
	Source string
	// Mode and DB are how a Redis is deployed and which of its databases is read, always 0 on a
	// Cluster; "" and 0 of other stores.
	Mode Mode
	DB   int
}

// TargetState is what is known of a target's health at one moment.
type TargetState struct {
	Target Target
	// Up says that the last contact worked; Reason is why not, safe to show
	// (no password) and ending with what to do.
	Up     bool
	Reason string
	Nodes  []NodeState
	// Paused is an operator's pause that lasts; nil for none.
	Paused *Pause
}

// Pause keeps sweeps and the watch from asking anything of a target.
type Pause struct {
	By    string
	Since time.Time
	Until time.Time // zero: until somebody resumes
}

// UnknownNode is a server that says nothing of itself.
func UnknownNode(addr string) NodeState {
	return NodeState{
		Addr: addr, ConnectedClients: -1, MaxClients: -1, MemoryUsed: -1, MemoryMax: -1, CPUSys: -1, CPUUser: -1, EvictedKeys: -1,
		Uptime: -1, ChangesUnsaved: -1, Replicas: -1,
	}
}

// NodeState is one server's own figures, from INFO. A field that the server
// did not tell is negative.
type NodeState struct {
	// Addr is host:port, or the path of a socket.
	Addr             string
	Version          string
	RunID            string
	ConnectedClients int64
	MaxClients       int64
	MemoryUsed       int64   // bytes
	MemoryMax        int64   // bytes; 0 is "no limit"
	CPUSys           float64 // seconds since the server's start
	CPUUser          float64 // seconds since the server's start
	EvictedKeys      int64
	EvictionPolicy   string

	// Uptime is since the server process started; negative: not known.
	Uptime time.Duration
	// ReplicationID changes when a replica is promoted (master_replid).
	ReplicationID string
	// Persistence: AOF says that appendonly is on, LastSaveOK that the last
	// snapshot, if there was one, worked.
	AOF            bool
	LastSaveOK     bool
	LastSave       time.Time // zero: not known
	ChangesUnsaved int64     // since the last snapshot; negative: not known
	// Replicas is how many are connected; negative: not known.
	Replicas int64
	// Refusals are why the server takes no writes, as far as it can be proved; none
	// of a server that takes them.
	Refusals []Refusal
}

// RefusalReason is why a server takes no writes.
type RefusalReason string

// The reasons.
const (
	RefusalSavingFails    RefusalReason = "saving_fails"
	RefusalTooFewReplicas RefusalReason = "too_few_replicas"
)

// RefusalReasons are all of them.
var RefusalReasons = []RefusalReason{RefusalSavingFails, RefusalTooFewReplicas}

// Refusal says since when a server takes no writes, and why.
type Refusal struct {
	Reason RefusalReason
	// Count is how many commands were answered so from the look at After until the
	// look at At, server time; 0 if none was, and the server would do it.
	Count int64
	After time.Time
	At    time.Time
	// Replicas is how many were in step with the server then, where too few were.
	Replicas int64
}
