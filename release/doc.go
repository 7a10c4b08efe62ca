// Package release frees locks by force, with people in charge: somebody
// requests, somebody approves, and the source.Releaser of the target deletes exactly
// the hold that was asked about, or nothing. Inside the agent nothing else writes to
// a lock store.
//
//	                  ┌──▶ denied · expired · superseded
//	request ─▶ pending ─▶ approved ─▶ executing ─┬─▶ released       deleted by us, waiters woken
//	 (evidence    ▲  decisions        (intent    ├─▶ already_gone   it had ended by itself
//	  frozen)     └─ n of them         written)  ├─▶ changed        another hold or expiry: nothing touched
//	                                             ├─▶ failed         certain: nothing touched
//	                                             └─▶ unknown        no record of the outcome: never retried
//
// # Threat model
//
// The danger is a release that deletes the wrong hold: the lock was released,
// renewed or taken by somebody else between the look, the approval and the act.
// So a request freezes what was seen; approvals sign the hash of that; the act
// reads the lock again, compares, and the releaser compares once more, atomically,
// the bytes and the expiry. Other dangers, and what stands against each: one
// person alone (roles, no self-approval), a copied or repeated approval (evidence
// hash, single transition per state in the store), an approval from yesterday
// (TTLs), two agents or a double click (a transaction decides who executes; the
// request id in the record beside the lock stops a second run), a stolen scanner
// credential (it cannot write; release credentials are apart and used only during
// an act), an act that nobody knows of (intent before, outcome after, both in the
// audit chain). A person with write access to the lock store or to ours can do what
// they like; this package does not defend against them.
//
// # Guarantees
//
//   - Nothing is deleted without comparing type, bytes, expiry, count and
//     library. For identity strong and lineage a wrong deletion is impossible.
//   - Without release credentials every verb that changes something answers "this
//     agent cannot delete"; such an agent holds no means to delete.
//   - The intent is in the store before the act. Whatever happens in between,
//     a lost reply, kill -9, a server away, [Service.Recover] finds the true outcome
//     in the record that the releaser wrote in the same step as the deletion, and
//     says that the record showed it (source.Outcome.ConfirmedBy).
//   - One request executes at most once. A release that the server receives late
//     finds the request withdrawn and touches nothing.
//   - Every act, and every refusal by policy, is an audit entry; state and entry
//     are one transaction, and so is the event that people are notified of ([locksteward.Event]).
//   - What is approved is what is executed: the hash that approvals sign covers
//     the evidence and what is asked for, and is computed again before the act.
//   - Nothing that is doubtful is done without a person ([Service.Swept]).
//   - No token of a lock is in a request, an entry, an error or a log line.
//
// # Not guaranteed
//
//   - Identity none (a constant value without TTL): the same bytes may be the next
//     hold. Such a request is marked, needs a separate confirmation by an approver
//     who is not the requester, and keeps that risk. A constant value with a TTL
//     is distinguished by its expiry; it is marked and confirmed as well.
//   - A holder that is still alive keeps working: only fencing at the resource
//     stops it. Holders that use package lock are notified at once.
//   - With HolderAlive the same owner that took the lock anew is not distinguished from
//     the old hold: a person said so, and another confirmed it.
//   - An undo puts back the key alone.
//   - A failover may undo a deletion that was not replicated yet; the lock then
//     stands again.
//   - The record of an act lives in the lock store: where the server evicts or loses it and
//     the lock is gone too, the outcome is unknown.
//
// # Concurrency
//
// A [Service] is safe for concurrent use. Approve executes
// on the caller's goroutine, detached from its context. [Service.Run] owns the
// loop that ends what is due and resolves what was left open.
//
// # Failure
//
// Errors wrap locksteward.ErrInvalid, ErrRefused, ErrNotFound or ErrConflict, or
// are the store's own; they end with what to do. When the store fails nothing is
// executed. When it fails after the act, the request stays executing and is
// resolved as soon as the store works again.
package release
