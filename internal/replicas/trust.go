package replicas

import (
	"context"
	"slices"
	"time"

	"github.com/locksteward/locksteward/store"
)

// knows says whether a certificate is of a replica that is there. One that came just
// now is looked for in the database.
func (k *Keeper) knows(ctx context.Context, key string) bool {
	if k.has(key) {
		return true
	}
	k.asking.Lock()
	defer k.asking.Unlock()
	if k.has(key) {
		return true
	}
	if time.Since(k.asked) < k.ttl/beatsPerLease {
		return false
	}
	k.asked = time.Now()
	roll, err := k.store.Roll(ctx)
	if err != nil {
		return false
	}
	k.mu.Lock()
	k.roll.Replicas = roll.Replicas
	k.mu.Unlock()
	return k.has(key)
}

func (k *Keeper) has(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.roll.Replicas, func(r store.Replica) bool { return r.Key == key })
}
