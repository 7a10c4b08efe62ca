package testredis

import (
	"testing"
	"time"
)

// Eventually waits until cond is true, asking every few milliseconds, and fails
// the test with msg when it is not true within the given time. cond runs on
// the goroutine of the test, at least twice.
func Eventually(t testing.TB, within time.Duration, cond func() bool, msg string) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	pause := 2 * time.Millisecond
	for !cond() {
		tick := time.NewTimer(pause)
		select {
		case <-deadline.C:
			tick.Stop()
			// A machine under load may have slept through the last chance.
			if cond() {
				return
			}
			t.Fatalf("not within %s: %s", within, msg)
		case <-tick.C:
		}
		pause = min(pause*3/2, 50*time.Millisecond)
	}
}
