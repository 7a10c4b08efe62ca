// Package histories is a test: random histories of lock users, of every library
// that the formats know and of our own, on a real redis-server whose clock the
// test sets, judged by the real scanner and rules. A model that knows the truth
// (who lives, who holds since when and with what TTL, who waits for whom) checks
// each look.
//
// # What is checked
//
// After each look of the agent, on the locks that it covered:
//
//   - nobody is called dead who lives, nor a hold other than the dead one's;
//   - ttl/none, hold/too-long, hold/lost and wait/cycle are notified of each lock for
//     which their pages promise it, and of no other;
//   - a class's dead_when holds where it is true, and nowhere else.
//
// # What doubt is allowed
//
// Only what the pages under docs/rules say. Each place in the model where more
// than one verdict is right names the sentence that allows it.
//
// # How time goes
//
// The server's clock stands still between two steps and is moved by the steps, so
// an hour costs nothing and each verdict is exact to the millisecond. What happens
// regularly meanwhile (renewals, heartbeats, the records of waiters) is written as
// it stands at the end of a step, before the clock moves. The agent's clock runs
// beside the server's, off by as much as a history draws.
//
// # Not covered
//
// The watch, to which the server pushes changes in true time, Cluster and
// Sentinel, restarts of the server, and reads that are torn by a clock that runs:
// the tests of scanner and rules have those.
package histories
