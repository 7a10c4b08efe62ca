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

// Portions has ask ask for list, at most size at a time and with pace between, and again,
// with growing pauses, for those that ask returns: they got no answer. Those behind a
// portion without any answer would wait in vain, too. It ends with ctx, or before an
// attempt that proceed does not allow.
func Portions[T any](ctx context.Context, list []T, size int, pace time.Duration, ask func(context.Context, []T) (silent []T), proceed func() bool) {
	for n := 0; ; n++ {
		var open []T
		for len(list) > 0 {
			portion := list[:min(len(list), size)]
			list = list[len(portion):]
			silent := ask(ctx, portion)
			open = append(open, silent...)
			if len(silent) == len(portion) {
				open = append(open, list...)
				break
			}
			if len(list) > 0 && !Pause(ctx, pace) {
				return
			}
		}
		if list = open; len(list) == 0 || !Pause(ctx, Backoff(n, 100*time.Millisecond, time.Second)) || !proceed() {
			return
		}
	}
}
