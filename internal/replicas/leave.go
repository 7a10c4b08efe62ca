package replicas

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/store"
)

// leave drops all duties, while their leases are renewed, and tells the others.
func (k *Keeper) leave(ctx context.Context, tick *time.Ticker, lost bool) {
	k.mu.Lock()
	k.ending = true
	k.mu.Unlock()
	// The house last: it tells what the targets did at their end.
	for duty := range k.holding() {
		if duty != store.House {
			k.drop(ctx, duty, lost)
		}
	}
	k.awaitWork(ctx, tick)
	if !lost {
		k.closing(ctx)
	}
	k.drop(ctx, store.House, lost)
	k.awaitWork(ctx, tick)
	if err := k.store.Leave(ctx, k.Me().ID); err != nil {
		k.log.Warn("the other replicas are not told that this one ends: they wait for its lease", zap.Error(err))
	}
}

// closing takes the house if nobody has it: what this replica did is to be told and
// carried, and there may be no other one.
func (k *Keeper) closing(ctx context.Context) {
	k.mu.Lock()
	_, mine := k.held[store.House]
	able := slices.ContainsFunc(k.duties, func(d Duty) bool { return d.Name == store.House })
	k.mu.Unlock()
	if mine || !able {
		return
	}
	asked := time.Now()
	lease, err := k.store.AcquireLease(ctx, store.House, k.me.ID, k.me.Address, k.ttl)
	if err != nil {
		return // another one has it, or the database is away: the next start goes on
	}
	h := &held{lease: lease, asked: asked}
	k.mu.Lock()
	k.held[store.House] = h
	k.mu.Unlock()
	err = k.hooks.Take(ctx, store.House)
	k.mu.Lock()
	h.ready = err == nil
	k.mu.Unlock()
	if err != nil {
		k.end(ctx, store.House, h)
	}
}

// awaitWork waits for what is being begun or ended, and beats meanwhile.
func (k *Keeper) awaitWork(ctx context.Context, tick *time.Ticker) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		k.work.Wait()
	}()
	for waiting := true; waiting; {
		select {
		case <-ended:
			waiting = false
		case <-tick.C:
			_ = k.beat(ctx) // a lease that ends meanwhile is as good as given back
		}
	}
}
