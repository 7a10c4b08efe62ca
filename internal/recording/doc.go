// Package recording writes what sweeps saw to a file, reads it back, and judges
// it again offline: how a rule would have spoken can be tested without a server.
//
// A recording is JSON lines. The first line names format and version; each look
// is one line with its own facts, followed by one line for each lock, ending and
// loss. Fields have the names of the nouns' (root package) in snake_case, zero
// values are left out; docs/recording.md lists them and is tested.
//
// Tokens are never in a recording, only their digests with a key of the run that
// is not written. Key names, holders and addresses are as they were.
//
// # Guarantees
//
//   - What is written is read back as it was, whatever bytes keys have.
//   - Reading is strict: a field that does not exist is an error with its line.
//   - No input makes the package panic. A line is at most [MaxLine] bytes; one
//     look is in memory at a time.
//
// # Concurrency
//
// A [Writer] is for one goroutine.
package recording
