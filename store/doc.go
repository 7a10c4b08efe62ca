// Package store is the agent's durable memory: release requests with their
// decisions, the audit trail, first-seen history, the last findings, and the
// installation's key for token digests. It is one SQLite file.
//
//	sqlite:data/locksteward.db     the file, relative to the working directory
//	sqlite::memory:                for tests: gone with the process
//
// # Guarantees
//
//   - A change of a request and its audit entries are one transaction: both are
//     there or neither, also after kill -9 or a power cut (WAL, synchronous=FULL).
//   - Audit entries are a hash chain; [Store.Verify] finds a line that was
//     changed, dropped, swapped or inserted, and a tail cut off carelessly.
//   - At most one request is open per target, database and key.
//   - A final request never changes state, whatever the caller asks.
//   - One agent per file: a second one is refused with a sentence that says so.
//   - A file written by a newer program is refused untouched.
//   - The file is created with mode 0600, its folder with 0700. Lock tokens are
//     never in it, only keyed digests.
//
// # Not guaranteed
//
//   - Whoever can write the file can forge all of the chain, head included: a
//     chain without an outside anchor shows tampering only by those who did not
//     recompute it.
//   - Network file systems: SQLite's locks do not hold on many of them.
//   - On systems without flock the second agent is not refused; transactions
//     still keep the data whole.
//
// # Concurrency
//
// All methods are safe for concurrent use. Writers are served one at a time,
// readers beside them. A callback given to [Store.CreateRequest] or
// [Store.UpdateRequest] runs inside the write transaction: it must be quick and
// must not call the store.
//
// # Failure
//
// Every error says what was attempted and, for a full disk, a read-only or
// locked or damaged file, what to do. After an error nothing of that call was
// written. The context bounds every call; a cancelled write is rolled back.
package store
