// Package pace decides how fast a server may be read: quickly while nobody else needs it, and hardly at all while
// others do. docs/pace.md has the rule and its reasons.
//
// A [Server] is one Redis server. It learns from the processor time that the server reports (INFO cpu) how much of its
// main thread others use, and grants the share
//
//	max(busy, idle·(1−u)²)
//
// of that thread. A [Host] holds all servers of one machine together: they share one allowance, of which at most 3 %
// is spent in any ten minutes. [Hosts] finds the host of an address.
//
// Nothing here does I/O or sleeps: callers pass in what they measured and the time, and wait for as long as they are
// asked to. All types are safe for concurrent use. A Server's mutex may be held while its Host's is taken, never the
// other way round.
package pace
