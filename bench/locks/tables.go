package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// tables are all tables of a report, the promises first.
func tables(r *report) []table {
	var list []table
	for _, t := range []table{
		promiseTable(r), pairsTable(r), costsTable(r), handoffTable(r), deadTable(r), renewalTable(r), contestantTable(r),
	} {
		if len(t.rows) > 0 {
			list = append(list, t)
		}
	}
	return list
}

func promiseTable(r *report) table {
	t := table{title: "Promises", header: []string{"What", "wanted", "measured", "kept"}}
	for _, p := range r.Promises {
		kept := "yes"
		if !p.Kept {
			kept = "NO"
		}
		t.rows = append(t.rows, []string{p.What, p.Want, p.Got, kept})
	}
	t.note = "Ratios are taken round by round; the median counts."
	return t
}

func pairsTable(r *report) table {
	t := table{
		title: "Acquire and release without a rival",
		header: []string{
			"Library", "goroutines", "pairs/s", "least", "most", "× redsync", "p50 µs", "p99 µs",
			"server CPU µs/pair", "client CPU µs/pair", "allocs/pair", "bytes/pair",
		},
		note: fmt.Sprintf("Each goroutine has a key of its own. Medians of %d rounds of %s each; least and most are whole rounds.",
			r.Settings.Rounds, r.Settings.Duration),
	}
	for _, row := range r.Pairs {
		times := "–"
		if other := r.pairsOf(redsyncName, row.Goroutines); other != nil {
			times = number(row.PerSecond.over(other.PerSecond).median())
		}
		t.rows = append(t.rows, []string{
			row.Library, fmt.Sprint(row.Goroutines),
			number(row.PerSecond.median()), number(row.PerSecond.min()), number(row.PerSecond.max()), times,
			number(row.P50.median()), number(row.P99.median()),
			number(row.ServerCPU.median()), number(row.ClientCPU.median()),
			number(row.Allocs.median()), number(row.Bytes.median()),
		})
	}
	return t
}

func costsTable(r *report) table {
	t := table{
		title: "Costs of one pair",
		header: []string{
			"Library", "commands sent", "which", "executed inside scripts", "allocations", "above bare calls", "bytes",
		},
		note: fmt.Sprintf("One goroutine, medians of %d rounds of %d pairs. Commands are counted by MONITOR, which tells those of "+
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
			above = number(row.Allocs.median() - bare.Allocs.median())
		}
		t.rows = append(t.rows, []string{
			row.Library, number(row.Commands.median()), strings.Join(which, ", "), number(row.Inside.median()),
			number(row.Allocs.median()), above, number(row.Bytes.median()),
		})
	}
	return t
}

func handoffTable(r *report) table {
	s := r.Settings
	t := table{
		title: fmt.Sprintf("%d waiters for one lock", s.Waiters),
		header: []string{
			"Library", "holds/s", "hand-off p50 µs", "p99 µs", "p50 µs from return", "p99 µs from return",
			"passed on", "smallest share", "largest", "ratio", "longest wait ms", "inversions",
			"held p50 µs", "commands/hold", "server CPU µs/hold", "client CPU µs/hold",
		},
		note: fmt.Sprintf("Each waiter is a client of its own and comes again at once; it holds for %s by a timer. Medians of %d "+
			"rounds of %s; the longest wait is that of all rounds, waits that the end cut off included, and so are the inversions. "+
			"Hand-off: from the call of a release (or its return, which may come after the hand-off) to the return of the next "+
			"holder's acquire, where that is another client which waited already; so many holds of all are passed on. Share: holds of a waiter in a round. Inversion: a "+
			"hold taken while another had waited for at least %s longer.", s.Hold, s.Rounds, s.Contended, slack),
	}
	for _, row := range r.Handoff {
		t.rows = append(t.rows, []string{
			row.Library, number(row.PerSecond.median()),
			number(row.FromCall50.median()), number(row.FromCall99.median()),
			number(row.FromReturn50.median()), number(row.FromReturn99.median()),
			fmt.Sprintf("%.0f %%", 100*row.Passed.median()),
			whole(row.Smallest.median()), whole(row.Largest.median()), number(row.Fairness.median()),
			number(row.LongestWait.max()), whole(row.Inversions.max()),
			number(row.Held.median()), number(row.Commands.median()),
			number(row.ServerCPU.median()), number(row.ClientCPU.median()),
		})
	}
	return t
}

func deadTable(r *report) table {
	t := table{
		title:  "A live waiter behind dead ones",
		header: []string{"Library", "dead", "wait ms", "least", "most", "each dead one adds ms"},
		note: fmt.Sprintf("Processes wait for a lock, then a live waiter does; they are killed, and the lock is released at once. "+
			"Wait: from the call of the release to the return of the live waiter's acquire. Medians of %d rounds.", r.Settings.Rounds),
	}
	for _, row := range r.Dead {
		each := "–"
		if len(row.Each) > 0 {
			each = number(row.Each.median())
		}
		t.rows = append(t.rows, []string{
			row.Library, fmt.Sprint(row.Dead), number(row.Wait.median()), number(row.Wait.min()), number(row.Wait.max()), each,
		})
	}
	return t
}

func renewalTable(r *report) table {
	s := r.Settings
	t := table{
		title: "Holding many locks",
		header: []string{
			"Library", "locks", "client CPU % of a core", "server CPU % of a core", "renewals/s", "late p99 ms", "late at most ms",
		},
		note: fmt.Sprintf("One client, leases of %s, renewed every third of that; watched for %s, %d round(s). Client CPU is that of the "+
			"whole process, which does nothing else. Late: how much more than a third of the lease lay between two renewals of a lock.",
			s.TTL, s.RenewWindow, s.RenewRounds),
	}
	for _, row := range r.Renewal {
		late, most := "–", "–"
		if len(row.Late99) > 0 {
			late, most = number(row.Late99.median()), number(row.LateMost.max())
		}
		t.rows = append(t.rows, []string{
			row.Library, number(float64(row.Held)), number(row.ClientCPU.median()), number(row.ServerCPU.median()),
			number(row.PerSecond.median()), late, most,
		})
	}
	return t
}

func contestantTable(r *report) table {
	t := table{title: "Settings", header: []string{"Library", "settings"}}
	for _, v := range in(r.Settings.in) {
		t.rows = append(t.rows, []string{v.name, v.about})
	}
	pool := "default, 10 connections per core"
	if r.Settings.Pool > 0 {
		pool = fmt.Sprintf("%d connections", r.Settings.Pool)
	}
	t.note = fmt.Sprintf("Leases of %s throughout. Pool of every go-redis client: %s.", r.Settings.TTL, pool)
	return t
}
