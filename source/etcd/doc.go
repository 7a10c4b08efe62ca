// Package etcdsource reads and releases locks in etcd 3.4 and later.
//
// # What is read
//
// The prefixes of the classes, each by one Range at one revision, and the time left of
// each lease, asked without its keys. Between sweeps a watch says which keys changed, and
// those are read. A lock's name is that of its queue where there is one, else its key.
//
// # Formats
//
// As their sources write them; a lock by another client is "unknown".
//
//   - etcd-mutex: a queue of keys <name>/<lease in hex>, empty values, each with the lease
//     in its name; the lowest create revision holds. concurrency.Mutex, etcdctl lock and
//     the server's Lock RPC (etcd-io/etcd client/v3/concurrency/mutex.go,
//     etcdctl/ctlv3/command/lock_command.go, server/etcdserver/api/v3lock/lock.go).
//   - etcd-election: the same with the candidate's text as value, which Proclaim
//     rewrites (client/v3/concurrency/election.go).
//   - vault: the same at core/lock; the value is written when the lock is held
//     (hashicorp/vault physical/etcd/etcd3.go).
//   - node-etcd3: the key itself, an empty value, a lease (microsoft/etcd3 src/lock.ts).
//   - python-etcd3: the key itself, below /locks/ by default; the value is the 16 bytes of
//     a UUID of version 1, which has the host's address and a time (kragniz/python-etcd3
//     etcd3/locks.py). etcd3gw: the same UUID as text (openstack/etcd3gw etcd3gw/lock.py).
//   - patroni: a key that ends in /leader, the member's name as value, a lease
//     (patroni/patroni patroni/dcs/etcd3.py).
//   - shedlock: shedlock:<environment>:<name>, the value ADDED:<time>@<host>, a lease
//     (lukas-krecan/ShedLock EtcdLockProvider.java).
//
// # Time
//
// etcd has no clock for clients and keeps no times: all times are by the agent's clock, and when
// a lock was taken is known from when it was first seen. What is left of a lease comes in
// whole seconds, see [expiryTolerance].
//
// # Identity
//
// A hold is its key, create revision and lease; no two holds have the same. Values do not
// count: some holders rewrite them.
package etcdsource
