package main

import (
	"fmt"

	"github.com/locksteward/locksteward/bench/results"
)

// promise is a figure that the library has to reach.
type promise struct {
	What string `json:"what"`
	Want string `json:"want"`
	Got  string `json:"got"`
	Kept bool   `json:"kept"`
}

// judge compares the report with what the library promises. What was not
// measured is not in the list.
func judge(r *report) []promise {
	var list []promise
	atLeast := func(what string, want float64, got series) {
		if len(got) > 0 {
			list = append(list, promise{
				what, fmt.Sprintf("≥ %.2f", want),
				fmt.Sprintf("%.2f (%.2f to %.2f)", got.median(), got.min(), got.max()), got.median() >= want,
			})
		}
	}
	atMost := func(what, unit string, want, got float64) {
		list = append(list, promise{what, "≤ " + results.Number(want) + unit, results.Number(got) + unit, got <= want})
	}

	for _, name := range []string{plainName, pipelinedName, fairName} {
		if row := r.costsOf(name); row != nil {
			// Heartbeats fall into a pass as well, one every 5 s.
			atMost(name+": commands sent per pair", "", 2.01, row.Commands.median())
			if bare := r.costsOf(bareName); bare != nil {
				atMost(name+": allocations per pair above "+bareName, "", 20, row.Allocs.median()-bare.Allocs.median())
			}
		}
	}
	ratio := func(name, other string, goroutines int) series {
		a, b := r.pairsOf(name, goroutines), r.pairsOf(other, goroutines)
		if a == nil || b == nil {
			return nil
		}
		return a.PerSecond.over(b.PerSecond)
	}
	atLeast(plainName+" / redsync, 64 goroutines", 1, ratio(plainName, redsyncName, 64))
	atLeast(pipelinedName+" / redsync, 64 goroutines (aim 2)", 1.7, ratio(pipelinedName, redsyncName, 64))
	atLeast(pipelinedName+" / rueidislock, 64 goroutines (aim)", 1, ratio(pipelinedName, rueidisName, 64))
	atLeast(plainName+" / redislock, 1 goroutine", 0.85, ratio(plainName, redislockName, 1))
	atLeast(pipelinedName+" / redislock, 1 goroutine", 0.85, ratio(pipelinedName, redislockName, 1))

	if row := r.handoffOf(fairName); row != nil {
		atLeast(fairName+": smallest share / largest", 0.9, row.Fairness)
		atMost(fairName+": FIFO inversions in the worst round", "", 0, row.Inversions.max())
		atMost(fairName+": hand-off p50 from the call of release", " µs", 300, row.FromCall50.median())
		atMost(fairName+": longest wait / waiters × (hold + hand-off)", "", 1.3, row.LongestWait.over(row.turns(r.Settings)).median())
	}
	for _, row := range r.Dead {
		if row.Library == fairName && len(row.Each) > 0 {
			atMost(fmt.Sprintf("%s: each of %d dead waiters costs", fairName, row.Dead), " ms", 200, row.Each.median())
		}
	}
	for _, row := range r.Renewal {
		if row.Library != rueidisName && r.Settings.Held == 10_000 && r.Settings.TTL.Seconds() == 30 {
			atMost(row.Library+": 10,000 locks renewed, client CPU", " % of a core", 10, row.ClientCPU.median())
		}
	}
	return list
}

// turns returns for each round how long it takes until everybody had the lock
// once, in ms: as long as one waits who is served in turn.
func (row *handoffRow) turns(s settings) series {
	var t series
	for i := range row.Held {
		t.add(float64(s.Waiters) * (row.Held[i] + row.FromCall50[i]) / 1000)
	}
	return t
}
