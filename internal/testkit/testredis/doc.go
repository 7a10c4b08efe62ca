// Package testredis gives each test its own real redis-server: standalone, with
// a replica, a three-master Cluster, Sentinel; with TLS, ACL users or a socket;
// to be paused, killed, restarted, given a clock that the test sets, and reached
// through a faulty network. Only tests import it.
//
// # Guarantees
//
// Every server is a process of its own on a private port (see
// internal/redisproc), so tests run in parallel and flush nothing. All of it is
// gone when the test ends, paused or not, passed or not; the log of a server
// is printed when its test failed, and kept under go test -artifacts.
//
// A test that asks for a server is skipped under -short, and skipped loudly
// where none is installed; with CI set in the environment a missing server
// fails the test instead.
//
// # Not guaranteed
//
// Data does not outlive a restart unless [WithConfig] asks for it. Cluster
// nodes and Sentinels announce their own addresses, so their clients go round
// a [Proxy].
//
// # Concurrency
//
// Methods that take or hold a [testing.TB] fail the test by FailNow and belong
// to the goroutine of the test. [Proxy] is safe for concurrent use.
//
// # Failure
//
// What the harness itself cannot do is fatal for the test, with the end of the
// server's log.
package testredis
