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
	"github.com/locksteward/locksteward/source"
)

// merge applies what a sweep found to the table and fills sweep with it.
func (s *Scanner) merge(sweep *locksteward.Sweep, swept *source.Sweep, run *sweepRun) {
	alive := map[string]*locksteward.Instance{}
	losses := map[lossKey]locksteward.Loss{}
	total, at := 0, time.Time{}
	for i := range swept.Parts {
		p := &swept.Parts[i]
		total += len(run.parts[i].locks)
		maps.Copy(alive, p.Instances)
		for _, l := range p.Losses {
			losses[lossKey{l.Key, l.Claim.ID}] = l
		}
		at = maxTime(at, p.At)
	}
	if !at.IsZero() {
		sweep.At = at
	}
	sweep.Endings = s.table.takePending()
	var names []string
	seen := make([]*entry, 0, total)
	for i := range swept.Parts {
		p := &swept.Parts[i]
		names = append(names, p.CandidateNames...)
		sweep.Candidates += p.Candidates
		for _, c := range s.mergePart(p, &run.parts[i], alive, swept.Unknown, losses) {
			if c.now != nil {
				seen = append(seen, c.now)
			}
			if c.ended != nil {
				sweep.Endings = append(sweep.Endings, *c.ended)
				enrich(losses, &c.ended.Lock)
			}
			if c.unread != "" {
				s.source.Request(c.unread, false)
			}
		}
		if p.Err == nil {
			s.table.dropRestored(p.Owns)
			seen = append(seen, s.table.late(p.Owns, uint32(s.number), p.At.Add(sweep.Started.Sub(s.clock())))...)
		}
		run.parts[i].locks, p.Absent, p.NotLock = nil, nil, nil
		for _, waiters := range run.parts[i].waiters {
			sweep.Waiters = append(sweep.Waiters, waiters...)
		}
		for _, set := range p.Waiters {
			sweep.Waiters = append(sweep.Waiters, set.Waiters...)
		}
	}
	s.table.setCandidates(names, sweep.Candidates)
	seen = s.table.sortEntries(seen)
	sweep.SetLocks(len(seen), s.table.visit(seen))
	sortWaiters(sweep.Waiters)
	sweep.Instances = listInstances(alive)
	s.tellLosses(sweep, losses, alive, swept.Unknown)
}

// mergePart applies what one part of a sweep found to the table. Only a complete part ends
// holds whose keys are gone.
func (s *Scanner) mergePart(p *source.Part, found *sweptPart, alive map[string]*locksteward.Instance, unknown map[string]bool, losses map[lossKey]locksteward.Loss) []change {
	t, servers := s.table, &s.facts.servers
	process := p.Server.Process
	pushed := t.pushedFlushOf(p.Node)
	if p.Err == nil {
		t.onLine(p.Node, p.Server.Line)
	}
	found.flush = servers.window(p, pushed)
	evidence := sweepEvidence{
		number:   uint32(s.number),
		lostKeys: servers.tookKeys(p) || len(s.runIDs) > 0 && process != "" && !s.runIDs[process],
		until:    servers.changedHands(p, pushed),
		flush:    &found.flush,
		suspects: p.Unannounced != nil,
	}
	changes := t.apply(&batch{
		node: p.Node, began: t.tombstones.began, losses: losses, sweep: &evidence,
		about: len(found.locks) + len(p.Absent) + len(p.NotLock),
		readings: func(yield func(reading) bool) {
			for i := range found.locks {
				l := &found.locks[i]
				s.join(l, p, alive, unknown)
				if !yield(reading{key: l.key, lock: l, at: l.at}) {
					return
				}
			}
			if p.Err != nil {
				return
			}
			for key, at := range p.Absent {
				if !yield(reading{key: key, at: micros(at), gone: true}) {
					return
				}
			}
			for key, at := range p.NotLock {
				if !yield(reading{key: key, at: micros(at)}) {
					return
				}
			}
		},
	})
	found.stood = evidence.stood
	if p.Unannounced != nil {
		p.Unannounced(evidence.changed)
	}
	return changes
}

// join adds to a reading what other keys tell: heartbeat and waiters. The table is locked.
func (s *Scanner) join(l *lockState, p *source.Part, alive map[string]*locksteward.Instance, unknown map[string]bool) {
	if id := l.holderInstance(); id != "" {
		l.instance = alive[id]
		if l.instance == nil && unknown[id] {
			l.instance = s.table.lastInstance(l.key, id)
		}
	}
	if l.traits.waitersApart {
		if c, ok := p.Waiters[l.key]; ok {
			l.waiters = int32(c.Count)
		} else if p.Err == nil {
			l.waiters = 0 // all keys were seen, and none that has waiters of it
		}
	}
}

// lastInstance replaces a heartbeat that could not be read: what was known of
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
func (s *Scanner) report(sweep *locksteward.Sweep, swept *source.Sweep) error {
	var errs []error
	var nodes []locksteward.NodeState
	read := 0
	reason := ""
	for i := range swept.Parts {
		p := &swept.Parts[i]
		if p.Err == nil || p.Scanned > 0 || p.Answered && errors.Is(p.Err, source.ErrStalled) {
			read++
		}
		if p.Answered {
			nodes = append(nodes, p.Server.State)
		}
		if p.Err != nil {
			errs = append(errs, fmt.Errorf("pass over %s: %w", p.Node, p.Err))
			if reason == "" {
				reason = s.source.Explain(p.Err)
			}
		}
		sweep.Masters = append(sweep.Masters, locksteward.MasterPass{
			Node: p.Node, Complete: p.Err == nil, Reason: s.source.Explain(p.Err), Keys: p.Scanned, Replica: p.Replica, AsOf: p.AsOf,
		})
	}
	sweep.Masters = append(sweep.Masters, swept.Gaps...)
	if read == 0 {
		// Not one key of not one master: the target is away, whatever answered.
		sweep.Masters = nil
	}
	if len(swept.Parts) > 1 && reason != "" {
		reason = fmt.Sprintf("%d of %d masters were not read in full: %s", len(errs), len(swept.Parts), reason)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Sweeps++
	if len(errs) == 0 && sweep.Complete() {
		s.stats.CompleteSweeps++
	}
	s.state = locksteward.TargetState{Target: s.target, Up: read > 0, Reason: reason, Nodes: nodes}
	s.state.Target.Mode = s.source.Topology()
	return errors.Join(errs...)
}

// away notes that nobody could be asked who the masters are.
func (s *Scanner) away(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Sweeps++
	s.state = locksteward.TargetState{Target: s.target, Reason: s.source.Explain(err)}
	s.state.Target.Mode = s.source.Topology()
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
