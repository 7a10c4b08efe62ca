// Package users knows who may do what on the console listener: people with
// roles from a YAML file that holds only digests of their secrets.
//
// # Guarantees
//
//   - A token is 256 bits of randomness; the file holds its SHA-256 alone, so
//     that the file gives nobody access.
//   - Passwords are kept as argon2id or bcrypt, within bounds; few are checked at
//     once, and an unknown name costs what a known one does.
//   - A disabled user can do nothing.
//   - [Set.Authenticate] takes the same time whether a token is unknown, nearly
//     right or right.
//   - [AddUser], [SetDisabled] and [SetPassword] replace the file in one step: a reader sees the old or the new one,
//     and a crash leaves the old one.
//   - A file that other accounts may write is refused.
//
// # Not guaranteed
//
// A plain SHA-256 is right for a random token and wrong for a password, which
// is why those have hashes of their own.
//
// # Concurrency
//
// A [Set] is immutable and safe for concurrent use. Two programs that change the
// file at once exclude each other by the temporary file: the second one gets an
// error.
//
// # Failure
//
// [Load] reports all problems of a file at once and never returns part of one.
package users
