package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// handoffRow is one lock that many clients want.
type handoffRow struct {
	Library   string        `json:"library"`
	Hold      time.Duration `json:"hold_ns"`
	PerSecond series        `json:"holds_per_s"`
	// The next holder has it, counted from the call of the release before, and
	// from its return; only where the next is another and waited already.
	FromCall50   series `json:"handoff_from_call_p50_us"`
	FromCall99   series `json:"handoff_from_call_p99_us"`
	FromReturn50 series `json:"handoff_from_return_p50_us"`
	FromReturn99 series `json:"handoff_from_return_p99_us"`
	// Passed is the part of all holds that went on so: where waiters only ask
	// now and then, most go to who had it before.
	Passed      series `json:"passed_to_another"`
	Held        series `json:"held_p50_us"`
	Commands    series `json:"commands_per_hold"`
	Smallest    series `json:"smallest_share"`
	Largest     series `json:"largest_share"`
	Fairness    series `json:"smallest_over_largest"`
	LongestWait series `json:"longest_wait_ms"`
	Inversions  series `json:"fifo_inversions"`
	ServerCPU   series `json:"server_cpu_us_per_hold"`
	ClientCPU   series `json:"client_cpu_us_per_hold"`
}

func runHandoff(ctx context.Context, b *bed) ([]*handoffRow, error) {
	type cell struct {
		v   variant
		row *handoffRow
	}
	var rows []*handoffRow
	levels := make([][]cell, len(b.Holds))
	for i, hold := range b.Holds {
		for _, v := range in(handoff) {
			row := &handoffRow{Library: v.name, Hold: hold}
			rows = append(rows, row)
			levels[i] = append(levels[i], cell{v, row})
		}
	}
	for round := range b.Rounds {
		for _, level := range levels {
			for _, c := range turned(level, round) {
				if err := c.row.measure(ctx, b, c.v); err != nil {
					return nil, fmt.Errorf("%s, holds of %s: %w", c.v.name, c.row.Hold, err)
				}
				b.say("handoff, round %d of %d, %s, holds of %s: %.0f holds/s, shares %.0f to %.0f, hand-off p50 %.0f µs",
					round+1, b.Rounds, c.v.name, c.row.Hold, c.row.PerSecond[round],
					c.row.Smallest[round], c.row.Largest[round], c.row.FromCall50[round])
			}
		}
	}
	return rows, nil
}

// measure runs one cell once and adds what it shows.
func (row *handoffRow) measure(ctx context.Context, b *bed, v variant) (err error) {
	c, err := gather(ctx, b, v, row.Hold)
	if err != nil {
		return err
	}
	// Shares are counted in whole turns: fewer than 25 would not show 0.95.
	w, err := watch(ctx, b, c, max(b.Contended, 25*time.Duration(b.Waiters)*row.Hold))
	log, cpu, ended := c.end()
	if err := errors.Join(err, ended); err != nil {
		return err
	}
	f, err := log.facts(time.Duration(w.before.at.UnixNano()), time.Duration(w.after.at.UnixNano()))
	if err != nil {
		return err
	}
	cost := w.after.since(w.before)
	// The waiters tell what they used from their first hold to their last.
	cost.client = cpu * time.Duration(f.holds) / time.Duration(len(log.holds))
	row.add(f, cost)
	sent := 0
	for _, command := range v.sends {
		sent += w.callsAfter[command] - w.callsBefore[command]
	}
	row.Commands.add(float64(sent) / float64(f.holds))
	return nil
}

// window is the time of a cell that counts.
type window struct {
	before, after           usage
	callsBefore, callsAfter map[string]int
}

// watch lets the crowd run for the warm-up and the time that counts.
func watch(ctx context.Context, b *bed, c *crowd, counts time.Duration) (w window, err error) {
	rest := func(d time.Duration) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.gaveUp:
			return errors.New("a waiter gave up")
		case <-time.After(d):
			return nil
		}
	}
	if err := rest(b.Warmup); err != nil {
		return w, err
	}
	runtime.GC()
	if w.callsBefore, err = b.calls(ctx); err != nil {
		return w, err
	}
	if w.before, err = b.usage(ctx); err != nil {
		return w, err
	}
	if err := rest(counts); err != nil {
		return w, err
	}
	if w.after, err = b.usage(ctx); err != nil {
		return w, err
	}
	w.callsAfter, err = b.calls(ctx)
	return w, err
}

func (row *handoffRow) add(f facts, cost spent) {
	n := float64(f.holds)
	row.PerSecond.add(n / cost.took.Seconds())
	row.FromCall50.add(micros(quantile(f.fromCall, 0.50)))
	row.FromCall99.add(micros(quantile(f.fromCall, 0.99)))
	row.FromReturn50.add(micros(quantile(f.fromReturn, 0.50)))
	row.FromReturn99.add(micros(quantile(f.fromReturn, 0.99)))
	row.Passed.add(float64(len(f.fromCall)) / max(n, 1))
	row.Held.add(micros(quantile(f.held, 0.50)))
	row.Smallest.add(float64(f.smallest))
	row.Largest.add(float64(f.largest))
	row.Fairness.add(float64(f.smallest) / float64(max(f.largest, 1)))
	row.LongestWait.add(millis(f.longest))
	row.Inversions.add(float64(f.inversions))
	row.ServerCPU.add(micros(cost.server) / max(n, 1))
	row.ClientCPU.add(micros(cost.client) / max(n, 1))
}
