// Package testam gives tests a real Alertmanager on a private port of loopback, to
// be asked, killed and started again. Only tests import it.
//
// # Guarantees
//
// Every server is a process of its own with a directory of its own, and no member of
// a cluster, so tests run in parallel. Both are gone when the test ends, passed or
// not; the log is printed when the test failed.
//
// A test that asks for a server is skipped under -short, and skipped loudly where
// none is installed; with CI set in the environment a missing server fails the test
// instead.
//
// # Not guaranteed
//
// Alertmanager keeps alerts in memory: [Server.Restart] loses them, as in life.
// Between [Server.Kill] and [Server.Restart] a foreign program may take the port;
// Restart then says so.
//
// # Concurrency
//
// Methods of [Server] fail the test that started it by FailNow and belong to the
// goroutine of the test.
//
// # Failure
//
// What the harness itself cannot do is fatal for the test, with the end of the
// server's log.
package testam
