package store_test

import (
	"testing"
	"time"
)

// BenchmarkLoadSession is what each request of a browser costs beside its answer.
func BenchmarkLoadSession(b *testing.B) {
	s := openFile(b)
	if err := s.SaveSession(b.Context(), aSession("d", time.Now())); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.LoadSession(b.Context(), "d"); err != nil {
			b.Fatal(err)
		}
	}
}
