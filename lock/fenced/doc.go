// Package fenced lets a resource refuse a late holder: one that was paused, cut
// off or slow beyond its lease, and writes although another has the lock by now.
// No lock can stop it; a number that the resource remembers can.
//
//	h, err := client.Acquire(ctx, "lock:order:42", lease)
//	…
//	err = fenced.Set(h.Context(), rdb, "order:42", h.Fence(), body) // Redis
//	err = fenced.Guard(ctx, tx, "order:42", h.Fence())              // PostgreSQL, any statements of tx
//	err = orders.Update(ctx, db, 42, h.Fence(), "paid")             // PostgreSQL, one row: see Row
//	if errors.Is(err, fenced.ErrStale) { … } // nothing was written: stop
//
// It is a few lines for each resource, to use or to copy: set.lua, guard.sql and
// schema.sql work from any language. docs/fencing.md has the why and the cases
// that these do not fit. The fence may come from any lock that gives numbers
// which only grow; this package does not need package lock.
//
// # Guarantees
//
//   - The fence of a resource never falls, and no write with a smaller fence
//     than the resource has seen takes effect, in whatever order requests arrive.
//   - Comparing and writing are one step: a script in Redis, a statement or a
//     transaction over a locked row in PostgreSQL.
//   - The same fence may write again, so that a call whose reply was lost can be
//     repeated, and a hold can write more than once.
//   - Every int64 above 0 is compared exactly. A fence of 0 or below, which a
//     lock without fences gives, is an error and is not sent.
//   - [ErrStale] means that the resource refused, and never that it could not be
//     asked.
//
// # Not guaranteed
//
//   - Anything for writers that do not carry a fence. Every write to the resource
//     has to go this way.
//   - Order among the writes of one hold: they carry the same fence.
//   - That the late holder's earlier writes are undone, or that it stops. It
//     learns at its next write.
//   - More memory than the resource has. A Redis that loses its data, or fails
//     over to a replica that lags, forgets fences; so does DEL of the key or
//     DELETE of the row.
//   - Sense in mixing locks: a resource follows the fences of one lock.
//
// # Concurrency
//
// Everything is safe for concurrent use, and nothing runs in the background. In
// PostgreSQL the newer holder waits for an older one's transaction to end, so
// that the two never overlap.
//
// # Failure
//
// What the server says is wrapped as it is. After an error that is not ErrStale
// or [ErrInvalid] the write may or may not have taken effect; repeat it with the
// same fence.
package fenced
