// Package scanner finds every lock of a target by SCAN and keeps the live table
// of what is known of each, without hurting the server.
//
// A sweep is one pass of SCAN per master that serves all classes. Keys that may
// be locks are then read in small pipelines: TYPE, PTTL and PEXPIRETIME, and a
// bounded part of the value. What two looks at the same key have in common
// becomes its history.
//
// Between sweeps a watch tells of changes: the server names the keys that were
// written ([Scanner.Watch]), and they are read back at once. Each complete sweep
// proves that the watch missed nothing, and repairs what it could not see.
//
// # Guarantees
//
//   - Nothing is written to Redis; the commands of [ACL] are enough.
//   - A key that is there throughout a complete sweep is seen by it.
//   - A hold is reported as ended only after a complete pass of the master that
//     owns its key and a direct read there, or after a direct read alone.
//   - At most 4 KiB of a string and, of a hash, 64 members in 16 KiB are read,
//     whatever its size; the rest is listed as too large.
//   - The share of server time is bounded by Config.Pace.
//   - Token and value stay in this package; out goes a keyed digest.
//
// # Not guaranteed
//
//   - A key that lives shorter than the time between two sweeps, or than the 20 ms
//     (60 ms of a busy master) in which the watch collects changes, may be missed.
//   - A constant token hides turnover: a lock with the same bytes counts as the
//     same hold, so its age is a lower bound.
//   - Server time spent is estimated from outside (round trip less the best
//     round trip seen), not measured by the server.
//
// # Concurrency
//
// [Scanner] and [Table] are safe for concurrent use. One sweep runs at a time.
// [Scanner.Run] owns all goroutines it starts and returns after they ended;
// [Scanner.Sweep] likewise.
//
// # Failure
//
// A target that is away, loading, or refuses the user makes a sweep without
// masters, which resolves nothing; Run tries again with backoff. A pass that was
// cut by an error, a deadline, a failover or a reshard is incomplete and says
// why; what it did see is reported all the same.
package scanner
