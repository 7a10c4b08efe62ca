// Package retry has the pauses between attempts.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff returns the pause after the n-th failure in a row, from 0: it doubles from low
// to high, less up to half of it. It is safe for concurrent use.
func Backoff(n int, low, high time.Duration) time.Duration {
	d := high
	if n < 10 {
		d = min(high, low<<n)
	}
	return d - rand.N(d/2+1)
}

// Pause waits for d, or less if ctx ends; it says whether d has passed.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
