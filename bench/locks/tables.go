package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/locksteward/locksteward/bench/results"
)

// tables are all tables of a report, the promises first.
func tables(r *report) []results.Table {
	var list []results.Table
	for _, t := range []results.Table{
		promiseTable(r), pairsTable(r), costsTable(r), handoffTable(r), deadTable(r), renewalTable(r), contestantTable(r),
	} {
		if len(t.Rows) > 0 {
			list = append(list, t)
		}
	}
	return list
}

func promiseTable(r *report) results.Table {
	t := results.Table{Title: "Promises", Header: []string{"What", "wanted", "measured", "kept"}}
	for _, p := range r.Promises {
		kept := "yes"
		if !p.Kept {
			kept = "NO"
		}
		t.Rows = append(t.Rows, []string{p.What, p.Want, p.Got, kept})
	}
	t.Note = "Ratios are taken round by round; the median counts."
	return t
}

func pairsTable(r *report) results.Table {
	t := results.Table{
		Title: "Acquire and release without a rival",
		Header: []string{
			"Library", "goroutines", "pairs/s", "least", "most", "× bare calls", "× best peer", "p50 µs", "p99 µs",
			"server CPU µs/pair", "client CPU µs/pair", "allocs/pair", "bytes/pair",
		},
		Note: fmt.Sprintf("Each goroutine has a key of its own. Medians of %d rounds of %s each; least and most are whole rounds.",
			r.Settings.Rounds, r.Settings.Duration),
	}
	for _, row := range r.Pairs {
		times := func(other *pairsRow) string {
			if other == nil {
				return "–"
			}
			return results.Number(row.PerSecond.over(other.PerSecond).median())
		}
		t.Rows = append(t.Rows, []string{
			row.Library, fmt.Sprint(row.Goroutines),
			results.Number(row.PerSecond.median()), results.Number(row.PerSecond.min()), results.Number(row.PerSecond.max()),
			times(r.pairsOf(bareName, row.Goroutines)), times(r.bestPeer(row.Goroutines)),
			results.Number(row.P50.median()), results.Number(row.P99.median()),
			results.Number(row.ServerCPU.median()), results.Number(row.ClientCPU.median()),
			results.Number(row.Allocs.median()), results.Number(row.Bytes.median()),
		})
	}
	return t
}

func costsTable(r *report) results.Table {
	t := results.Table{
		Title: "Costs of one pair",
		Header: []string{
			"Library", "commands sent", "which", "executed inside scripts", "allocations", "above bare calls", "bytes",
		},
		Note: fmt.Sprintf("One goroutine, medians of %d rounds of %d pairs. Commands are counted by MONITOR, which tells those of "+
			"clients from those of scripts, in a pass that is not timed. Allocations are those of the whole process.",
			r.Settings.Rounds, r.Settings.CostPairs),
	}
	bare := r.costsOf(bareName)
	for _, row := range r.Costs {
		var which []string
		for _, command := range slices.Sorted(maps.Keys(row.Sent)) {
			if calls := row.Sent[command]; calls >= 0.01 {
				which = append(which, fmt.Sprintf("%s %.2f", command, calls))
			}
		}
		above := "–"
		if bare != nil {
			above = results.Number(row.Allocs.median() - bare.Allocs.median())
		}
		t.Rows = append(t.Rows, []string{
			row.Library, results.Number(row.Commands.median()), strings.Join(which, ", "), results.Number(row.Inside.median()),
			results.Number(row.Allocs.median()), above, results.Number(row.Bytes.median()),
		})
	}
	return t
}

