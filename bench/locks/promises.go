package main

import (
	"fmt"
	"time"

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

	if row := r.costsOf(plainName); row != nil {
		// Heartbeats fall into a pass as well, one every 5 s.
		atMost(plainName+": commands sent per pair", "", 2.01, row.Commands.median())
		atMost(plainName+": allocations per pair", "", 16, row.Allocs.median())
		atMost(plainName+": bytes allocated per pair", "", 1536, row.Bytes.median())
	}
	ratio := func(name, other string, goroutines int) series {
		a, b := r.pairsOf(name, goroutines), r.pairsOf(other, goroutines)
		if a == nil || b == nil {
			return nil
		}
		return a.PerSecond.over(b.PerSecond)
	}
	for _, p := range []struct {
		goroutines int
		want       float64
	}{{1, 0.95}, {16, 0.9}, {64, 1.1}} {
		atLeast(fmt.Sprintf("%s / %s, %d goroutines", plainName, bareName, p.goroutines), p.want, ratio(plainName, bareName, p.goroutines))
		if peer := r.bestPeer(p.goroutines); peer != nil {
			atLeast(fmt.Sprintf("%s / %s, %d goroutines (aim)", plainName, peer.Library, p.goroutines), 1, ratio(plainName, peer.Library, p.goroutines))
		}
	}

	for _, row := range r.Handoff {
		if row.Library != plainName {
			continue
		}
		name := fmt.Sprintf("%s, holds of %s: ", plainName, row.Hold)
		commands := 3.0
		if row.Hold >= 10*time.Millisecond {
			commands = 4
		}
		atLeast(name+"smallest share / largest", 0.95, row.Fairness)
		atMost(name+"FIFO inversions in the worst round", "", 0, row.Inversions.max())
		atMost(name+"commands sent per hold", "", commands, row.Commands.median())
		if bare := r.pairsOf(bareName, 1); bare != nil {
			// A pair is two round trips of one script.
			atMost(name+"hand-off p50 / one bare script round trip", "", 2.5, row.FromCall50.over(bare.P50).median()*2)
		}
		atMost(name+"longest wait / waiters × (hold + hand-off)", "", 1.15, row.LongestWait.over(row.turns(r.Settings)).median())
	}
	for _, row := range r.Dead {
		if row.Library == plainName && len(row.Each) > 0 {
			atMost(fmt.Sprintf("%s: each of %d dead waiters costs", plainName, row.Dead), " ms", 150, row.Each.median())
		}
	}
	for _, row := range r.Renewal {
		if row.Library != rueidisName && r.Settings.Held == 10_000 && r.Settings.TTL.Seconds() == 30 {
			atMost(row.Library+": 10,000 locks renewed, client CPU", " % of a core", 3, row.ClientCPU.median())
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
