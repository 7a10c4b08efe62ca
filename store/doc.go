// Package store is the agent's durable memory: release requests with their decisions, the
// audit trail, messages to receivers, leases on targets, the history of locks, the last
// findings, how locks were held, and the installation's key for token digests. It is an
// SQLite file or a PostgreSQL database; both run the same code and the same tests.
//
//	sqlite:data/locksteward.db         the file, relative to the working directory
//	sqlite::memory:                    for tests: lost with the process
//	postgres://USER@HOST:5432/DATABASE version 13 or newer
//
// # Guarantees
//
//   - A change of a request, its audit entries and the messages about it
//     ([Store.Compose]) are one transaction: all are written or none, also after kill -9 or
//     a loss of power (WAL and synchronous=FULL; synchronous_commit is never off). A change
//     of state without an entry is refused. Findings and the messages about them are one
//     transaction too.
//   - Events of locks ([Store.SaveLockEvents]) are bounded per lock and in total.
//   - Audit entries are a hash chain, also with several writing processes. [Store.Verify]
//     finds an entry that was changed, deleted, swapped or inserted, and a tail that was cut
//     off without its head; with a [Checkpoint] kept elsewhere also a trail that was
//     rewritten or cut off with its head.
//   - At most one request is open per target, database and key.
//   - A final request never changes state.
//   - A message is claimed by one sender at a time, and those of one Ordering in the order
//     in which their changes were written. A claim that expires without an outcome can be
//     claimed again.
//   - An event of a finding ([Event]) is written in the transaction of the finding, once for
//     each receiver, and is pending in a group until [Store.Flush] sends or drops it:
//     messages and the state that the receiver knows are one transaction. The events of a
//     finding are sent to a receiver in the order of writing.
//   - A change of silences wakes the events that were held back, in its transaction.
//   - Fences of leases only grow. A write through [Store.Under] is refused once its lease
//     expired by the database's clock.
//   - One agent per file: a second one is refused with an error that says so. Processes that
//     open a new database at once create the schema once; a schema of another version is
//     refused unchanged.
//   - A file is created with mode 0600, its folder with 0700. Lock tokens are never stored,
//     only keyed digests; no error shows a password.
//
// # Not guaranteed
//
//   - A writer of the database can forge the whole chain, head included: without an outside
//     anchor a chain only detects those who did not recompute it.
//   - Network file systems: SQLite's locks do not work on many of them.
//   - On systems without flock the second agent of a file is not refused; transactions still
//     keep the data consistent.
//   - In text, NUL and bytes that are not UTF-8 are replaced by U+FFFD. Keys of locks,
//     details of entries and bodies of messages are bytes.
//
// # Concurrency
//
// All methods are safe for concurrent use, also those of a view. Writers of requests,
// entries and messages run one at a time over all processes, other writers beside them;
// readers never wait for writers. A callback given to [Store.CreateRequest],
// [Store.UpdateRequest] or [Store.Compose] runs inside the write transaction: it must be
// quick and must not call the store. The callback of [Store.Enqueued] runs after it.
//
// Order of locks inside a process: a writer acquires one semaphore, then a connection, then
// row locks of the database. The mutexes (availability, health, connTracker) guard fields
// only: none is held over I/O, a callback or another lock.
//
// # Failure
//
// Every error of a database is an [Error]: it says what failed and what to do, and is one
// of [ErrFull], [ErrReadOnly], [ErrBusy], [ErrAway], [ErrDamaged] and [ErrNeedsRepair] for
// errors.Is. After an error nothing of that call was written, except for [ErrUnsure]: the
// server became unreachable during a commit and did not come back in time to tell its
// outcome, or the disk did not confirm the commit. After the latter nothing is written to
// the file any more, and no agent opens it, until [Repair] replaced it or a backup was
// restored. The first call that finds a server unreachable waits for its timeout; later
// calls fail at once until the server answers again, which the store finds out without
// help. The context bounds every call; a cancelled write is rolled back.
package store
