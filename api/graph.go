package api

import "time"

// Graph is who waits for whom, as the last readings show: the answer of GET
// /api/v1/graph. Only locks that somebody waits for are in it, with who has them
// and who waits.
type Graph struct {
	// Target is the one that was asked for; empty for all. A cycle over several
	// targets is whole in the graph of each of them.
	Target string `json:"target"`
	// Nodes are locks and sessions, in the order of their ids.
	Nodes []GraphNode `json:"nodes"`
	// Edges lead from a session to a lock, in the order of from, to and kind.
	Edges []GraphEdge `json:"edges"`
	// Cycles are the deadlocks.
	Cycles []GraphCycle `json:"cycles"`
	// LeftOut is how many locks that somebody waits for are not in the graph, since
	// it would be too large; those of cycles are in it, and then those with the most
	// waiters.
	LeftOut int `json:"left_out"`
}

// Kinds of nodes and edges of a [Graph].
const (
	NodeLock    = "lock"
	NodeSession = "session"

	EdgeHolds    = "holds"
	EdgeWaitsFor = "waits-for"
)

// GraphNode is a lock or a session: the logical thread of work that holds locks
// and waits for them. One of Lock and Session is set, as Kind says.
type GraphNode struct {
	// ID is unique in the graph, and the same as long as the lock or session is.
	ID string `json:"id"`
	//api:enum lock|session
	Kind    string        `json:"kind"`
	Lock    *GraphLock    `json:"lock,omitempty"`
	Session *GraphSession `json:"session,omitempty"`
}

// GraphLock is a lock that somebody waits for.
type GraphLock struct {
	Target string `json:"target"`
	DB     int    `json:"db"`
	Key
	Class string `json:"class"`
	// Held says that it is known who has it: an edge says who.
	Held bool `json:"held"`
	// Waiters counts all who wait; more than there are edges where the library
	// tells only their number.
	Waiters int `json:"waiters"`
	// Firing are the rules that fire on the lock.
	Firing []string `json:"firing"`
}

// GraphSession is who holds locks or waits for them.
type GraphSession struct {
	// Session is its name, empty where the library has no such thing: it stands for
	// one hold or one call then.
	Session string `json:"session"`
	Holder  Holder `json:"holder"`
	Purpose string `json:"purpose,omitempty"`
	// Waiting is how many of its calls wait, over all locks.
	Waiting int `json:"waiting"`
}

// GraphEdge says that a session holds a lock or waits for it.
type GraphEdge struct {
	From string `json:"from"` // a session
	To   string `json:"to"`   // a lock
	//api:enum holds|waits-for
	Kind string `json:"kind"` // "holds" or "waits-for"
	// Since is when the lock was taken or the wait began; absent if not known.
	Since time.Time `json:"since,omitzero"`
	// Calls is how many calls of the session wait for this lock; 1 for a hold.
	Calls int `json:"calls"`
	// Inferred says that only another lock of the session reports this hold.
	Inferred bool `json:"inferred,omitempty"`
	// Cycle says that the edge is part of a cycle.
	Cycle bool `json:"cycle"`
}

// GraphCycle is sessions that wait for each other.
type GraphCycle struct {
	// Nodes are the ids in the order of the round: a session, the lock that it waits
	// for, the session that has that, and so on; the last lock is held by the first
	// session.
	Nodes []string `json:"nodes"`
	// Victim is the session whose end is suggested: it has the least work to lose.
	Victim string `json:"victim"`
	// Proven says that two looks saw the same holds and waits.
	Proven bool `json:"proven"`
}
