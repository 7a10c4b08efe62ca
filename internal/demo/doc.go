// Package demo is `locksteward demo`: lock users, healthy and broken ones, on a
// Redis of its own or of the caller's, the real agent on top, and a release from
// request to audit trail. What it prints is what happened; nothing is staged but
// the lock users.
//
// # Guarantees
//
//   - On a server of the caller's ([Options.Redis]) every key that is written
//     begins with a prefix drawn for this run, "demo:" and random letters, or is
//     the record of a release beside such a key. They are removed at the end, by
//     name. No other key is written or deleted.
//   - Every listener is on loopback.
//   - When [Run] returns, no process, goroutine, listener or file of it is left,
//     whatever it returns.
//   - With [Options.Once] it ends within [Limit]: with all it promises to show, or
//     with an error that names what did not happen.
//
// # Not guaranteed
//
//   - If the program itself is killed (SIGKILL), keys without TTL stay on a
//     server of the caller's; their prefix was printed. A server of its own dies
//     with it on Linux.
//   - Times in the output are those of this machine under its load.
//
// # Concurrency
//
// [Run] owns all goroutines. Several runs side by side do not disturb each other.
//
// # Failure
//
// Whatever fails ends the demo with an error that says what to do; if the agent
// is to blame, the end of its log is in it.
package demo
