// Package lock takes distributed locks in Redis and writes beside each who has it, since when and for how long it was
// meant (package record), so that it can be read from outside. docs/lock.md shows how to use it.
//
//	client, err := lock.New(rdb, lock.Options{App: "billing"})
//	h, err := client.Acquire(ctx, "lock:order:42", lock.Lease{TTL: 30 * time.Second})
//	if err != nil { … }
//	defer h.Release(ctx)
//	work(h.Context(), h.Fence())
//
// # Guarantees
//
//   - Acquire is one script in one round trip: value, fence, metadata and TTL together. It is idempotent, so that a lost
//     reply leaves no lock that nobody knows; when any part fails, nothing is left behind. There is never a lock, or
//     metadata, without TTL.
//   - Validity counts from before the request was sent, less 1 % of the TTL and 2 ms. The handle's context ends before
//     the server can expire the key; its Err compares both clocks itself, so that a process that was paused learns it at
//     its first look. A wall clock that steps forward beyond the lease ends it.
//   - A renewal, every third of the TTL, only prolongs a lock that is still this hold's, and never re-creates one. A
//     failed one is tried again inside the lease and counted.
//   - Release compares before it deletes, and says released (nil), lost (ErrLost; nothing was touched) or unknown
//     (ErrUnknown; tried on in the background until the TTL).
//   - The fence grows with each hold of a lock, also over a release, an expiry or the loss of the lock key.
//   - A forced release by Locksteward ends the holder's context at once, if the subscriber connection stands; else when it
//     stands again, or at the next renewal. When that connection was made anew, the locks held are compared, so that what
//     a server lost in a restart or a failover ends the contexts within 5 s of its answering again, up to ten thousand
//     locks. On a Cluster that is so for the master that has the process's channel; others are found out by renewals.
//   - Waiting is first come, first served among the waiters that live, on a Cluster too. Nobody overtakes the queue:
//     TryAcquire fails while a waiter lives. A release hands the lock to the first waiter that can be reached, in the
//     same script. A waiter that was sent the lock and does not take it up costs 150 ms, once; one whose process is gone
//     costs nothing. A waiter that comes after its turn is overtaken, and has its old place back.
//   - A hand-off is for a turn of 150 ms (less, if the TTL is), counted from before the waiter's last attempt. It is
//     prolonged to the TTL by a round trip that begins after the lesser of 10 ms and a fifth of what is left of the turn,
//     so that a short hold never sends it. A process that is paused for longer than what is left of the turn before that
//     round trip has lost the lock, as any hold is lost whose lease is not renewed, and its context says so.
//
// # Not guaranteed
//
//   - That nobody else writes to your resource. A holder that does not look at its context (it sleeps in a system call,
//     its goroutine is not scheduled, its request is under way) goes on after its lease. Only the resource can refuse it,
//     by the fence: see [Handle.Fence].
//   - That Done is closed on time: it lags by what the scheduler takes. Err does not.
//   - Mutual exclusion over a failover: replication is asynchronous, and a lock that had not reached the replica is not
//     there afterwards. The fence still grows, by the server's clock.
//   - A growing fence when its counter (locksteward:fence:{n}) and the lock's metadata are lost and the server's clock is
//     behind at the same time.
//   - An order of waiters on a Redlock client, whose waiters poll, and on a Cluster before 7.0, whose releases hand
//     nothing over: waiters come in turn there.
//   - Safety when the server's clock runs more than 1 % faster than this machine's, or jumps forward: it then expires the
//     lock early, which the next renewal notices.
//
// # Concurrency and failure
//
// [Client] and [Handle] are safe for concurrent use. Background work starts with the first acquire; [Client.Close] returns
// after all of it. At most four round trips of acquires and releases are on their way to a server at once; requests that
// come meanwhile share the next ones, up to sixteen in one, releases before acquires. Renewals have connections of their
// own, and wait for nothing else, also when the caller's pool is exhausted.
//
// While Redis is away an acquire is tried again for Options.Timeout, and a held lock is renewed again and again until its
// lease is over by the local clock. An error reply is a [*ServerError] with its [Code]; the table there says what is
// retried. Without pub/sub (ACL, proxy) waiters try again once a second and at the end of the lease. A minority of a
// Redlock client's nodes away changes nothing; a majority is a redlock.QuorumError.
package lock
