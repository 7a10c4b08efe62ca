// Package sqlsource reads and releases locks that applications keep in an SQL database:
// rows of lock tables (Liquibase, ShedLock, …), and locks that belong to a database
// session (PostgreSQL's advisory locks).
//
// A target is one database. Its parts are the session locks, and each lock table: a table
// that cannot be read ends no lock of another part. All reads of a target go over one
// connection, one after the other, so that the server's clock orders them.
//
// What differs between databases is a dialect. What is known of lock tables is a list of
// [Table], to which an installation adds its own.
package sqlsource
