// Package lockcheck records what clients of a lock saw and did, and judges it
// afterwards: did two of them have one lock at once, can the server have
// answered as it did, and did a fenced store ever take a late write.
//
// The judges are pure and know nothing of Redis or of package lock. There are
// five, from what a lock can promise to what only a fence can:
//
//   - [Overlaps], the holder's view: of two holds of one lock, one is over for
//     its holder before the other begins.
//   - [ServerView]: some order of all answers, each between its call and its
//     return, is that of a lock with fences that frees a hold by its release, or
//     by itself once the holder knows that its lease is over.
//   - [Losses]: no holder loses a lock before its lease is over.
//   - [Fences]: the later of two acquisitions has the larger fence.
//   - [Store]: a store takes no write after one with a larger fence. Together
//     with Fences this is what must hold whatever happens to servers, clocks and
//     networks.
//
// # Guarantees
//
// A history without violations is accepted, and each judge has histories in its
// tests that it must refuse. Doubt about what happened (a reply that was lost, a
// process that was killed) never makes a violation; the judges but [ServerView]
// take O(n log n) time. ServerView reports a history that it could not judge in
// time as a violation.
//
// # Not guaranteed
//
// A history is what its clients recorded. What they did not record was not
// checked.
//
// # Concurrency
//
// A [Recorder] is safe for concurrent use. Times are those of [Now], which all
// processes of a machine share on Linux.
//
// # Failure
//
// Only reading a record from another process can fail: [Recorder.Replay].
package lockcheck
