// Package lockprom shows what the lock library does as Prometheus metrics
// (locksteward_client_*; docs/client-metrics.md has the table and queries).
//
//	client, err := lock.New(rdb, lock.Options{App: "billing"})
//	…
//	prometheus.MustRegister(lockprom.New(client))
//
// It is fed by [lock.Client.Observe].
//
// # Guarantees
//
//   - The only label that callers choose is the class of the lease: never the
//     key, the token, the holder or the text of an error. An empty class is
//     "default".
//   - The number of series is bounded: [DefaultMaxClasses] classes, later ones
//     share the class "_other". All other labels have closed sets of values.
//   - A class starts with all of its series at 0, so that rates see what fails
//     seldom. Name classes in [Options].Classes to have them from the first
//     scrape on.
//   - A hold is counted once, however often it ends: acquired equals released +
//     lost + unknown + held.
//
// # Not guaranteed
//
//   - Holds that were taken before the collector observed their client: they are
//     not in the held gauge, nor is their end in the releases and hold times.
//     Their renewals and losses are counted.
//   - Event kinds of a later version of package lock: they are not counted.
//
// # Concurrency
//
// [Collector] is safe for concurrent use, scrapes included. It has no goroutine:
// it counts on that of the event. Counting takes a few atomic additions, and
// allocates nothing once the class is known, except for an exemplar.
//
// # Failure
//
// Nothing is sent anywhere, so nothing fails. What a label cannot hold (invalid
// UTF-8, an overlong class) is made fit.
package lockprom
