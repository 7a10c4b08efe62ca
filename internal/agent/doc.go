// Package agent wires the parts of Locksteward into the program that runs: it
// watches the targets, judges, shows, tells and releases, and stops in order.
//
// # Guarantees
//
//   - Everything that can fail at start fails in [New]: a taken port, an
//     unreadable file, a store of a newer version. A Redis that is away is no
//     failure: the target is reported down and tried again.
//   - A reload that fails changes nothing.
//   - Findings and histories are in the store before people are told.
//
// # Not guaranteed
//
//   - Deliveries under way are not durable: a message that a receiver did not
//     take before the agent was killed is lost (a later version has an outbox).
//
// # Concurrency
//
// [Agent] is safe for concurrent use. [Agent.Run] owns every goroutine and
// returns after all of them ended. Of one target, sweeps and rechecks are judged
// one after the other.
//
// # Failure
//
// A store that cannot be written is logged; watching, metrics and alerts go on,
// and a release is refused since it could not be audited.
package agent
