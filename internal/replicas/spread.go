package replicas

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/store"
)

// look has the ways to the targets looked at that the roll asks for.
func (k *Keeper) look(ctx context.Context, roll store.Roll) {
	k.mu.Lock()
	duties, works := slices.Clone(k.duties), map[string]bool{}
	for duty := range k.held {
		works[duty] = true
	}
	k.mu.Unlock()
	k.ways.follow(ctx, k.me.ID, works, duties, roll)
}

// Blind says that the target of a duty is out of this replica's reach now.
func (k *Keeper) Blind(duty string) bool { return k.ways.blind(duty) }

// spread takes and gives away duties.
func (k *Keeper) spread(ctx context.Context, roll store.Roll) {
	k.mu.Lock()
	now := time.Now()
	ripe := map[string]bool{}
	for _, r := range roll.Replicas {
		ripe[r.ID] = k.present.ripe(r.ID, now)
	}
	shunned := map[string]bool{}
	for duty, until := range k.shunned {
		shunned[duty] = now.Before(until)
	}
	v := view{
		me: k.me.ID, roll: roll, duties: slices.Clone(k.duties),
		able: func(r store.Replica, duty string) bool {
			if r.ID == k.me.ID && shunned[duty] {
				return false
			}
			return duty == store.House || slices.Contains(r.Targets, duty)
		},
		ripe: func(id string) bool { return ripe[id] },
		sure: func(duty string) bool { _, is := k.ways.sure(duty); return is },
		shaky: func(id, duty string) bool {
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.present.shaky(id, duty, now)
		},
	}
	// What ends is not over for the others yet, and a duty is given away at a time.
	busy := k.ending
	for _, h := range k.held {
		busy = busy || h.over
	}
	ending := k.ending
	k.mu.Unlock()
	if ending {
		return
	}
	d := decide(v)
	for _, duty := range d.take {
		k.acquire(ctx, duty)
	}
	for _, duty := range d.hand {
		why, _ := k.ways.sure(duty)
		if k.drop(ctx, duty, false) {
			k.log.Warn("a target goes to another replica, which reaches it: this one does not",
				zap.String("target", duty), zap.String("replica", seer(v, duty)), zap.String("reason", why))
		}
	}
	if busy {
		return
	}
	for _, duty := range d.give {
		k.log.Info("a duty goes to another replica, which has less", zap.String("duty", duty))
		k.drop(ctx, duty, false)
	}
}

// acquire takes a duty that is free.
func (k *Keeper) acquire(ctx context.Context, duty string) {
	k.mu.Lock()
	_, mine := k.held[duty]
	k.mu.Unlock()
	if mine {
		return // it ends still
	}
	asked := time.Now()
	lease, err := k.store.AcquireLease(ctx, duty, k.me.ID, k.me.Address, k.ttl)
	if err != nil {
		if !errors.Is(err, store.ErrLeaseHeld) && ctx.Err() == nil {
			k.log.Warn("a duty is not taken: it is tried again", zap.String("duty", duty), zap.Error(err))
		}
		return
	}
	h := &held{lease: lease, asked: asked}
	k.mu.Lock()
	k.held[duty] = h
	k.mu.Unlock()
	k.work.Go(func() {
		err := k.hooks.Take(ctx, duty)
		k.mu.Lock()
		h.ready = err == nil
		over := h.over
		if err != nil {
			k.shunned[duty] = time.Now().Add(shunFor)
		} else {
			delete(k.shunned, duty)
		}
		k.mu.Unlock()
		switch {
		case err != nil:
			k.log.Error("a duty cannot be taken: it is left to others", zap.String("duty", duty), zap.Error(err))
			k.end(ctx, duty, h)
		case over:
			k.hooks.Drop(ctx, duty, true)
			k.end(ctx, duty, h)
		}
		if k.hooks.Changed != nil {
			k.hooks.Changed()
		}
	})
}

// drop ends a duty, once, and says whether this was the time.
func (k *Keeper) drop(ctx context.Context, duty string, lost bool) bool {
	k.mu.Lock()
	h, ok := k.held[duty]
	if !ok || h.over {
		k.mu.Unlock()
		return false
	}
	h.over = true
	ready := h.ready
	k.mu.Unlock()
	if !ready {
		return true // whoever takes it sees that
	}
	ctx = context.WithoutCancel(ctx)
	k.work.Go(func() {
		k.hooks.Drop(ctx, duty, lost)
		k.end(ctx, duty, h)
		if k.hooks.Changed != nil {
			k.hooks.Changed()
		}
	})
	return true
}

// end lets others have a duty of which nothing runs.
func (k *Keeper) end(ctx context.Context, duty string, h *held) {
	k.mu.Lock()
	lease := h.lease
	k.mu.Unlock()
	if err := k.store.ReleaseLease(context.WithoutCancel(ctx), lease); err != nil {
		k.log.Warn("a lease is not given back: it expires", zap.String("duty", duty), zap.Error(err))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held[duty] == h {
		delete(k.held, duty)
	}
}
