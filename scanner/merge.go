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

// mergeAtOnce is how many locks are taken into the table before others may read it.
const mergeAtOnce = 2000

// merge takes what the passes found into the table and fills sweep with it.
func (s *Scanner) merge(sweep *locksteward.Sweep, passes []*pass, unknown map[string]bool, told beyond) {
	alive := map[string]*locksteward.Instance{}
	losses := map[lossKey]locksteward.Loss{}
	total, at := 0, time.Time{}
	for _, p := range passes {
		total += p.out.locks.len()
		maps.Copy(alive, p.out.instances)
		for _, l := range p.out.losses {
			losses[lossKey{l.Key, l.Claim.ID}] = l
		}
		at = maxTime(at, p.out.at)
	}
	if !at.IsZero() {
		sweep.At = at
	}
	sweep.Pack(packEntries(s.table, s.update(sweep, passes, total, alive, unknown, losses, told.flushes)))
	crowds := make([]map[string]crowd, len(passes))
	for i, p := range passes {
		crowds[i] = p.out.waiters
	}
	sweep.Waiters = s.listed(crowds...)
	sweep.Instances = listInstances(alive)
	s.tellLosses(sweep, losses, alive, unknown)
}

// update takes what the passes found into the table, frees it, and returns the
// entries of all locks seen.
func (s *Scanner) update(sweep *locksteward.Sweep, passes []*pass, total int, alive map[string]*locksteward.Instance, unknown map[string]bool, losses map[lossKey]locksteward.Loss, flushes map[string]int64) []*entry {
	t := s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := make([]*entry, 0, total)
	sweep.Endings = t.pending
	t.pending = nil
	t.candidates, t.candidateCount = nil, 0
	turn := uint32(s.turn)
	for _, p := range passes {
		check := s.watch.suspicionOf(p.master.Addr)
		p.flush = s.facts.servers.window(p, flushes, t.flushed[p.master.Addr])
		before := s.facts.servers.changedHands(p, t.flushed[p.master.Addr])
		if p.out.err == nil {
			t.onLine(p.master.Addr, p.out.info["master_replid"])
		}
		for l := range p.out.locks.all(true) {
			l.kind = t.intern(*l.kind)
			s.join(&l, p, alive, unknown)
			if old := t.entries[l.key]; old != nil && l.at >= old.at || old == nil && !t.hasDeparted(&l) {
				check.found(l.key, old, &l, l.at)
			}
			known := t.entries[l.key]
			now, replaced := t.apply(reading{key: l.key, lock: &l, at: l.at, began: t.departed.began, merging: true})
			switch {
			case replaced != nil:
				p.flush.ends(replaced, l.at)
				t.endsAt(replaced, p.master.Addr, l.at, before)
			case known != nil && now != nil:
				p.flush.stands(known, l.at)
				if known.firstSeen <= before {
					p.stood++
				}
			}
			if now == nil {
				if t.departed.before > 0 {
					s.watch.revisit(p.master.Addr, l.key)
				}
				continue
			}
			if replaced != nil {
				sweep.Endings = append(sweep.Endings, replacedBy(replaced, s.target, l.at))
				enrich(losses, replaced)
			}
			if now.turn == turn {
				continue // two masters tell of it, since it moved
			}
			now.turn = turn
			seen = append(seen, now)
			if len(seen)%mergeAtOnce == 0 {
				t.mu.Unlock() // whoever reads the table need not wait for all of it
				t.mu.Lock()
			}
		}
		s.end(sweep, p, losses, check, s.facts.servers.tookKeys(p, flushes))
		if p.out.err == nil {
			seen = append(seen, t.late(p, turn, p.out.at.Add(sweep.Started.Sub(s.clock())))...)
			s.watch.merged(p.master.Addr, sweep.Started, p.out.keys)
		}
		p.out.locks, p.slots, p.shapes, p.counted = looks{}, nil, nil, nil
		names := p.out.candidateNames[:min(len(p.out.candidateNames), maxCandidateNames-len(t.candidates))]
		t.candidates = append(t.candidates, names...)
		t.candidateCount += p.out.candidates
	}
	sweep.Candidates = t.candidateCount
	return seen
}

// join adds to a look what other keys tell: heartbeat and waiters.
func (s *Scanner) join(l *look, p *pass, alive map[string]*locksteward.Instance, unknown map[string]bool) {
	if id := l.holderInstance(); id != "" {
		l.instance = alive[id]
		if l.instance == nil && unknown[id] {
			l.instance = s.lastInstance(l.key, id)
		}
	}
	if l.kind.dialect == formats.Locksteward {
		if c, ok := p.out.waiters[l.key]; ok {
			l.waiters = int32(c.count)
		} else if p.out.err == nil {
			l.waiters = 0 // all keys were seen, and none that has waiters of it
		}
	}
}

// lastInstance stands for a heartbeat that could not be read: what was known of
// it last, or that there may be one. "Not known" must not pass for "gone".
func (s *Scanner) lastInstance(key, id string) *locksteward.Instance {
	if e, ok := s.table.entries[key]; ok && e.instance != nil && e.instance.ID == id {
		return e.instance
	}
	return &locksteward.Instance{ID: id}
}

// end finds the known locks that are certainly over; taken says that the server
// lost keys since the sweep before.
func (s *Scanner) end(sweep *locksteward.Sweep, p *pass, losses map[lossKey]locksteward.Loss, check *suspicion, taken bool) {
	if p.out.err != nil {
		return
	}
	s.table.dropRestored(p.master.Owns)
	before := s.facts.servers.changedHands(p, s.table.flushed[p.master.Addr])
	taken = taken || len(s.runIDs) > 0 && p.out.info["run_id"] != "" && !s.runIDs[p.out.info["run_id"]]
	for key, at := range p.out.gone {
		_, e := s.table.apply(reading{key: key, at: micros(at), began: s.table.departed.began, merging: true})
		if e == nil {
			continue
		}
		check.found(key, e, nil, micros(at))
		var lost *locksteward.Loss
		if e.claim != nil {
			if l, ok := losses[lossKey{key, e.claim.ID}]; ok {
				lost = &l
			}
		}
		sweep.Endings = append(sweep.Endings, endingOf(e, s.target, at, lost, taken || s.table.flushedSince(e)))
		p.flush.ends(e, micros(at))
		s.table.endsAt(e, p.master.Addr, micros(at), before)
	}
	for key, at := range p.out.noLock {
		if _, e := s.table.apply(reading{key: key, at: micros(at), began: s.table.departed.began, merging: true}); e != nil {
			sweep.Endings = append(sweep.Endings, replacedBy(e, s.target, micros(at)))
			p.flush.ends(e, micros(at))
		}
	}
}

func replacedBy(e *entry, target locksteward.Target, at int64) locksteward.Ending {
	return locksteward.Ending{Lock: e.lock(target), How: locksteward.EndedReplaced, At: fromMicros(at)}
}

// enrich completes a loss of which the successor tells only the id.
func enrich(losses map[lossKey]locksteward.Loss, lost *entry) {
	if lost.claim == nil {
		return
	}
	at := lossKey{lost.key, lost.claim.ID}
	if l, ok := losses[at]; ok && l.Claim.Acquired.IsZero() {
		l.Claim = *lost.claim
		if lost.holder != nil {
			l.Holder = *lost.holder
		}
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
		if p.out.err == nil || p.out.keys > 0 || p.out.greeted && errors.Is(p.out.err, errTimeout) {
			read++
		}
		if p.out.greeted {
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
		if p.walk.replica != nil {
			made.Replica, made.AsOf = p.walk.addr, p.walk.asOf
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
