// Package cluster divides work among replicas: agents that share a database. Each piece of work, a duty, is leased to one
// replica at a time. Which replica works on it follows from the membership in the database, which all of them read. There
// is no leader.
//
// # Guarantees
//
//   - A duty starts under a lease that no other replica has, and its writes carry the lease's fence: the database refuses
//     writes of a replica that was paused or cut off, and then replaced.
//   - A duty of a replica that dies, hangs or is cut off from the database starts elsewhere after [Config.Lease] and the
//     interval of one heartbeat.
//   - A duty whose target its replica cannot reach moves to a replica that can. If no replica can, it stays. Each replica
//     probes for itself, once a second, the targets that it works on and those that another replica cannot reach.
//   - Replicas authenticate each other by certificates that they create at their start and whose digests are in the
//     database: anyone who can write there could do all that replicas do anyway. There is nothing to distribute or to renew.
//
// # Not guaranteed
//
//   - That nothing else works on a duty in the moment after its lease ended: a paused process may finish what it had
//     started, a read of Redis or a request to a receiver. It cannot write about it.
//   - Balance at every moment: replicas whose numbers of duties differ by one are even, and duties move one at a time.
//
// # Concurrency
//
// A [Member], its [Peers] and a [Router] are safe for concurrent use.
//
// # Failure
//
// While the database does not answer, no duty moves, and replicas keep working. [Member.Owns] is false once a lease may
// have expired.
package cluster