func handoffTable(r *report) results.Table {
	s := r.Settings
	t := results.Table{
		Title: fmt.Sprintf("%d waiters for one lock", s.Waiters),
		Header: []string{
			"Library", "hold", "holds/s", "hand-off p50 µs", "p99 µs", "p50 µs from return", "p99 µs from return",
			"passed on", "smallest share", "largest", "ratio", "longest wait ms", "inversions",
			"held p50 µs", "commands/hold", "server CPU µs/hold", "client CPU µs/hold",
		},
		Note: fmt.Sprintf("Each waiter is a process of its own and comes again at once; it holds by the clock, not by a timer. Medians of %d "+
			"rounds of %s, or of 25 turns of all where that is longer; the longest wait is that of all rounds, waits that the end cut off included, and so are the inversions. "+
			"Hand-off: from the call of a release (or its return, which may come after the hand-off) to the return of the next "+
			"holder's acquire, where that is another client which waited already; so many holds of all are passed on. Share: holds of a waiter in a round. Inversion: a "+
			"hold taken while another had waited for at least %s longer.", s.Rounds, s.Contended, slack),
	}
	for _, row := range r.Handoff {
		t.Rows = append(t.Rows, []string{
			row.Library, row.Hold.String(), results.Number(row.PerSecond.median()),
			results.Number(row.FromCall50.median()), results.Number(row.FromCall99.median()),
			results.Number(row.FromReturn50.median()), results.Number(row.FromReturn99.median()),
			fmt.Sprintf("%.0f %%", 100*row.Passed.median()),
			results.Whole(row.Smallest.median()), results.Whole(row.Largest.median()), results.Number(row.Fairness.median()),
			results.Number(row.LongestWait.max()), results.Whole(row.Inversions.max()),
			results.Number(row.Held.median()), results.Number(row.Commands.median()),
			results.Number(row.ServerCPU.median()), results.Number(row.ClientCPU.median()),
		})
	}
	return t
}

func deadTable(r *report) results.Table {
	t := results.Table{
		Title:  "A live waiter behind dead ones",
		Header: []string{"Library", "dead", "wait ms", "least", "most", "each dead one adds ms"},
		Note: fmt.Sprintf("Processes wait for a lock, then a live waiter does; they are killed, and the lock is released at once. "+
			"Wait: from the call of the release to the return of the live waiter's acquire. Medians of %d rounds.", r.Settings.Rounds),
	}
	for _, row := range r.Dead {
		each := "–"
		if len(row.Each) > 0 {
			each = results.Number(row.Each.median())
		}
		t.Rows = append(t.Rows, []string{
			row.Library, fmt.Sprint(row.Dead), results.Number(row.Wait.median()), results.Number(row.Wait.min()), results.Number(row.Wait.max()), each,
		})
	}
	return t
}

func renewalTable(r *report) results.Table {
	s := r.Settings
	t := results.Table{
		Title: "Holding many locks",
		Header: []string{
			"Library", "locks", "client CPU % of a core", "server CPU % of a core", "renewals/s", "late p99 ms", "late at most ms",
		},
		Note: fmt.Sprintf("One client, leases of %s, renewed every third of that; watched for %s, %d round(s). Client CPU is that of the "+
			"whole process, which does nothing else. Late: how much more than a third of the lease lay between two renewals of a lock.",
			s.TTL, s.RenewWindow, s.RenewRounds),
	}
	for _, row := range r.Renewal {
		late, most := "–", "–"
		if len(row.Late99) > 0 {
			late, most = results.Number(row.Late99.median()), results.Number(row.LateMost.max())
		}
		t.Rows = append(t.Rows, []string{
			row.Library, results.Number(float64(row.Held)), results.Number(row.ClientCPU.median()), results.Number(row.ServerCPU.median()),
			results.Number(row.PerSecond.median()), late, most,
		})
	}
	return t
}

func contestantTable(r *report) results.Table {
	t := results.Table{Title: "Settings", Header: []string{"Library", "settings"}}
	for _, v := range in(r.Settings.in) {
		t.Rows = append(t.Rows, []string{v.name, v.about})
	}
	pool := "default, 10 connections per core"
	if r.Settings.Pool > 0 {
		pool = fmt.Sprintf("%d connections", r.Settings.Pool)
	}
	t.Note = fmt.Sprintf("Leases of %s throughout. Pool of every go-redis client: %s.", r.Settings.TTL, pool)
	return t
}
