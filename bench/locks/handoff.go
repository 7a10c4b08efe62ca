package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// handoffRow is one lock that many clients want.
type handoffRow struct {
	Library   string `json:"library"`
	PerSecond series `json:"holds_per_s"`
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
	contestants := in(handoff)
	rows := make([]*handoffRow, len(contestants))
	order := make([]int, len(contestants))
	for i, v := range contestants {
		rows[i] = &handoffRow{Library: v.name}
		order[i] = i
	}
	for round := range b.Rounds {
		for _, i := range turned(order, round) {
			if err := rows[i].measure(ctx, b, contestants[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", contestants[i].name, err)
			}
			b.say("handoff, round %d of %d, %s: %.0f holds/s, shares %.0f to %.0f, hand-off p50 %.0f µs",
				round+1, b.Rounds, contestants[i].name, rows[i].PerSecond[round],
				rows[i].Smallest[round], rows[i].Largest[round], rows[i].FromCall50[round])
		}
	}
	return rows, nil
}

// measure runs one cell once and adds what it shows.
func (row *handoffRow) measure(ctx context.Context, b *bed, v variant) (err error) {
	clients, err := openMany(ctx, b, v, b.Waiters)
	if err != nil {
		return err
	}
	defer func() {
		for _, l := range clients {
			err = errors.Join(err, l.Close())
		}
	}()
	c := &crowd{name: b.name(), base: time.Now(), hold: b.Hold, waiters: make([]waiter, len(clients))}
	for i, l := range clients {
		c.waiters[i] = waiter{locker: l, holds: make([]hold, 0, 1<<14)}
	}
	crowded, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.run(crowded) }()
	w, err := watch(ctx, b, ended)
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		return err
	}
	f, err := c.log().facts(w.before.at.Sub(c.base), w.after.at.Sub(c.base))
	if err != nil {
		return err
	}
	row.add(f, w.after.since(w.before))
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
func watch(ctx context.Context, b *bed, ended chan error) (w window, err error) {
	rest := func(d time.Duration) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-ended:
			ended <- nil
			return fmt.Errorf("waiters gave up: %w", err)
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
	if err := rest(b.Contended); err != nil {
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

// openMany opens clients and lets each take a lock of its own, so that their
// connections stand.
func openMany(ctx context.Context, b *bed, v variant, n int) (list []locker, err error) {
	defer func() {
		if err != nil {
			for _, l := range list {
				err = errors.Join(err, l.Close())
			}
		}
	}()
	for range n {
		l, err := b.open(v)
		if err != nil {
			return list, err
		}
		list = append(list, l)
		h, err := l.Acquire(ctx, b.name())
		if err != nil {
			return list, err
		}
		if err := h.Release(ctx); err != nil {
			return list, err
		}
	}
	return list, nil
}

// crowd is clients that want one lock over and over.
type crowd struct {
	name    string
	base    time.Time
	hold    time.Duration
	waiters []waiter
}

type waiter struct {
	locker locker
	holds  []hold
	// waiting is when the wait began that the end of the crowd cut off.
	waiting time.Duration
	cut     bool
}

// run lasts until ctx ends and every holder has released.
func (c *crowd) run(ctx context.Context) error {
	var wg sync.WaitGroup
	errs := make([]error, len(c.waiters))
	for i := range c.waiters {
		wg.Go(func() { errs[i] = c.want(ctx, i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (c *crowd) want(ctx context.Context, i int) error {
	w := &c.waiters[i]
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for ctx.Err() == nil {
		wanted := time.Since(c.base)
		h, err := w.locker.Acquire(ctx, c.name)
		acquired := time.Since(c.base)
		if err != nil {
			if ctx.Err() == nil {
				return err
			}
			w.waiting, w.cut = wanted, true
			return nil
		}
		timer.Reset(c.hold)
		<-timer.C
		releasing := time.Since(c.base)
		// The end of the crowd is no reason to leave a lock behind.
		if err := h.Release(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		w.holds = append(w.holds, hold{i, wanted, acquired, releasing, time.Since(c.base)})
	}
	return nil
}
