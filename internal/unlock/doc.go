// Package unlock frees one lock without an agent: it looks, compares with a
// condition, says what it would do, and does it by the same script that an agent
// uses. What it does is written into a local audit file, the intent before the
// act and the outcome after it.
//
//	look ─▶ Plan (what would be done) ─▶ a person says yes ─▶ Act
//
// # Guarantees
//
//   - A lock that is not the one of the condition is not touched: type, bytes and
//     expiry are compared before, and again inside the script.
//   - Nothing is done whose intent could not be written to the audit file.
//   - No token is in a condition, the audit file, a preview or an error.
//
// # Not guaranteed
//
//   - Identity none (a constant value without TTL): the same bytes may be the next
//     hold. [Plan.NoIdentity] says so.
//   - Anyone with the credentials can do without this package: its audit file is a
//     note, not a proof.
//
// A Plan belongs to one goroutine.
package unlock
