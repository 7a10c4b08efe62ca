// Package testpg gives tests a real PostgreSQL: a fresh database on a server
// that the test binary shares, or a server of their own to be paused, killed
// and restarted. Only tests import it.
//
// # Guarantees
//
// A server listens on a unix socket in a private directory and on no port, so
// tests run in parallel and meet no other PostgreSQL of the machine. As root it
// runs under the user postgres, or nobody where there is none, since PostgreSQL
// refuses root. Processes, directory and shared memory are gone when the last
// test that uses it has ended, paused or not, passed or not; the log is printed
// when the test failed, and kept under go test -artifacts.
//
// A commit outlives [Server.Kill]. A test that asks for a server is skipped
// under -short, and skipped loudly where none is installed; with CI set in the
// environment a missing server fails the test instead.
//
// # Not guaranteed
//
// Nothing is synced to disk. A test binary that is itself killed leaves its
// directory in the temporary directory; on Linux its servers die with it, but
// for one that is paused at that moment.
//
// # Concurrency
//
// [Database] may be called from parallel tests. Methods of [Server] fail the
// test that started it by FailNow and belong to the goroutine of the test.
//
// # Failure
//
// What the harness itself cannot do is fatal for the test, with the end of the
// server's log.
package testpg
