package redis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source"
)

// maxListed bounds how many waiters one pass reads by name; beyond it they are
// counted.
const maxListed = 100_000

// waiters reads who waits for locks of our format, in their queue or not.
func (r *reader) waiters(ctx context.Context, keys []waitKey) (map[string]source.WaiterSet, error) {
	out := make(map[string]source.WaiterSet, len(keys))
	listed := 0
	for chunk := range slices.Chunk(keys, subjectsPerLook) {
		if err := r.someWaiters(ctx, chunk, listed < maxListed, out); err != nil {
			return nil, fmt.Errorf("read waiters: %w", err)
		}
		for _, k := range chunk {
			listed += len(out[k.lock].Waiters)
		}
	}
	return out, nil
}

func (r *reader) someWaiters(ctx context.Context, keys []waitKey, list bool, out map[string]source.WaiterSet) error {
	q := newQuestions(r, len(keys))
	for i, k := range keys {
		q.size[i] = sizeCmd(ctx, "hlen", k.key)
		q.cmds = append(q.cmds, q.size[i])
		if q.memory && list {
			q.mem[i] = memoryCmd(ctx, k.key)
			q.cmds = append(q.cmds, q.mem[i])
		}
	}
	if err := r.exec(ctx, q.cmds); err != nil {
		return err
	}
	waiterSets := make([]source.WaiterSet, len(keys))
	var reads []redis.Cmder
	for i, k := range keys {
		ok, err := r.usable(q.size[i].Err())
		if err != nil {
			return err
		}
		q.learn(q.mem[i], "memory|usage")
		if !ok {
			waiterSets[i].Count = -1
			continue
		}
		n := int(q.size[i].Val())
		waiterSets[i].Count = n
		if n > 0 && small(q.size[i], q.mem[i], maxWaiters) {
			q.fields[i] = fieldsCmd(ctx, k.key)
			reads = append(reads, q.fields[i])
		}
	}
	if err := r.exec(ctx, reads); err != nil {
		return err
	}
	for i, k := range keys {
		if q.fields[i] != nil {
			// What can be counted and not be read, or is too much by now, stays counted.
			ok, err := r.usable(q.fields[i].Err())
			if err != nil {
				return err
			}
			if ok && within(q.fields[i].Val(), maxWaiters) {
				waiterSets[i] = waiterSetOf(k.lock, q.fields[i].Val(), q.at.Val())
			}
		}
		// A lock has its waiters under one prefix; of two the larger waiter set counts.
		if known, ok := out[k.lock]; !ok || known.Count < waiterSets[i].Count {
			out[k.lock] = waiterSets[i]
		}
	}
	return nil
}

// waiterSetOf decodes the records of those who wait at now. Those past their time
// are dead; one that cannot be read is counted and not listed.
func waiterSetOf(lock string, fields map[string]string, now time.Time) source.WaiterSet {
	var c source.WaiterSet
	for id, text := range fields {
		w, err := record.ParseWaiter(text)
		until, since := time.UnixMilli(w.Until), time.UnixMicro(w.Since)
		switch {
		case err != nil || until.Year() > 9999 || since.Year() > 9999 || len(id) > record.MaxText:
			c.Count++
		case until.Before(now):
		default:
			c.Count++
			c.Waiters = append(c.Waiters, locksteward.Waiter{
				Key: lock, ID: id, Session: w.Session, Instance: w.Instance, App: w.App, Host: w.Host, PID: w.PID, Since: since.UTC(), Until: until.UTC(),
			})
		}
	}
	return c
}

// complete fills in the target and the class of waiters.
func (s *Source) complete(sets map[string]source.WaiterSet) {
	classes := s.classes.Load()
	for lock, set := range sets {
		if len(set.Waiters) == 0 {
			continue
		}
		name := cmp.Or(classes.Classify(lock).Class, class.Default)
		for i := range set.Waiters {
			w := &set.Waiters[i]
			w.Target, w.DB, w.Class = s.target.Name, s.target.DB, name
		}
	}
}

// waitersAt reads who waits for one lock of ours, whose metadata may be gone.
func (s *Source) waitersAt(ctx context.Context, r *reader, seen *keyReading) map[string]source.WaiterSet {
	prefixes := s.prefixes
	if seen.meta.there {
		prefixes = []string{seen.meta.prefix}
	}
	keys := make([]waitKey, len(prefixes))
	for i, prefix := range prefixes {
		keys[i] = waitKey{lock: seen.key, key: record.Companion(prefix, record.KindWaiter, seen.key)}
	}
	got, err := r.waiters(ctx, keys)
	if err != nil {
		return map[string]source.WaiterSet{seen.key: {Count: -1}}
	}
	return got
}
