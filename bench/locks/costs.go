package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// costsRow is what one pair without a rival costs at one goroutine.
type costsRow struct {
	Library string `json:"library"`
	// Sent are the commands that the client sent, by name; Inside those that the
	// server executed for scripts on top.
	Sent     map[string]float64 `json:"sent_per_pair"`
	Commands series             `json:"commands_per_pair"`
	Inside   series             `json:"inside_scripts_per_pair"`
	Allocs   series             `json:"allocs_per_pair"`
	Bytes    series             `json:"bytes_per_pair"`
}

func runCosts(ctx context.Context, b *bed) ([]*costsRow, error) {
	contestants := in(costs)
	rows := make([]*costsRow, len(contestants))
	order := make([]int, len(contestants))
	for i, v := range contestants {
		rows[i] = &costsRow{Library: v.name, Sent: map[string]float64{}}
		order[i] = i
	}
	for round := range b.Rounds {
		for _, i := range turned(order, round) {
			if err := rows[i].measure(ctx, b, contestants[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", contestants[i].name, err)
			}
			b.say("costs, round %d of %d, %s: %.2f commands, %.1f allocations a pair",
				round+1, b.Rounds, contestants[i].name, rows[i].Commands[round], rows[i].Allocs[round])
		}
	}
	return rows, nil
}

// measure counts allocations first, and commands in a second pass.
func (row *costsRow) measure(ctx context.Context, b *bed, v variant) (err error) {
	l, err := b.open(v)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	name := b.name()
	pairs := func(n int) error {
		for range n {
			h, err := l.Acquire(ctx, name)
			if err != nil {
				return err
			}
			if err := h.Release(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	if err := pairs(b.CostPairs/10 + 1); err != nil {
		return err
	}
	if err := row.allocations(b.CostPairs, pairs); err != nil {
		return err
	}
	return row.commands(ctx, b, b.CostPairs, pairs)
}

// allocations is testing.AllocsPerRun with fractions and bytes: of the whole
// process, on one core.
func (row *costsRow) allocations(n int, pairs func(int) error) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := pairs(n); err != nil {
		return err
	}
	runtime.ReadMemStats(&after)
	row.Allocs.add(float64(after.Mallocs-before.Mallocs) / float64(n))
	row.Bytes.add(float64(after.TotalAlloc-before.TotalAlloc) / float64(n))
	return nil
}

// commands counts what is sent for n pairs. Heartbeats that fall into them count
// with them.
func (row *costsRow) commands(ctx context.Context, b *bed, n int, pairs func(int) error) (err error) {
	s, err := newSpy(ctx, b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := pairs(n); err != nil {
		return err
	}
	sent, inside, err := s.count(ctx)
	if err != nil {
		return err
	}
	total := 0
	for command, calls := range sent {
		total += calls
		// The mean over all rounds.
		row.Sent[command] += float64(calls) / float64(n) / float64(b.Rounds)
	}
	row.Commands.add(float64(total) / float64(n))
	row.Inside.add(float64(inside) / float64(n))
	return nil
}
