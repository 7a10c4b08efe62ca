// Package matrix joins the rows of package faults with the tests that cover them
// and writes docs/faults.md.
//
//	go test . -run FaultMatrix                                         the page is in step with the sources
//	go test ./internal/faults/matrix -update                           it is written anew, with the outcomes it has
//	go test ./internal/faults/matrix -matrix -count=1 -timeout 0 -v    runs every test and notes the outcomes (make faults)
//	go test ./internal/faults/matrix -matrix -matrix.only='^lock$' ... those of some packages
//	go test ./internal/faults/matrix -matrix -matrix.again ...         those that have not passed yet
//
// Tests are found in the source, not by running them: the calls of faults.Covers
// and faults.CoversBoth, with literal numbers, in the body of a test function. A
// run must then see each of them: a test that was skipped before it got there
// covers nothing.
package matrix
