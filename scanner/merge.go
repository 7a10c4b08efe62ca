package scanner

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// merge takes what the passes found into the table and fills sweep with it.
func (s *Scanner) merge(sweep *locksteward.Sweep, passes []*pass, unknown map[string]bool, asked serverAnswers) {
	alive := map[string]*locksteward.Instance{}
	losses := map[lossKey]locksteward.Loss{}
	total, at := 0, time.Time{}
	for _, p := range passes {
		total += len(p.out.locks)
		maps.Copy(alive, p.out.instances)
		for _, l := range p.out.losses {
			losses[lossKey{l.Key, l.Claim.ID}] = l
		}
		at = maxTime(at, p.out.at)
	}
	if !at.IsZero() {
		sweep.At = at
	}
	sweep.Endings = s.table.takePending()
	var names []string
	seen := make([]*entry, 0, total)
	for _, p := range passes {
		names = append(names, p.out.candidateNames...)
		sweep.Candidates += p.out.candidates
		for _, c := range s.mergePass(p, alive, unknown, losses, asked.flushes) {
			if c.now != nil {
				seen = append(seen, c.now)
			}
			if c.ended != nil {
				sweep.Endings = append(sweep.Endings, *c.ended)
				enrich(losses, &c.ended.Lock)
			}
			if c.unread != "" {
				s.watch.revisit(p.master.Addr, c.unread)
			}
		}
		if p.out.err == nil {
			s.table.dropRestored(p.master.Owns)
			seen = append(seen, s.table.late(p.master.Owns, uint32(s.turn), p.out.at.Add(sweep.Started.Sub(s.clock())))...)
			s.watch.merged(p.master.Addr, sweep.Started, p.out.keys)
		}
		p.out.locks, p.out.gone, p.out.noLock, p.slots, p.traitSet, p.counted = nil, nil, nil, nil, nil, nil
	}
	s.table.setCandidates(names, sweep.Candidates)
	seen = s.table.sortEntries(seen)
	sweep.SetLocks(len(seen), s.table.visit(seen))
	waiterSets := make([]map[string]waiterSet, len(passes))
	for i, p := range passes {
		waiterSets[i] = p.out.waiters
	}
	sweep.Waiters = s.listed(waiterSets...)
	sweep.Instances = listInstances(alive)
	s.tellLosses(sweep, losses, alive, unknown)
}

// mergePass applies what one pass found to the table. Only a complete pass ends holds
// whose keys are gone.
func (s *Scanner) mergePass(p *pass, alive map[string]*locksteward.Instance, unknown map[string]bool, losses map[lossKey]locksteward.Loss, flushes map[string]int64) []change {
	t, servers := s.table, &s.facts.servers
	addr, runID := p.master.Addr, p.out.info["run_id"]
	pushed := t.pushedFlushOf(addr)
	if p.out.err == nil {
		t.onLine(addr, p.out.info["master_replid"])
	}
	p.flush = servers.window(p, flushes, pushed)
	evidence := sweepEvidence{
		number:   uint32(s.turn),
		lostKeys: servers.tookKeys(p, flushes) || len(s.runIDs) > 0 && runID != "" && !s.runIDs[runID],
		until:    servers.changedHands(p, pushed),
		flush:    &p.flush,
		suspect:  s.watch.suspicionOf(addr),
	}
	changes := t.apply(&batch{
		node: addr, began: t.tombstones.began, losses: losses, sweep: &evidence,
		about: len(p.out.locks) + len(p.out.gone) + len(p.out.noLock),
		readings: func(yield func(reading) bool) {
			for i := range p.out.locks {
				l := &p.out.locks[i]
				s.join(l, p, alive, unknown)
				if !yield(reading{key: l.key, lock: l, at: l.at}) {
					return
				}
			}
			if p.out.err != nil {
				return
			}
			for key, at := range p.out.gone {
				if !yield(reading{key: key, at: micros(at), gone: true}) {
					return
				}
			}
			for key, at := range p.out.noLock {
				if !yield(reading{key: key, at: micros(at)}) {
					return
				}
			}
		},
	})
	p.stood = evidence.stood
	return changes
}

// join adds to a look what other keys tell: heartbeat and waiters. The table is locked.
func (s *Scanner) join(l *lockState, p *pass, alive map[string]*locksteward.Instance, unknown map[string]bool) {
	if id := l.holderInstance(); id != "" {
		l.instance = alive[id]
		if l.instance == nil && unknown[id] {
			l.instance = s.table.lastInstance(l.key, id)
		}
	}
	if l.traits.library == formats.Locksteward {
		if c, ok := p.out.waiters[l.key]; ok {
			l.waiters = int32(c.count)
		} else if p.out.err == nil {
			l.waiters = 0 // all keys were seen, and none that has waiters of it
		}
	}
}

