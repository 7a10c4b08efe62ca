// Package model is the protocol of a forced release as a small machine, and an
// explorer that goes through all its states: a holder that renews, releases and
// takes again, a person who looks and approves, two agents of which each may
// stop anywhere, a network that delivers late or loses a reply, and a server that
// may lose the record of an act.
//
// What is checked in every state that can be reached:
//
//   - A deletion ends the very hold that the approver saw, in the state that they
//     saw: not another one, not one that was renewed. For locks that cannot be distinguished
//     from the next (identity none) this is not promised and not checked.
//   - One request deletes at most once.
//   - A final state never changes, and it is true: released means deleted, and
//     after failed, changed or already_gone nothing is ever deleted.
//
// [Variant] switches single safeguards off. Each must then be found out; the
// tests require it, so that what they show of the protocol as it is means
// something.
//
// What is not in it: more than one lock, more than one request, and records that
// are lost while a script is still under way (they live seven days).
//
// The code that it models: release/execute.go, release/recover.go,
// source/redis/releaser and source/redis/formats/opening.lua.
package model
