// Package redis reads locks of Redis and Valkey: one server, a master behind Sentinel, or a
// Cluster. It implements [source.Source].
//
// A sweep is one pass of SCAN per master that serves all classes. Keys that may be locks
// are then read in small pipelines: TYPE, PTTL and PEXPIRETIME, and a bounded part of the
// value. Package formats says what stands there.
//
// Between sweeps the server pushes the names of keys that were written (CLIENT TRACKING, or
// keyspace notifications), and they are read back at once. Each complete sweep proves that
// the watch missed nothing, and repairs what it could not see.
//
// # Guarantees
//
//   - Nothing is written to Redis; the commands of [ACL] are enough.
//   - A key that is there throughout a complete sweep is seen by it.
//   - At most 4 KiB of a string and, of a hash, 64 members in 16 KiB are read,
//     whatever its size; the rest is listed as too large.
//   - The share of server time is bounded by Options.Pace.
//   - Token and value stay in this package; out goes a keyed digest.
//
// # Not guaranteed
//
//   - A key that lives shorter than the time between two sweeps, or than the 20 ms
//     (60 ms of a busy master) in which the watch collects changes, may be missed.
//   - Server time spent is estimated from outside (round trip less the best
//     round trip seen), not measured by the server.
//
// # Failure
//
// A target that is away, loading, or refuses the user makes a sweep fail. A pass that was
// cut by an error, a deadline, a failover or a reshard is incomplete and says why; what it
// did see is reported all the same.
package redis
