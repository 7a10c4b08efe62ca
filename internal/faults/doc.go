// Package faults lists what can go wrong around a lock and the agent that looks
// after it, and lets a test say which of it it shows.
//
// A row is one fault, with what the library (package lock) and the agent (the
// rest) must do about it. A test that really injects the fault and asserts that
// names the row:
//
//	faults.Covers(t, 14)
//
// A call counts for the part that its package belongs to; a test that runs both
// together says CoversBoth. What no test shows is in Gaps, with the reason.
// Package matrix finds the tests, runs them and writes docs/faults.md.
package faults
