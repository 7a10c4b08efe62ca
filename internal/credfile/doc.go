// Package credfile keeps credentials that stand in files current: a certificate
// with its key, authorities, a password. Files may be replaced while they are in
// use, by hand, by cert-manager or by the update of a Kubernetes secret.
//
// # Guarantees
//
//   - A look reads a file again when it is another one: inode, time or size
//     changed. Looks are at most every [LookEvery], unless they are forced.
//   - What cannot be used is refused, and what was in use stays: files that are gone,
//     unreadable, empty, half-written or no PEM, a key that is not the
//     certificate's, a certificate that is out of its time while the one in use is
//     not. They are tried again at each look.
//   - A file that is written in place, and not put there by a rename or by another
//     symbolic link, is read when it stayed the same for [LookEvery].
//   - A refusal is in [State.Refused], never with a byte of the file.
//
// # Not guaranteed
//
//   - A password that stays cut short in the middle of its line for longer than that
//     cannot be distinguished from a short one: write another file and rename it.
//
// # Concurrency
//
// All types are safe for concurrent use. There are no goroutines: who wants to
// know of a change looks.
package credfile
