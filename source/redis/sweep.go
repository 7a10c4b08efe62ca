package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// errTopology makes a pass incomplete.
var errTopology = errors.New("the masters or their slots changed during the pass")

// Sweep implements [source.Source]: one pass per master, side by side.
func (s *Source) Sweep(ctx context.Context, opts source.SweepOptions, sink source.Sink) (*source.Sweep, error) {
	began, start := s.clock(), time.Now()
	s.caps.reset()
	before, err := s.conn.Masters(ctx)
	if err != nil {
		if err = s.cause(ctx, err); redis.HasErrorPrefix(err, "LOADING") {
			err = fmt.Errorf("%w: %w", source.ErrLoading, err)
		}
		return nil, err
	}
	sink.Parts(len(before))
	passes := s.passes(ctx, before, opts, sink)
	out := &source.Sweep{Duration: s.clock().Sub(began)}
	s.checkTopology(ctx, before, passes)
	s.verify(ctx, passes)
	out.Unknown = s.readMissingInstances(ctx, passes)
	s.countFlushes(ctx, passes)
	out.Connections = s.countListeners(ctx, silent(passes, out.Unknown), passes)
	out.Orphans, out.Err = s.orphans(ctx, passes)
	for _, gap := range connect.Uncovered(before) {
		out.Gaps = append(out.Gaps, locksteward.MasterPass{
			Node:   fmt.Sprintf("slots %d-%d", gap.First, gap.Last),
			Reason: "no master serves these slots; repair the cluster (redis-cli --cluster check)",
		})
	}
	s.finish(out, passes, start)
	return out, nil
}

// finish puts what passes, begun at began by the true clock, found into out.
func (s *Source) finish(out *source.Sweep, passes []*pass, began time.Time) {
	prefixes := map[string]string{}
	masters := make([]connect.Master, len(passes))
	for i, p := range passes {
		s.lastSeen[p.master.Addr] = p.out.Candidates
		maps.Copy(prefixes, p.prefixes)
		masters[i] = p.master
		p.out.Server = p.info.server(p.master.Addr, p.flushes)
		p.out.Unannounced = s.watch.unannounced(p.master.Addr)
		if p.source.replica != nil {
			p.out.Replica, p.out.AsOf = p.source.addr, p.source.asOf
		}
		out.Parts = append(out.Parts, p.out)
	}
	out.FenceCounter = func(key string) string {
		prefix, ok := prefixes[key]
		if !ok {
			prefix = s.prefixes[0]
		}
		return record.FenceKey(prefix, key)
	}
	out.HomesOf = func(process string) (nodes []string, known bool) {
		for _, key := range s.instanceKeys(process) {
			i := slices.IndexFunc(masters, func(m connect.Master) bool { return m.Owns(key.key) })
			if i < 0 || !out.Parts[i].Answered {
				return nil, false
			}
			nodes = append(nodes, masters[i].Addr)
		}
		return nodes, true
	}
	out.Applied = func() {
		for _, part := range out.Parts {
			if part.Err == nil {
				s.watch.merged(part.Node, began, part.Scanned)
			}
		}
		s.watch.learn()
	}
}

// passes runs one pass per master, side by side.
func (s *Source) passes(ctx context.Context, masters []connect.Master, opts source.SweepOptions, sink source.Sink) []*pass {
	classes := s.classes.Load()
	known := s.host.Len()
	expect := known + known/8
	passes := make([]*pass, len(masters))
	var wg sync.WaitGroup
	for i, m := range masters {
		r := candidateQuota{parts: uint64(s.lastSeen[m.Addr]/candidateLimit) + 1, turn: opts.Number}
		passes[i] = newPass(s, m, classes, r, expect/len(masters), progress{sink: sink, part: i, early: opts.Early})
		wg.Go(func() {
			passes[i].run(ctx)
			passes[i].out.Err = s.cause(ctx, passes[i].out.Err)
		})
	}
	wg.Wait()
	return passes
}

