// Package store is the agent's durable memory: release requests with their
// decisions, the audit trail, notifications, leases on targets,
// first-seen history, the last findings, how locks were held, and the
// installation's key for token digests. It is an SQLite file or a PostgreSQL
// database; both run the same code and the same tests.
//
//	sqlite:data/locksteward.db         the file, relative to the working directory
//	sqlite::memory:                    for tests: gone with the process
//	postgres://USER@HOST:5432/DATABASE version 13 or newer
//
// # Guarantees
//
//   - A change of a request, its audit entries and the notifications about it
//     ([Store.Compose]) are one transaction: all are there or none, also after
//     kill -9 or a power cut (WAL and synchronous=FULL; synchronous_commit is
//     never off). Another state without an entry is refused. Findings and the
//     events about them are one transaction too.
//   - What happened to locks ([Store.SaveLockEvents]) is bounded per lock and in all.
//   - Audit entries are a hash chain, also where several processes write;
//     [Store.Verify] finds a line that was changed, dropped, swapped or inserted,
//     and a tail cut off carelessly; with a [Checkpoint] kept elsewhere also a
//     trail that was rewritten or cut off with its head.
//   - At most one request is open per target, database and key.
//   - A final request never changes state, whatever the caller asks.
//   - A notification is claimed by one sender at a time, and those of one Ordering in
//     the order in which they were written; what was neither delivered nor given up is
//     claimed again.
//   - An event of a finding ([locksteward.FindingEvent]) is written in the transaction of the
//     finding, once for each receiver, and waits in a group until [Store.Flush] sends or
//     drops it: notifications and the delivery state of the receiver are one transaction.
//     A receiver is notified of the events of a finding in the order of their writing.
//   - A change of silences wakes what they held back, in its transaction.
//   - Fences of leases only grow. A write through [Store.Under] is refused from
//     the moment at which its lease is over by the database's clock.
//   - One agent per file: a second one is refused with a sentence that says so.
//     Processes that open a database at once migrate it once; a schema written by
//     a newer program is refused untouched.
//   - A file is created with mode 0600, its folder with 0700. Lock tokens are
//     never in the store, only keyed digests; no error shows a password.
//
// # Not guaranteed
//
//   - Whoever can write the database can forge all of the chain, head included: a
//     chain without an outside anchor shows tampering only by those who did not
//     recompute it.
//   - Network file systems: SQLite's locks do not hold on many of them.
//   - On systems without flock the second agent of a file is not refused;
//     transactions still keep the data whole.
//   - Text with a NUL or with bytes that are not UTF-8 is kept with U+FFFD in
//     their place. Keys of locks, details of entries and bodies of notifications are
//     bytes.
//
// # Concurrency
//
// All methods are safe for concurrent use, those of a view included. Writers of
// requests, entries and notifications are served one at a time, over all processes,
// other writers beside them; readers never wait for a writer. A callback given to
// [Store.CreateRequest], [Store.UpdateRequest] or [Store.Compose] runs inside the
// write transaction: it must be quick and must not call the store.
//
// # Failure
//
// Every error of a database is an [Error]: it says what was attempted and what to
// do, and is one of [ErrFull], [ErrReadOnly], [ErrBusy], [ErrAway] and
// [ErrDamaged] for errors.Is. After an error nothing of that call was written,
// but for [ErrUnsure]: the server went away in the middle of a commit and did not
// come back in time to say what became of it, or the disk did not confirm it. Then
// nothing is written to the file until it was opened anew and checked. A server that does not answer is
// waited for once; from then on calls fail at once until it answers again, which
// the store finds out by itself. The context bounds every call; a cancelled write
// is rolled back.
package store
