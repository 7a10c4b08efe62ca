package scanner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/connect"
	"github.com/locksteward/locksteward/internal/pace"
)

// Errors that make a sweep or a pass incomplete.
var (
	errTimeout  = errors.New("sweep timed out")
	errTopology = errors.New("the masters or their slots changed during the pass")
)

// Sweep makes one pass over the target now and returns what it established.
// Trouble with some masters makes their passes incomplete; all trouble is in
// the error too, which is for the log: the sweep is good whether or not there
// is one. A sweep without masters means that the target is away. Sweeps of one
// scanner run one after the other.
func (s *Scanner) Sweep(ctx context.Context) (locksteward.Sweep, error) {
	sweep, err := s.sweepInOrder(ctx)
	out := sweep.Collect() // the next merge goes on in its entries
	s.tracker.end(&out)
	s.order.Unlock()
	return out, err
}

// sweepInOrder is [Scanner.Sweep] whose locks stay in the table, and that leaves s.order locked: until the caller
// has handed the sweep on and unlocks it, the watch hands on nothing that it saw
// later.
func (s *Scanner) sweepInOrder(ctx context.Context) (sweep locksteward.Sweep, err error) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	merging := sync.OnceFunc(s.order.Lock)
	defer merging() // where the target is away
	s.tracker.begin(s)
	s.table.beginSweep()
	defer s.table.endSweep()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer s.stall.begin(s.cfg.Timeout, s.Paused, func() { cancel(errTimeout) })()
	sweep = locksteward.Sweep{Target: s.target.Name, Started: s.clock()}
	sweep.At = sweep.Started
	s.caps.reset()
	s.turn++

	before, err := s.conn.Masters(ctx)
	if err != nil {
		err = s.cause(ctx, err)
		s.away(err)
		return sweep, fmt.Errorf("sweep %s: %w", s.target.Name, err)
	}
	s.tracker.count(len(before))
	passes := s.passes(ctx, before)
	sweep.Duration = s.clock().Sub(sweep.Started)
	s.checkTopology(ctx, before, passes)
	s.verify(ctx, passes)
	missing := s.readMissingInstances(ctx, passes)
	serverAnswers := s.askServers(ctx, passes, missing)
	orphans, orphansErr := s.orphans(ctx, passes)

	merging()
	s.merge(&sweep, passes, missing, serverAnswers)
	for _, gap := range connect.Uncovered(before) {
		sweep.Masters = append(sweep.Masters, locksteward.MasterPass{
			Node:   fmt.Sprintf("slots %d-%d", gap.First, gap.Last),
			Reason: "no master serves these slots; repair the cluster (redis-cli --cluster check)",
		})
	}
	sweep.Orphans = orphans
	err = errors.Join(s.report(&sweep, passes), orphansErr)
	s.survey(&sweep, passes, missing, serverAnswers)
	s.remember(passes)
	s.watch.learn()
	if err != nil {
		return sweep, fmt.Errorf("sweep %s: %w", s.target.Name, err)
	}
	return sweep, nil
}

// passes runs one pass per master, side by side.
func (s *Scanner) passes(ctx context.Context, masters []connect.Master) []*pass {
	classes := s.classes.Load()
	expect := s.table.Len() + s.table.Len()/8
	passes := make([]*pass, len(masters))
	var wg sync.WaitGroup
	for i, m := range masters {
		r := candidateQuota{parts: uint64(s.lastSeen[m.Addr]/candidateLimit) + 1, turn: s.turn}
		passes[i] = newPass(s, m, classes, r, expect/len(masters))
		wg.Go(func() {
			passes[i].run(ctx)
			passes[i].out.err = s.cause(ctx, passes[i].out.err)
		})
	}
	wg.Wait()
	return passes
}

// cause replaces what a cut connection says by why it was cut.
func (s *Scanner) cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// checkTopology marks passes of masters that are not what they were: SCAN's
// cursor knows nothing of keys that moved.
func (s *Scanner) checkTopology(ctx context.Context, before []connect.Master, passes []*pass) {
	after, err := s.conn.Masters(ctx)
	for i, p := range passes {
		switch {
		case p.out.err != nil:
		case err != nil:
			p.out.err = s.cause(ctx, err)
		case !slices.ContainsFunc(after, before[i].Equal):
			p.out.err = errTopology
		}
	}
}

// verify looks at known locks that complete passes did not meet.
func (s *Scanner) verify(ctx context.Context, passes []*pass) {
	var wg sync.WaitGroup
	for _, p := range passes {
		if p.out.err != nil {
			continue
		}
		missing := s.table.missing(p)
		if len(missing) == 0 {
			continue
		}
		wg.Go(func() { p.out.err = s.cause(ctx, p.verify(ctx, missing)) })
	}
	wg.Wait()
}

// missing returns the known locks of p's master that p did not see as locks.
func (t *Table) missing(p *pass) []subject {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []subject
	for key, e := range t.entries {
		at, met := p.slots[key]
		if met && at.at >= 0 || !p.master.Owns(key) {
			continue
		}
		if _, done := p.out.noLock[key]; done {
			continue
		}
		out = append(out, subject{key: key, match: p.classes.Classify(key), memory: e.memory()})
	}
	return out
}

// readMissingInstances looks directly for heartbeats that locks and losses name
// and no pass met. It returns those that could not be read: nothing is known of
// them, which is not the same as gone.
func (s *Scanner) readMissingInstances(ctx context.Context, passes []*pass) (unknown map[string]bool) {
	wanted := map[string]bool{}
	for _, p := range passes {
		for i := range p.out.locks {
			wanted[p.out.locks[i].holderInstance()] = true
		}
		for i := range p.out.losses {
			wanted[p.out.losses[i].Holder.Instance] = true
		}
	}
	delete(wanted, "")
	for _, p := range passes {
		for id := range p.out.instances {
			delete(wanted, id)
		}
	}
	unknown = map[string]bool{}
	keys := map[*pass][]instanceKey{}
	for id := range wanted {
		for _, key := range s.instanceKeys(id) {
			p := owner(passes, key.key)
			if p == nil || !p.out.answered {
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
				p.out.instances[g.id] = g.instance
			case !g.read:
				unknown[g.id] = true
			}
		}
	}
	return unknown
}

func owner(passes []*pass, key string) *pass {
	for _, p := range passes {
		if p.master.Owns(key) {
			return p
		}
	}
	return nil
}

// remember keeps what the next sweep compares with.
func (s *Scanner) remember(passes []*pass) {
	for _, p := range passes {
		s.lastSeen[p.master.Addr] = p.out.candidates
		if id := p.out.info["run_id"]; id != "" {
			if len(s.runIDs) > 1024 {
				clear(s.runIDs)
			}
			s.runIDs[id] = true
		}
	}
}

// server returns the pace of a server, which keeps what it learned.
func (s *Scanner) server(addr string) *pace.Server {
	s.mu.Lock() // passes that choose a replica ask side by side
	defer s.mu.Unlock()
	p, ok := s.servers[addr]
	if !ok {
		p = s.hosts.At(addr).Server(s.cfg.Pace)
		s.servers[addr] = p
	}
	return p
}
