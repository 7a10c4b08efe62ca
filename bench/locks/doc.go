// Command locks measures the lock library beside the ones that people use
// today, on a real redis-server of its own, in one run:
//
//	cd bench && go run ./locks
//
// Every library gets the same server, the same lease and the same connection
// options; go-redis stays at its defaults unless -pool says otherwise. What is
// measured is done round by round, each library once in a round and in an order
// that turns by one each time, so that what the machine does meanwhile falls on
// all of them; the tables show the median round. Each cell opens clients of its
// own and warms them up before the clock starts.
//
// The sections, and what -sections calls them:
//
//   - pairs: acquire and release without a rival, 1, 16 and 64 goroutines, each
//     with a key of its own.
//   - costs: what one such pair costs at one goroutine: commands, which a
//     MONITOR connection counts in a pass of its own, and allocations, beside
//     two script calls that do nothing.
//   - handoff: 32 waiters, each a client of its own, want one lock and hold it
//     for 1 ms of waiting on a timer (not of computing: the machine's cores
//     belong to the libraries).
//   - dead: processes that waited are killed, and a live waiter stands behind
//     them.
//   - renewal: one client holds 10,000 locks and renews them.
//
// Nothing here can fail for being slow: the table of promises says what was
// reached. It fails when a library returns an error, when two waiters hold one
// lock at a time, or when a held lock is gone.
package main
