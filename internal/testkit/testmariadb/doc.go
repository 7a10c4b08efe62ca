// Package testmariadb gives tests a real MariaDB: a fresh database on a server that the
// test binary shares, or a server of their own to be paused, killed and restarted. Only
// tests import it.
//
// A server listens on a unix socket in a private directory and on no port, unless a test
// gives it an address. As root it runs under the user mysql, or nobody where there is
// none. Process and directory are gone when the last test that uses them has ended; the
// end of the log is printed when the test failed. A commit outlives [Server.Kill]; nothing
// is synced to disk.
//
// A test that asks for a server is skipped under -short, and skipped loudly where none is
// installed; with CI set in the environment a missing server fails the test instead.
// MySQL, which Debian's stable releases do not have, is used by the tests that ask for it
// if LOCKSTEWARD_TEST_MYSQLD names its mysqld.
//
// [Database] may be called from parallel tests. Methods of [Server] fail the test that
// started it and belong to the goroutine of the test.
package testmariadb
