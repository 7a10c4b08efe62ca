// Package exporter shows the state of all targets as Prometheus metrics, and
// serves them with health and readiness on the listener that is safe to expose.
//
// The agent tells an [Exporter] what happened ([Exporter.ObserveSweep],
// [Exporter.SetFindings], ...); each call aggregates at once. Most publish an
// immutable list of series; what comes many times a second, such as
// [Exporter.ObserveWatch], leaves that to the next scrape.
//
// # Guarantees
//
//   - A scrape calls neither Redis nor the database and does no work that grows
//     with the number of locks: gauges are kept up to date lock by lock, and a scrape
//     publishes as many series as there are at most.
//   - Every metric is in one table, [Metrics]; docs/metrics.md is checked
//     against it.
//   - What is not known is absent, never 0: a target that is away has no lock
//     gauges, a class without locks has none either, a class whose holders do not
//     count failed attempts has no such counter.
//   - Counters never go down in the life of a process, whatever sweeps missed.
//     An incomplete sweep takes no lock away from the gauges.
//   - The number of series does not grow with the number of locks and findings, only
//     with classes, targets, servers, rules and receivers. What has a class that is
//     not configured is summed up in the class "_other".
//   - No label carries a token or a value read from Redis, and none a key unless
//     Config.TopLocks asks for it: then at most that many, escaped and cut.
//     The trace of an acquire is in exemplars if it is one by its form.
//   - What is gone from the configuration or does not fire any more is gone from the
//     next scrape.
//
// # Not guaranteed
//
//   - Counters of things seen from outside (acquires, renewals, losses, hold
//     times) are lower bounds: a hold that begins and ends between two sweeps is
//     not seen. docs/metrics.md says so for each.
//   - Locks are remembered by hashes of 80 bits under a secret seed; two that meet
//     are known as one.
//   - The number of series has no limit of its own: Prometheus has one (sample_limit).
//
// # Concurrency
//
// An [Exporter] is safe for concurrent use; sweeps of one target must be given
// in their order. [Server.Run] owns the goroutines of the listener and returns
// after they ended.
//
// # Failure
//
// Nothing given to an Exporter makes a scrape fail: names that are no valid
// label value are repaired. A broken web configuration file is refused by
// [NewServer]; one that breaks later answers 500 until it is repaired.
package exporter
