// Package zksource reads and frees locks in ZooKeeper 3.6 and later, through
// github.com/go-zookeeper/zk.
//
// # Which nodes are read
//
// Those that the classes name: a pattern such as /locks/* stands for the children of /locks,
// each of which is a lock directory or a fixed node that is the lock. A * or ? stands within
// one element of the path, so that nothing is read that no class asks for; patterns that
// begin with anything but / are of other targets. Nothing is ever read of the nodes below
// that is not a recipe's.
//
// # What a lock is
//
// In a lock directory the child with the lowest sequence number holds the lock, and the
// others wait in their order. The lock's name is the path of the directory. Where several
// may hold at once, as readers and the leases of a semaphore, each hold is a lock of its own
// whose name is the path of its node. A fixed ephemeral node is a lock under its own path.
//
// A hold is one node: its digest is of its path and czxid, the transaction that made it. The
// lock ends with the session that made the node (ephemeralOwner), unless the node is
// persistent. ZooKeeper has no clock for clients: readings have the agent's, while ctime, when
// the holder asked for the lock, is by the server's clock.
package zksource
