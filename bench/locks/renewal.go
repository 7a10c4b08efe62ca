package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// renewalRow is a client that holds many locks and does nothing else.
type renewalRow struct {
	Library   string `json:"library"`
	Held      int    `json:"held"`
	ClientCPU series `json:"client_cpu_percent_of_one_core"`
	ServerCPU series `json:"server_cpu_percent_of_one_core"`
	PerSecond series `json:"renewals_per_s"`
	// Late is how much later than a third of the lease after the renewal before
	// a lock was renewed; empty for a library that does not tell.
	Late99   series `json:"late_p99_ms"`
	LateMost series `json:"late_most_ms"`
}

func runRenewal(ctx context.Context, b *bed) ([]*renewalRow, error) {
	contestants := in(renewal)
	rows := make([]*renewalRow, len(contestants))
	order := make([]int, len(contestants))
	for i, v := range contestants {
		rows[i] = &renewalRow{Library: v.name, Held: b.Held}
		order[i] = i
	}
	for round := range b.RenewRounds {
		for _, i := range turned(order, round) {
			if err := rows[i].measure(ctx, b, contestants[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", contestants[i].name, err)
			}
			b.say("renewal, round %d of %d, %s: %.1f %% of a core, %.0f renewals/s",
				round+1, b.RenewRounds, contestants[i].name, rows[i].ClientCPU[round], rows[i].PerSecond[round])
		}
	}
	return rows, nil
}

// measure runs one cell once and adds what it shows. Nothing is due in the
// first third of the lease, so that is left out.
func (row *renewalRow) measure(ctx context.Context, b *bed, v variant) (err error) {
	l, err := b.open(v)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	h := &hoard{prefix: b.name() + ":", list: make([]held, b.Held)}
	due := b.TTL / 3
	clock := newRenewals(b.Held, due)
	w, tells := l.(watched)
	if tells {
		stop := w.watch(func(name string) { clock.renewed(h.index(name)) })
		defer stop()
	}
	if err := h.each(func(i int) (err error) {
		h.list[i], err = l.Acquire(ctx, h.name(i))
		clock.renewed(i)
		return err
	}); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, h.each(func(i int) error { return h.list[i].Release(context.WithoutCancel(ctx)) }))
	}()
	if err := rest(ctx, due); err != nil {
		return err
	}
	runtime.GC()
	calls, err := b.calls(ctx)
	if err != nil {
		return err
	}
	before, err := b.usage(ctx)
	if err != nil {
		return err
	}
	if err := rest(ctx, b.RenewWindow); err != nil {
		return err
	}
	after, err := b.usage(ctx)
	if err != nil {
		return err
	}
	more, err := b.calls(ctx)
	if err != nil {
		return err
	}
	cost := after.since(before)
	row.ClientCPU.add(100 * cost.client.Seconds() / cost.took.Seconds())
	row.ServerCPU.add(100 * cost.server.Seconds() / cost.took.Seconds())
	row.PerSecond.add(float64(more["evalsha"]-calls["evalsha"]) / cost.took.Seconds())
	if late := clock.late(); tells {
		row.Late99.add(millis(quantile(late, 0.99)))
		row.LateMost.add(millis(quantile(late, 1)))
	}
	return h.standing(ctx, b, l)
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// hoard is many locks that are held by one client.
type hoard struct {
	prefix string
	list   []held
}

func (h *hoard) name(i int) string { return h.prefix + strconv.Itoa(i) }

func (h *hoard) index(name string) int {
	i, err := strconv.Atoi(strings.TrimPrefix(name, h.prefix))
	if err != nil || i >= len(h.list) {
		return -1
	}
	return i
}

// each calls f for all locks, 64 at a time.
func (h *hoard) each(f func(i int) error) error {
	var wg sync.WaitGroup
	var next atomic.Int64
	errs := make([]error, 64)
	for g := range errs {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(h.list) {
					return
				}
				if errs[g] = f(i); errs[g] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// standing fails when a lock is gone that nobody released.
func (h *hoard) standing(ctx context.Context, b *bed, l locker) error {
	const batch = 1000
	var n int64
	for from := 0; from < len(h.list); from += batch {
		var keys []string
		for i := from; i < min(from+batch, len(h.list)); i++ {
			keys = append(keys, l.Key(h.name(i)))
		}
		found, err := b.admin.Exists(ctx, keys...).Result()
		if err != nil {
			return fmt.Errorf("count locks: %w", err)
		}
		n += found
	}
	if n != int64(len(h.list)) {
		return fmt.Errorf("%d of %d held locks are gone", int64(len(h.list))-n, len(h.list))
	}
	return nil
}

// renewals notes how late each is. It does next to nothing, so that the library
// is not charged for being watched.
type renewals struct {
	due  time.Duration
	base time.Time
	last []atomic.Int64 // since base; 0 before it was taken

	mu   sync.Mutex
	list []time.Duration
}

func newRenewals(n int, due time.Duration) *renewals {
	return &renewals{due: due, base: time.Now(), last: make([]atomic.Int64, n), list: make([]time.Duration, 0, 4*n)}
}

func (r *renewals) renewed(i int) {
	if i < 0 {
		return
	}
	now := int64(time.Since(r.base))
	if last := r.last[i].Swap(now); last != 0 {
		r.mu.Lock()
		r.list = append(r.list, max(time.Duration(now-last)-r.due, 0))
		r.mu.Unlock()
	}
}

// late returns a sorted copy of what was noted, and of what is overdue now.
func (r *renewals) late() []time.Duration {
	now := time.Since(r.base)
	r.mu.Lock()
	defer r.mu.Unlock()
	list := append([]time.Duration(nil), r.list...)
	for i := range r.last {
		if over := now - time.Duration(r.last[i].Load()) - r.due; over > 0 {
			list = append(list, over)
		}
	}
	slices.Sort(list)
	return list
}
