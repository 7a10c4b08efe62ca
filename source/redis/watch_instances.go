package redis

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/locksteward/locksteward"
)

// Heartbeats are written every 5 s: what was read shortly before is as good as
// new.
const (
	instanceFor  = 2 * time.Second
	maxInstances = 4096
)

// instanceCache keeps the heartbeats of holders for a moment, so that a process
// with a thousand locks is not read a thousand times.
type instanceCache struct {
	mu   *sync.Mutex
	byID map[string]cachedInstance
}

type cachedInstance struct {
	at       time.Time
	instance *locksteward.Instance // nil: it is gone
}

func newInstanceCache() instanceCache {
	return instanceCache{mu: &sync.Mutex{}, byID: map[string]cachedInstance{}}
}

// join puts the heartbeats of their holders into looks. One that cannot be read
// now stays unknown, which is not gone.
func (c instanceCache) join(ctx context.Context, w *watcher, results []*keyReading) {
	now := time.Now()
	missing := map[string]bool{}
	for _, g := range results {
		if g.lock == nil || g.lock.Holder.Instance == "" {
			continue
		}
		if _, ok := c.get(g.lock.Holder.Instance, now); !ok {
			missing[g.lock.Holder.Instance] = true
		}
	}
	if len(missing) > 0 {
		c.fetch(ctx, w, missing, now)
	}
	for _, g := range results {
		if g.lock == nil || g.lock.Holder.Instance == "" {
			continue
		}
		id := g.lock.Holder.Instance
		got, ok := c.get(id, now)
		if g.lock.Instance = got; !ok {
			g.lock.Instance = &locksteward.Instance{ID: id}
		}
	}
}

func (c instanceCache) get(id string, now time.Time) (*locksteward.Instance, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	got, ok := c.byID[id]
	return got.instance, ok && now.Sub(got.at) < instanceFor
}

// fetch reads heartbeats, each on the master that has it.
func (c instanceCache) fetch(ctx context.Context, w *watcher, ids map[string]bool, now time.Time) {
	found := map[string]*locksteward.Instance{}
	unsure := map[string]bool{}
	keys := map[*nodeWatch][]instanceKey{}
	for id := range ids {
		for _, key := range w.s.instanceKeys(id) {
			if n := w.ownerOf(key.key); n != nil {
				keys[n] = append(keys[n], key)
			} else {
				unsure[id] = true
			}
		}
	}
	for n, list := range keys {
		for chunk := range slices.Chunk(list, subjectsPerLook) {
			got, err := n.reader(nil).instances(ctx, chunk)
			if err != nil {
				for _, k := range chunk {
					unsure[k.id] = true
				}
				continue
			}
			for _, g := range got {
				if g.instance != nil {
					found[g.id] = g.instance
				}
				unsure[g.id] = unsure[g.id] || !g.read
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.byID) > maxInstances {
		clear(c.byID)
	}
	for id := range ids {
		if found[id] != nil || !unsure[id] {
			c.byID[id] = cachedInstance{at: now, instance: found[id]}
		}
	}
}
