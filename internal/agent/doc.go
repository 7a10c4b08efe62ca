// Package agent wires the parts of Locksteward into the program that runs: it
// watches the targets, judges, shows, notifies and releases, and stops in order.
//
// # Guarantees
//
//   - Everything that can fail at start fails in [New]: a taken port, an
//     unreadable file, a store of a newer version. A Redis that is away is no
//     failure: the target is reported down and tried again.
//   - A reload that fails changes nothing: every component prepares its part first, and releases it if another one
//     refuses. What the store must learn is written after that.
//   - Findings are in the store before notifications about them are sent, and so are
//     notifications: a kill loses none.
//   - Findings of the last run are shown as soon as they are read, before any sweep ends.
//   - /-/healthy fails if the loops that judge, show and send heartbeats make no progress for a
//     minute, and never while they wait for Redis, the store or a receiver.
//
// # Not guaranteed
//
//   - The history of a lock is written once a second beside the watch: a kill loses
//     what waits for that.
//
// # Concurrency
//
// [Agent] is safe for concurrent use. [Agent.Run] owns every goroutine and
// returns after all of them ended. Of one target, sweeps and rechecks are judged
// one after the other. Targets, classes and configuration are an immutable state that
// readers take without a lock.
//
// # Failure
//
// A store that cannot be written is logged; watching, metrics and alerts go on,
// and a release is refused since it could not be audited.
package agent
