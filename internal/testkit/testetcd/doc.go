// Package testetcd gives tests a real etcd of one member or several, to be paused,
// killed and restarted. Only tests import it.
//
// # Guarantees
//
// A member takes clients at a free port of 127.0.0.1, which it keeps over restarts;
// members and the test talk to it over unix sockets in a private directory. Processes
// and directory are gone at the end of the test, passed or not; the logs are printed
// when it failed, and kept under go test -artifacts.
//
// A test that asks for a server is skipped under -short, and skipped loudly where none
// is installed; with CI set in the environment a missing server fails the test instead.
//
// # Not guaranteed
//
// Data is in memory where the machine has /dev/shm. A test binary that is itself killed
// leaves its directory; on Linux its servers die with it.
//
// # Concurrency
//
// [Start] may be called from parallel tests. Methods of [Server] fail the test that
// started it by FailNow and belong to the goroutine of the test.
package testetcd
