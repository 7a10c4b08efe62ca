// Package audit is what makes the audit trail worth its name outside the store that
// keeps it: checkpoints that are signed, exports that can be verified without any
// store, receivers that get each entry as it is written, and the way back in for
// what was done without an agent. docs/audit.md has the formats.
//
// # Guarantees
//
//   - A checkpoint is signed for the head of the chain as the store has it: every
//     Config.CheckpointEvery, every Config.CheckpointEntries and at [Trail.Stop].
//   - Each sink gets every entry at least once and in order, from where it was
//     before a restart; a sink that does not work delays nothing and no other sink.
//   - An export is a file that is whole or is not there, and one in which a single
//     bit was changed does not verify.
//   - A file of `locksteward unlock` is taken in as a whole or not at all, and each
//     of its lines once.
//
// # Not guaranteed
//
//   - A key that lies beside the store signs whatever is in the store: it protects
//     against someone who gets the file, not against someone who gets the machine.
//   - UDP, and TCP without an answer, can lose what was on its way.
//   - A sink that is away for longer than the trail is kept misses what retention
//     took; [Trail.Status] counts it.
//
// # Concurrency
//
// [Trail] is safe for concurrent use. Start owns every goroutine, Stop returns
// after all of them ended but for one that writes to a standard output which
// nobody reads.
//
// # Failure
//
// What a sink or the anchor file does not take is tried again until it does; that
// it does not is logged once and is in [Trail.Status].
package audit
