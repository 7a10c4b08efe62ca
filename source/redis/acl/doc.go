// Package acl knows which rights each of Locksteward's Redis users needs, on
// which server: the scanner, the releaser, and the applications that take locks
// with lock/. It turns them into rules for the server (ACL SETUSER, ACL
// files), and asks a server whether a user has more.
//
// What the scanner and the releaser need is decided where it is used, in
// redis.ACL and releaser.ACL; this package knows what differs between servers
// (which command is there since when, how a read-only pattern is written) and
// which keys and channels stand beside a lock.
//
// # Guarantees
//
//   - A rule that is printed for a server is one that the server takes.
//   - No password is printed: an ACL takes the SHA-256 of one.
//   - Asking what a user may do ([Excess]) writes nothing.
//
// # Not guaranteed
//
//   - SCAN, INFO and PUBSUB know no patterns: the names of all keys are visible
//     to every user that may scan.
//   - An ACL has no "all but": where a class that nobody may release lies inside
//     the pattern of one that may be, the server lets the releaser at both. The
//     agent does not; [Releaser] tells.
//
// # Concurrency
//
// Everything is plain data or safe for concurrent use.
package acl
