package replicas

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/store"
)

// keep goes on with a duty under its renewed lease, or ends it.
func (k *Keeper) keep(ctx context.Context, duty string, had held, roll store.Roll, asked time.Time) {
	i := slices.IndexFunc(roll.Leases, func(l store.Lease) bool { return l.Target == duty })
	switch {
	case i >= 0 && roll.Leases[i].Owner == had.lease.Owner && roll.Leases[i].Fence == had.lease.Fence:
		k.renewed(duty, had.lease, roll.Leases[i], asked)
		return
	case i < 0 && !had.over:
		// It expired. If nobody took it since, nobody knows better than this replica.
		asked = time.Now()
		lease, err := k.store.AcquireLease(ctx, duty, had.lease.Owner, k.me.Address, k.ttl)
		if err == nil && lease.Fence == had.lease.Fence+1 {
			k.renewed(duty, had.lease, lease, asked)
			return
		}
		if err != nil && !errors.Is(err, store.ErrLeaseHeld) {
			return // asked again with the next beat
		}
		if err == nil {
			_ = k.store.ReleaseLease(ctx, lease) // it expires
		}
	}
	if !had.over {
		k.log.Warn("another replica took over", zap.String("duty", duty))
	}
	k.drop(ctx, duty, true)
}

// giveBack ends leases of this replica under which nothing works: the answer to an
// acquire was lost, or a release did not reach the database. Each beat prolongs them,
// and nobody would ever take what they are of.
func (k *Keeper) giveBack(ctx context.Context, roll store.Roll) {
	for _, l := range roll.Leases {
		k.mu.Lock()
		_, works := k.held[l.Target]
		k.mu.Unlock()
		if works || l.Owner != k.me.ID {
			continue
		}
		if err := k.store.ReleaseLease(ctx, l); err != nil {
			continue // with the next beat
		}
		k.log.Info("a lease under which nothing worked is given back", zap.String("duty", l.Target))
	}
}

func (k *Keeper) renewed(duty string, was, lease store.Lease, asked time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h, ok := k.held[duty]; ok && h.lease.Fence == was.Fence {
		h.lease, h.asked = lease, asked
	}
}

// Anew ends all duties, so that each is taken anew, by whoever is to have it then: what
// the database says of it is not what this replica wrote there. Nothing more is written.
func (k *Keeper) Anew(ctx context.Context) {
	for duty := range k.holding() {
		k.drop(ctx, duty, true)
	}
}

// Yield ends duties that are not to be done here any more, and returns when nothing of
// them runs.
func (k *Keeper) Yield(ctx context.Context, duties ...string) {
	for _, duty := range duties {
		k.drop(ctx, duty, false)
	}
	for {
		k.mu.Lock()
		left := slices.ContainsFunc(duties, func(d string) bool { return k.held[d] != nil })
		changed := k.changed
		k.mu.Unlock()
		if !left {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(k.ttl / beatsPerLease):
		}
	}
}
