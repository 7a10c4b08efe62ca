package main

import (
	"fmt"
	"slices"
	"time"
)

// slack is how much earlier one must have begun to wait than another to be sure
// that it also came earlier at the server; the clocks are read in the client,
// before a round trip.
const slack = time.Millisecond

// hold is one turn of a waiter, in time since a common base.
type hold struct {
	waiter                                int
	wanted, acquired, releasing, released time.Duration
}

// holdLog is all turns in the order in which they were acquired, and the waits
// that were cut off.
type holdLog struct {
	holds   []hold
	cut     []time.Duration // when they began
	waiters int
}

// facts are what a log says of the turns acquired in a window of time.
type facts struct {
	holds, smallest, largest   int
	fromCall, fromReturn, held []time.Duration
	longest                    time.Duration
	// inversions are turns taken while another had waited longer, by more than
	// the slack.
	inversions int
}

// facts fails when two had the lock at a time, and when nobody had it.
func (l *holdLog) facts(from, to time.Duration) (facts, error) {
	var f facts
	shares := make([]int, l.waiters)
	earliest := l.earliestAfter()
	for i, h := range l.holds {
		// Behind the window the crowd is sent home, in a hurry.
		if h.acquired >= to {
			break
		}
		if i > 0 && h.acquired < l.holds[i-1].releasing {
			return f, fmt.Errorf("two held the lock: waiter %d took it %s before waiter %d released it",
				h.waiter, l.holds[i-1].releasing-h.acquired, l.holds[i-1].waiter)
		}
		if h.acquired < from {
			continue
		}
		f.holds++
		shares[h.waiter]++
		f.held = append(f.held, h.releasing-h.acquired)
		f.longest = max(f.longest, h.acquired-h.wanted)
		if earliest[i]+slack < h.wanted {
			f.inversions++
		}
		if i == 0 {
			continue
		}
		if last := l.holds[i-1]; last.waiter != h.waiter && h.wanted <= last.releasing {
			f.fromCall = append(f.fromCall, h.acquired-last.releasing)
			f.fromReturn = append(f.fromReturn, h.acquired-last.released)
		}
	}
	for _, began := range l.cut {
		f.longest = max(f.longest, to-began)
	}
	if f.holds == 0 {
		return f, fmt.Errorf("nobody got the lock within %s", to-from)
	}
	f.smallest, f.largest = slices.Min(shares), slices.Max(shares)
	return f, nil
}

// earliestAfter returns for each turn when the longest of those waits began that
// were served later or never.
func (l *holdLog) earliestAfter() []time.Duration {
	earliest := time.Duration(1<<63 - 1 - slack)
	for _, began := range l.cut {
		earliest = min(earliest, began)
	}
	after := make([]time.Duration, len(l.holds))
	for i, h := range slices.Backward(l.holds) {
		after[i] = earliest
		earliest = min(earliest, h.wanted)
	}
	return after
}
