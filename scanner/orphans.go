package scanner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// maxHelpers bounds how many helper keys of lock libraries one pass remembers,
// and maxOrphans how many of them a sweep tells.
const (
	maxHelpers = 10_000
	maxOrphans = 1_000
)

// helperKey is a helper of a lock library that a pass met (formats.AuxiliaryKey).
type helperKey struct{ key, library, lock string }

// helper notes a helper that should not outlive its lock.
func (p *pass) helper(key, library, lock string) {
	if lock != "" && len(p.extras.helpers) < maxHelpers {
		p.extras.helpers = append(p.extras.helpers, helperKey{key: key, library: library, lock: lock})
	}
}

// orphans asks about the helpers that complete passes met, each on the master
// that owns it and its lock. What cannot be asked is no orphan.
func (s *Scanner) orphans(ctx context.Context, passes []*pass) ([]locksteward.Orphan, error) {
	var (
		out  []locksteward.Orphan
		errs []error
	)
	for _, p := range passes {
		if p.out.err != nil {
			continue
		}
		// SCAN may return a key more than once.
		slices.SortFunc(p.extras.helpers, func(a, b helperKey) int { return strings.Compare(a.key, b.key) })
		helpers := slices.CompactFunc(p.extras.helpers, func(a, b helperKey) bool { return a.key == b.key })
		for chunk := range slices.Chunk(helpers, subjectsPerLook) {
			found, err := p.reader.orphans(ctx, chunk)
			if err != nil {
				errs = append(errs, fmt.Errorf("look for orphans on %s: %w", p.master.Addr, s.cause(ctx, err)))
				break
			}
			for _, h := range found {
				out = append(out, locksteward.Orphan{
					Target: s.target.Name, DB: s.target.DB, Key: h.key, Lock: h.lock, Library: h.library, TTL: locksteward.NoExpiry,
				})
			}
		}
	}
	slices.SortFunc(out, func(a, b locksteward.Orphan) int { return strings.Compare(a.Key, b.Key) })
	return out[:min(len(out), maxOrphans)], errors.Join(errs...)
}

// orphans returns the helpers that are there without an expiry, whose lock is
// not, and in which nobody waits any more.
func (r *reader) orphans(ctx context.Context, helpers []helperKey) ([]helperKey, error) {
	var (
		at   = timeCmd(ctx)
		ttl  = make([]*redis.DurationCmd, len(helpers))
		lock = make([]*redis.IntCmd, len(helpers))
		last = make([]*redis.ZSliceCmd, len(helpers)) // the last who waits
		cmds = []redis.Cmder{at}
	)
	for i, h := range helpers {
		ttl[i] = pttlCmd(ctx, h.key)
		lock[i] = redis.NewIntCmd(ctx, "exists", h.lock)
		cmds = append(cmds, ttl[i], lock[i])
		if set := formats.Deadlines(h.key); set != "" {
			last[i] = redis.NewZSliceCmd(ctx, "zrange", set, -1, -1, "withscores")
			cmds = append(cmds, last[i])
		}
	}
	if err := r.exec(ctx, cmds); err != nil {
		return nil, err
	}
	var out []helperKey
	for i, h := range helpers {
		if ttl[i].Err() != nil || ttl[i].Val() != -1 || lock[i].Err() != nil || lock[i].Val() != 0 {
			continue
		}
		if last[i] != nil {
			waits := last[i].Val()
			if last[i].Err() != nil || len(waits) > 0 && waits[0].Score > float64(at.Val().UnixMilli()) {
				continue
			}
		}
		out = append(out, h)
	}
	return out, nil
}
