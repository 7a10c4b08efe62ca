package redis

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

const (
	// pollEvery is how often locks are looked at that nobody reports, at best.
	pollEvery = 10 * time.Second
	// perPoll is how many are looked at in one call: two commands each, and TIME.
	perPoll = (maxPipeline - 1) / 2
)

// pollLoop looks again at the known locks that are not watched, those first that
// were not seen for longest, within half of the budget.
func (w *watcher) pollLoop(ctx context.Context) {
	for {
		began := time.Now()
		for _, n := range w.all() {
			if err := n.poll(ctx, began); err != nil && ctx.Err() == nil {
				w.log.Debug("known locks are not looked at again", zap.String("node", n.addr), zap.Error(err))
			}
		}
		if source.Sleep(ctx, pollEvery-time.Since(began)) != nil {
			return
		}
	}
}

func (n *nodeWatch) poll(ctx context.Context, began time.Time) error {
	for chunk := range slices.Chunk(n.unwatched(began), perPoll) {
		if err := n.w.affordable(ctx); err != nil {
			return err
		}
		if err := n.w.pollBudget.wait(ctx); err != nil {
			return err
		}
		changed, err := n.pollOnce(ctx, chunk)
		if err != nil {
			return err
		}
		if len(changed) > 0 && !n.queue.put(false, changed...) {
			n.overrun()
		}
	}
	return nil
}

// expiryTolerance is how far an expiry computed from TIME and PTTL may be off without having
// been moved.
const expiryTolerance = 50 // ms

// polled is a lock as it was known before a poll.
type polled struct {
	key      string
	typ      string
	expireAt int64
	at       int64
}

// unwatched returns the known locks of the master that nobody reports and that
// were not looked at lately, the longest unseen first.
func (n *nodeWatch) unwatched(now time.Time) []polled {
	n.mu.Lock()
	master, plan, watching := n.master, n.plan, n.watching()
	n.mu.Unlock()
	since := now.Add(n.w.s.host.ClockOffset(n.addr) - pollEvery).UnixMicro()
	var out []polled
	n.w.s.host.Each(func(k source.Known) {
		if k.At > since || watching && plan.covers(k.Name) || !master.Owns(k.Name) {
			return
		}
		out = append(out, polled{key: k.Name, typ: k.Type, expireAt: k.ExpireAt, at: k.At})
	})
	slices.SortFunc(out, func(a, b polled) int { return cmp.Compare(a.at, b.at) })
	return out
}

// pollOnce asks for type and expiry alone and returns what is not as it was.
func (n *nodeWatch) pollOnce(ctx context.Context, list []polled) ([]workItem, error) {
	kinds := make([]*redis.StatusCmd, len(list))
	ttls := make([]*redis.DurationCmd, len(list))
	now := timeCmd(ctx)
	cmds := []redis.Cmder{now}
	for i, g := range list {
		kinds[i], ttls[i] = typeCmd(ctx, g.key), pttlCmd(ctx, g.key)
		cmds = append(cmds, kinds[i], ttls[i])
	}
	r := n.reader(n.w.pollBudget)
	if err := r.exec(ctx, cmds); err != nil {
		return nil, err
	}
	var changed []workItem
	for i, g := range list {
		okType, err := r.usable(kinds[i].Err())
		if err != nil {
			return changed, err
		}
		okTTL, err := r.usable(ttls[i].Err())
		if err != nil {
			return changed, err
		}
		if okType && okTTL && !g.same(kinds[i].Val(), ttls[i].Val(), now.Val()) {
			changed = append(changed, workItem{key: g.key, waiters: true})
		}
	}
	return changed, nil
}

// same says whether type and expiry are as they were.
func (g polled) same(typ string, ttl time.Duration, now time.Time) bool {
	if typ != g.typ {
		return false
	}
	if ttl < 0 || g.expireAt <= 0 {
		return ttl == locksteward.NoExpiry && g.expireAt == locksteward.NoExpireAt
	}
	moved := now.Add(ttl).UnixMilli() - g.expireAt
	return moved <= expiryTolerance && moved >= -expiryTolerance
}

// keysOf returns the keys of the known locks that owns says yes to.
func (s *Source) keysOf(owns func(key string) bool) []string {
	var out []string
	s.host.Each(func(k source.Known) {
		if owns(k.Name) {
			out = append(out, k.Name)
		}
	})
	return out
}
