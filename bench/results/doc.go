// Package results writes measured figures into bench/RESULTS.md, each benchmark
// into a section of its own, so that one can be run again without the others.
package results
