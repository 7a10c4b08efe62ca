package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// pairsRow is acquire and release without a rival, at a number of goroutines.
type pairsRow struct {
	Library    string `json:"library"`
	Goroutines int    `json:"goroutines"`
	PerSecond  series `json:"pairs_per_s"`
	P50        series `json:"p50_us"`
	P99        series `json:"p99_us"`
	ServerCPU  series `json:"server_cpu_us_per_pair"`
	ClientCPU  series `json:"client_cpu_us_per_pair"`
	Allocs     series `json:"allocs_per_pair"`
	Bytes      series `json:"bytes_per_pair"`
}

func runPairs(ctx context.Context, b *bed) ([]*pairsRow, error) {
	type cell struct {
		v   variant
		row *pairsRow
	}
	var rows []*pairsRow
	levels := make([][]cell, len(b.Goroutines))
	for i, n := range b.Goroutines {
		for _, v := range in(pairs) {
			row := &pairsRow{Library: v.name, Goroutines: n}
			rows = append(rows, row)
			levels[i] = append(levels[i], cell{v, row})
		}
	}
	for round := range b.Rounds {
		for _, level := range levels {
			for _, c := range turned(level, round) {
				if err := c.row.measure(ctx, b, c.v); err != nil {
					return nil, fmt.Errorf("%s, %d goroutines: %w", c.v.name, c.row.Goroutines, err)
				}
				b.say("pairs, round %d of %d, %d goroutines, %s: %.0f pairs/s",
					round+1, b.Rounds, c.row.Goroutines, c.v.name, c.row.PerSecond[round])
			}
		}
	}
	return rows, nil
}

// measure runs one cell once and adds what it shows.
func (row *pairsRow) measure(ctx context.Context, b *bed, v variant) (err error) {
	l, err := b.open(v)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	p := newPacers(b, l, row.Goroutines)
	if _, err := p.run(ctx, b.Warmup); err != nil {
		return err
	}
	p.forget()
	runtime.GC()
	before, err := b.usage(ctx)
	if err != nil {
		return err
	}
	took, err := p.run(ctx, b.Duration)
	if err != nil {
		return err
	}
	after, err := b.usage(ctx)
	if err != nil {
		return err
	}
	all, cost := p.merged(), after.since(before)
	n := float64(all.n)
	row.PerSecond.add(n / took.Seconds())
	row.P50.add(micros(all.quantile(0.50)))
	row.P99.add(micros(all.quantile(0.99)))
	row.ServerCPU.add(micros(cost.server) / n)
	row.ClientCPU.add(micros(cost.client) / n)
	row.Allocs.add(cost.mallocs / n)
	row.Bytes.add(cost.bytes / n)
	return nil
}

// pacers are goroutines that acquire and release, each a key of its own.
type pacers struct {
	locker locker
	names  []string
	times  []histogram
}

func newPacers(b *bed, l locker, n int) *pacers {
	p := &pacers{locker: l, times: make([]histogram, n)}
	for range n {
		p.names = append(p.names, b.name())
	}
	return p
}

func (p *pacers) forget() { clear(p.times) }

func (p *pacers) merged() *histogram {
	all := &histogram{}
	for i := range p.times {
		all.merge(&p.times[i])
	}
	return all
}

// run lets all goroutines start together, for at least one pair each, and
// returns how long it took until the last was done.
func (p *pacers) run(ctx context.Context, d time.Duration) (time.Duration, error) {
	var wg sync.WaitGroup
	errs := make([]error, len(p.names))
	start := make(chan struct{})
	var end time.Time
	for i := range p.names {
		wg.Go(func() {
			<-start
			errs[i] = p.pace(ctx, i, end)
		})
	}
	began := time.Now()
	end = began.Add(d)
	close(start)
	wg.Wait()
	return time.Since(began), errors.Join(errs...)
}

func (p *pacers) pace(ctx context.Context, i int, end time.Time) error {
	for at := time.Now(); ; {
		h, err := p.locker.Acquire(ctx, p.names[i])
		if err != nil {
			return err
		}
		if err := h.Release(ctx); err != nil {
			return err
		}
		now := time.Now()
		p.times[i].add(now.Sub(at))
		if at = now; !now.Before(end) {
			return nil
		}
	}
}
