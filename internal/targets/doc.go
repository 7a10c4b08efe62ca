// Package targets watches targets: it has each one swept and watched, has the rules judge what was read, and keeps findings,
// events and histories in the store.
//
// # Guarantees
//
//   - [New] and [Prepare] do no I/O to a target; a server that is away is reported down and tried again.
//   - Of one target, sweeps, changes and rechecks are judged one after the other, in the order in which they were read.
//   - Findings and their events are in the store before anybody is notified, unless the store fails: then notifications are
//     sent from memory, and what the store lacks is written when it works again.
//   - What the store knows of a target is taken back before its first sweep ends.
//
// # Not guaranteed
//
//   - What is counted of holds is written every ten seconds: a kill loses what came after.
//
// # Concurrency
//
// [Watched], [Set], [Resolved] and [Executions] are safe for concurrent use. Readers of a [Set] take its [Snapshot] without a lock.
//
// # Failure
//
// What the store does not take is logged and tried again; watching and metrics go on.
package targets