// lastInstance stands for a heartbeat that could not be read: what was known of
// it last, or that there may be one. "Not known" must not pass for "gone".
// t.mu is held.
func (t *Table) lastInstance(key, id string) *locksteward.Instance {
	if e, ok := t.entries[key]; ok && e.instance != nil && e.instance.ID == id {
		return e.instance
	}
	return &locksteward.Instance{ID: id}
}

// enrich completes a loss of which the successor tells only the id.
func enrich(losses map[lossKey]locksteward.Loss, lost *locksteward.Lock) {
	if lost.Claim == nil {
		return
	}
	at := lossKey{lost.Key, lost.Claim.ID}
	if l, ok := losses[at]; ok && l.Claim.Acquired.IsZero() {
		l.Claim, l.Holder = *lost.Claim, lost.Holder
		losses[at] = l
	}
}

// tellLosses puts the losses into the sweep, each as long as the server shows
// its evidence, with what was once known of it.
func (s *Scanner) tellLosses(sweep *locksteward.Sweep, losses map[lossKey]locksteward.Loss, alive map[string]*locksteward.Instance, unknown map[string]bool) {
	s.table.repeatFlushed(losses, sweep.At)
	for at, l := range losses {
		if known, ok := s.known[at]; ok && l.Claim.Acquired.IsZero() {
			l.Claim, l.Holder = known.Claim, known.Holder
		}
		s.known[at] = l
		if id := l.Holder.Instance; id != "" {
			l.Instance = alive[id]
			if l.Instance == nil && unknown[id] {
				l.Instance = &locksteward.Instance{ID: id}
			}
		}
		sweep.Losses = append(sweep.Losses, l)
	}
	sortLosses(sweep.Losses)
	for at, l := range s.known {
		// An incomplete sweep may just not have met it; metadata of a lost hold
		// does not live longer than this.
		_, now := losses[at]
		if !now && sweep.At.Sub(l.At) > record.Grace {
			delete(s.known, at)
		}
	}
}

// report fills in the passes, the counters and the state.
func (s *Scanner) report(sweep *locksteward.Sweep, passes []*pass) error {
	var errs []error
	var nodes []locksteward.NodeState
	read := 0
	reason := ""
	for _, p := range passes {
		if p.out.err == nil || p.out.keys > 0 || p.out.answered && errors.Is(p.out.err, errTimeout) {
			read++
		}
		if p.out.answered {
			nodes = append(nodes, p.out.info.node(p.master.Addr))
		}
		if p.out.err != nil {
			errs = append(errs, fmt.Errorf("pass over %s: %w", p.master.Addr, p.out.err))
			if reason == "" {
				reason = reasonOf(p.out.err)
			}
		}
		made := locksteward.MasterPass{
			Node: p.master.Addr, Complete: p.out.err == nil, Reason: reasonOf(p.out.err), Keys: p.out.keys,
		}
		if p.source.replica != nil {
			made.Replica, made.AsOf = p.source.addr, p.source.asOf
		}
		sweep.Masters = append(sweep.Masters, made)
	}
	if read == 0 {
		// Not one key of not one master: the target is away, whatever answered.
		sweep.Masters = nil
	}
	if len(passes) > 1 && reason != "" {
		reason = fmt.Sprintf("%d of %d masters were not read in full: %s", len(errs), len(passes), reason)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Sweeps++
	if len(errs) == 0 && sweep.Complete() {
		s.stats.CompleteSweeps++
	}
	s.state = locksteward.TargetState{Target: s.target, Up: read > 0, Reason: reason, Nodes: nodes}
	s.state.Target.Mode = s.conn.Mode()
	return errors.Join(errs...)
}

// away notes that nobody could be asked who the masters are.
func (s *Scanner) away(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Sweeps++
	s.state = locksteward.TargetState{Target: s.target, Reason: reasonOf(err)}
	s.state.Target.Mode = s.conn.Mode()
}

func maxTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func sortLosses(losses []locksteward.Loss) {
	slices.SortFunc(losses, func(a, b locksteward.Loss) int {
		if c := strings.Compare(a.Key, b.Key); c != 0 {
			return c
		}
		return strings.Compare(a.Claim.ID, b.Claim.ID)
	})
}
