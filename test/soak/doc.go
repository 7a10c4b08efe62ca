// Package soak runs Locksteward for half an hour as it would run for months: two
// agents on one PostgreSQL watch a Redis Cluster full of locks while applications
// work, slots move, masters fail over and agents are killed and frozen. It holds
// tests only.
//
// # Guarantees
//
// After a run:
//
//   - no lost notice: of every broken lock the receiver got its fire, and of every one
//     that was freed its end;
//   - no false release: every lock that nobody released is there with its token, so is
//     each that was taken after a release, and every request was about a lock that was
//     broken;
//   - an agent had all locks in its table;
//   - no blind moment untold: after each failover blind time grew, and after each
//     freeze it grew or another agent had the target and swept it anew;
//   - changes missed outside of blind time: 0;
//   - no counter of blind time falls within a life of an agent, whichever replica has the target
//     meanwhile;
//   - memory, goroutines and open files of each life of an agent are flat after
//     warm-up: the line through its samples, over the time that they span, grows by
//     less than the bounds of verdict_test.go.
//
// # Not guaranteed
//
// That the offered rate of operations is reached: the machine decides, and the run
// says what it was.
//
// # Running
//
// `make soak` runs it for SOAKTIME (30m) with 200,000 locks and writes docs/soak.md;
// `make test` has a small one.
package soak
