package redis

import "time"

// runDelay is the longest for which one of our threads waited for a processor between two calls of [runDelays]: by as
// much at most what happened between them was late because of our own machine.
func runDelay(before, after map[string]time.Duration) time.Duration {
	var most time.Duration
	for thread, waited := range after {
		most = max(most, waited-before[thread])
	}
	return most
}
