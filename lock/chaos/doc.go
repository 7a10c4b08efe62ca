// Package chaos tests package lock against real servers while these, the
// network between, the processes that hold locks and the clocks are being
// broken. It has no code of its own but tests.
//
// Clients take a few locks, here and in processes of their own, and write under
// them to two stores on a server that nothing happens to: one that compares
// fences and one that does not. All that they saw is recorded and judged
// afterwards by internal/testkit/lockcheck. Each nemesis has a test that names its rows
// of the list of faults; the control, without which the suite would prove
// nothing, is that the store without fences takes late writes where the other
// refuses them (TestLateWrite…).
//
//	go test -race ./lock/chaos                            the bounded part, about a minute
//	go test ./lock/chaos -run '^TestLong$' -timeout 0 -v -chaos.duration=10m -chaos.seed=1
//
// The long one draws topologies and nemeses from the seed, says every ten
// seconds how far it is, and keeps history, seed and server logs of a round that
// failed (with -artifacts: where go test says).
//
// # Guarantees
//
// Under faults that leave the server's data and clock alone: no two holders at
// once, no loss before the end of a lease, answers that are those of one mutex.
// Under all others: fences grow, and the fenced store takes no late write.
//
// # Not guaranteed
//
// That the same seed gives the same history: the schedule of nemeses is the
// same, that of goroutines and processes is not.
//
// # Concurrency
//
// Nemeses run on the goroutine of their test. Servers and processes are private
// to it.
//
// # Failure
//
// A violation fails the test and leaves the history as JSON in its artifacts.
package chaos
