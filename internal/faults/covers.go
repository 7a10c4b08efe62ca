package faults

import (
	"slices"
	"strconv"
	"testing"
)

// Attr is the name of the attribute by which a test tells go test which row it
// covers; its value is the number of the row.
const Attr = "fault"

// Covers says that t injects the faults of rows and asserts what the part of its
// package must do about them: the library in package lock and those below it, the
// agent anywhere else. It fails t for a row that there is not. The numbers are
// literals, since package matrix reads them from the source.
func Covers(t testing.TB, rows ...int) {
	t.Helper()
	covers(t, rows)
}

// CoversBoth is Covers for a test that asserts what library and agent must do.
func CoversBoth(t testing.TB, rows ...int) {
	t.Helper()
	covers(t, rows)
}

func covers(t testing.TB, rows []int) {
	t.Helper()
	if len(rows) == 0 {
		t.Fatal("no row given: name the faults that this test covers")
	}
	known := Rows()
	for _, n := range rows {
		if !slices.ContainsFunc(known, func(r Row) bool { return r.Number == n }) {
			t.Fatalf("no fault has the number %d: see internal/faults", n)
		}
		t.Attr(Attr, strconv.Itoa(n))
	}
}
