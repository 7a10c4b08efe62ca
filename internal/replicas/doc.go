// Package replicas divides work among agents that share a database. Each piece of
// work, a duty, is leased to one replica at a time; which one does it follows from
// what all of them read in the database, without a leader.
//
// # Guarantees
//
//   - A duty is begun under a lease that nobody else has, and its writes carry the
//     lease's fence: what a replica writes that was paused or cut off, and was
//     replaced, is refused by the database.
//   - A duty of a replica that dies, hangs or is cut off from the database is another's
//     after [Config.Lease] and the time of one beat.
//   - A duty whose target its replica does not reach, and another one does, is given to
//     that one; where nobody does it stays. Each looks for itself, once a second at what it
//     works on, and at what another one does not reach.
//   - Replicas trust each other by certificates that they make at their start and
//     whose digests stand in the database: whoever can write there could do all that
//     replicas do anyway. There is nothing to hand out or to renew.
//
// # Not guaranteed
//
//   - That nobody else works on a duty in the moment after the lease ended: a paused
//     process may finish what it had begun, a read of Redis or a message to a
//     receiver. It cannot write about it.
//   - Balance at every moment: replicas that differ by one duty are even, and duties
//     move one at a time.
//
// # Concurrency
//
// A [Keeper] and its [Peers] are safe for concurrent use.
//
// # Failure
//
// While the database is away nobody takes anything over, and whoever works goes on:
// [Keeper.Holds] says that it is not known any more to be its right.
package replicas
