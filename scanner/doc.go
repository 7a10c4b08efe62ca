// Package scanner keeps the live table of what is known of a target's locks, and decides
// what a reading means: the same hold, renewed, replaced, or gone. It knows no store: a
// [source.Source] reads, on the scanner's schedule.
//
// What two readings of the same lock have in common becomes its history. Between sweeps a
// watch reports changes ([Scanner.Watch]). Each complete sweep proves that the watch missed
// nothing, and repairs what it could not see.
//
// # Guarantees
//
//   - A hold is reported as ended only after a complete pass of the server that
//     has its name and a direct read there, or after a direct read alone.
//   - Holds that a flush, restart or failover took are distinguished from released ones.
//
// # Not guaranteed
//
//   - A constant token hides turnover: a lock with the same bytes counts as the
//     same hold, so its age is a lower bound.
//
// # Concurrency
//
// [Scanner] and [Table] are safe for concurrent use. One sweep runs at a time.
// [Scanner.Run] owns all goroutines it starts and returns after they ended;
// [Scanner.Sweep] likewise.
//
// # Failure
//
// A target that is away makes a sweep without masters, which resolves nothing; Run tries
// again with backoff. An incomplete sweep reports what it did see.
package scanner
