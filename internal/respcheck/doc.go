// Package respcheck bounds what a Redis server can make its client hold. A client
// takes a reply's word for how long it will be, and makes room for it at once or goes
// as deep as it is nested: one reply of a few bytes would end the process.
//
// [New] puts a check on a connection, above TLS. What is legal RESP2 or RESP3 and
// within the bounds passes unchanged, from the connection into the reader's own
// memory: nothing is read ahead or kept, but for the bytes of a header of which the
// end has not come.
//
// # Guarantees
//
//   - Of each reply, and of each push, at most 64 MiB, 65,536 elements and 8 levels
//     pass, and no line of more than 64 KiB. What goes beyond, and what is no RESP,
//     closes the connection, and the reader gets an [*Error] that says what it was
//     and of which server.
//   - A string of more than 1 MiB is read past: a mark of less than 100 bytes stands
//     in its place, which [Long] knows. All else in that reply is as it was.
//   - What passes is the same however the bytes came in pieces.
//
// # Not guaranteed
//
//   - That a reply is one that the command can have. Its reader finds that out.
//   - An end: a server may send within the bounds for ever. Time is the matter of the
//     connection's deadlines.
//
// # Concurrency
//
// As of any connection: one reader and one writer at a time.
package respcheck