// cause replaces what a cut connection says by why it was cut.
func (s *Source) cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// checkTopology marks passes of masters that are not what they were: SCAN's
// cursor knows nothing of keys that moved.
func (s *Source) checkTopology(ctx context.Context, before []connect.Master, passes []*pass) {
	after, err := s.conn.Masters(ctx)
	for i, p := range passes {
		switch {
		case p.out.Err != nil:
		case err != nil:
			p.out.Err = s.cause(ctx, err)
		case !slices.ContainsFunc(after, before[i].Equal):
			p.out.Err = errTopology
		}
	}
}

// verify reads known locks that complete passes did not meet.
func (s *Source) verify(ctx context.Context, passes []*pass) {
	var wg sync.WaitGroup
	for _, p := range passes {
		if p.out.Err != nil {
			continue
		}
		missing := p.missing()
		if len(missing) == 0 {
			continue
		}
		wg.Go(func() { p.out.Err = s.cause(ctx, p.verify(ctx, missing)) })
	}
	wg.Wait()
}

// missing returns the known locks of p's master that p did not see as locks.
func (p *pass) missing() []subject {
	var out []subject
	p.s.host.Each(func(k source.Known) {
		at, met := p.slots[k.Name]
		if met && at.at >= 0 || !p.master.Owns(k.Name) {
			return
		}
		if _, done := p.out.NotLock[k.Name]; done {
			return
		}
		out = append(out, subject{key: k.Name, match: p.classes.Classify(k.Name), memory: memoryOf(k)})
	})
	return out
}

// readMissingInstances reads heartbeats that locks and losses name and no pass met. It
// returns those that could not be read: nothing is known of them, which is not the same as
// gone.
func (s *Source) readMissingInstances(ctx context.Context, passes []*pass) (unknown map[string]bool) {
	wanted := holders(passes)
	unknown = map[string]bool{}
	keys := map[*pass][]instanceKey{}
	for id := range wanted {
		for _, key := range s.instanceKeys(id) {
			p := owner(passes, key.key)
			if p == nil || !p.out.Answered {
				unknown[id] = true
				continue
			}
			keys[p] = append(keys[p], key)
		}
	}
	for p, list := range keys {
		got, err := p.reader.instances(ctx, list)
		if err != nil {
			for _, k := range list {
				unknown[k.id] = true
			}
			continue
		}
		for _, g := range got {
			switch {
			case g.instance != nil:
				p.out.Instances[g.id] = g.instance
			case !g.read:
				unknown[g.id] = true
			}
		}
	}
	return unknown
}

// holders are the processes that locks and losses name and whose heartbeat no pass read.
func holders(passes []*pass) map[string]bool {
	ids := map[string]bool{}
	for _, p := range passes {
		for id := range p.holders {
			ids[id] = true
		}
		for i := range p.out.Losses {
			ids[p.out.Losses[i].Holder.Instance] = true
		}
	}
	delete(ids, "")
	for _, p := range passes {
		for id := range p.out.Instances {
			delete(ids, id)
		}
	}
	return ids
}

// silent are those of them that are known to have no heartbeat.
func silent(passes []*pass, unknown map[string]bool) []string {
	ids := holders(passes)
	maps.DeleteFunc(ids, func(id string, _ bool) bool { return unknown[id] })
	return slices.Sorted(maps.Keys(ids))
}

func owner(passes []*pass, key string) *pass {
	for _, p := range passes {
		if p.master.Owns(key) {
			return p
		}
	}
	return nil
}

// countFlushes asks each master how often its data was flushed.
func (s *Source) countFlushes(ctx context.Context, passes []*pass) {
	for _, p := range passes {
		p.flushes = -1
		if p.info["run_id"] == "" {
			continue
		}
		text, err := p.askInfo(ctx, "commandstats")
		if err != nil || text == "" {
			continue
		}
		p.flushes = parseInfo(text).flushes()
	}
}
