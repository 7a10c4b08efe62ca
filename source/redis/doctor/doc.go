// Package doctor looks at a target and says whether Locksteward can do its work
// there: can it be reached, may the user do what is needed and no more, does the
// watch work, and what would it cost.
//
// # Guarantees
//
//   - Nothing is written, unless [Options.PushTest] asks for one key that lives
//     for two seconds.
//   - The looks are bounded: some 60 PINGs, at most 64 pages of SCAN and 200
//     reads of keys, once.
//   - With the rights that `locksteward acl` prints nothing is refused, so that no
//     look leaves an entry in the server's ACL LOG.
//   - No password is in what it says.
//
// # Not guaranteed
//
//   - The forecast is arithmetic on a sample of a moment. Each figure names what
//     it assumes.
//
// # Concurrency
//
// [Examine] owns all goroutines that it starts.
package doctor
