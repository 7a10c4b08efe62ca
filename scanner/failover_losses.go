package scanner

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// maxFailoverKeys bounds how many locks are named that a failover may have taken; all
// are counted.
const maxFailoverKeys = 10

// failoverSuspect is a hold that a failover or a restart may have lost: it was on one server
// or process and is gone from the one that has its key now. Or one that had ended and is
// back, perhaps with older data.
type failoverSuspect struct {
	key      string
	class    string
	from, to string
	since    int64 // the last write that was seen of it, µs of the clock of from
	expireAt int64 // when its lease ends, as it was seen last
	ranOut   bool  // which may be why it is gone
	waited   int   // sweeps that did not read to
	// ended is the line of data on which its end was seen, of one that stands again;
	// "" for others.
	ended string
}

// suspectWaits is how many sweeps a suspect waits for one that reads its server: a watch
// may know of a failover before the sweep that is on its way then.
const suspectWaits = 2

// inheritance is what a server that took over is known to have had from the one before
// it: all that was written until then, µs of that one's clock.
type inheritance struct {
	from  string
	until int64
}

// endsAt notes that a look at node, at at, found the hold of e to be over. Where
// another server or process had the data when the hold was seen last, a failover or a
// restart may have taken it; until is the last look at another one's data at
// that address (µs; 0: none). The table is locked.
func (t *Table) endsAt(e *entry, node string, at, until int64) {
	f := t.flushed[node]
	another := e.traits.node != node || e.lastSeen <= until || f != nil && !f.ordered && e.lastSeen <= f.at
	if another {
		t.failoverSuspects = append(t.failoverSuspects, failoverSuspect{
			key: e.key, class: e.traits.class, from: e.traits.node, to: node,
			since: max(e.firstSeen, e.lastRenewal), expireAt: e.expireAt, ranOut: e.ranOut(at),
		})
	}
	t.rememberEnd(e, node)
}

// takeFailoverSuspects returns those of servers that the sweep has read, once and in the order
// of their keys.
func (t *Table) takeFailoverSuspects(read func(addr string) bool) []failoverSuspect {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []failoverSuspect
	var wait []failoverSuspect
	for _, s := range t.failoverSuspects {
		switch s.waited++; {
		case read(s.to):
			out = append(out, s)
		case s.waited < suspectWaits:
			wait = append(wait, s)
		}
	}
	t.failoverSuspects = wait
	slices.SortFunc(out, func(a, b failoverSuspect) int { return strings.Compare(a.key, b.key) })
	return out
}

// changedHands is until when, in µs, another server or another process had the data at
// the address of p: until the last sweep at least, and until a process began that was
// started since. Its uptime is in whole seconds, so that it may have begun up to one
// earlier: up is when the watch found another one, which is later than that; nil if it
// did not. It is 0 if the data is the same as then.
func (v *servers) changedHands(p *source.Part, up *pushedFlush) int64 {
	was, now := v.nodes[p.Node], p.Server.Line
	if was.replID == "" || now == "" || was.replID == now {
		return 0
	}
	until := micros(was.at)
	if uptime := p.Server.Uptime; uptime >= 0 {
		began := micros(p.At.Add(-uptime))
		if up != nil && !up.ordered && up.at > until {
			began = min(began, up.at)
		}
		until = max(until, began)
	}
	return until
}

// inherit notes what now, which took over, is known to have from the server before it:
// its own account of how far it had followed that one, beside the offset at which that
// one was when it was seen last. Where it had not come so far, or does not say,
// nothing is proved.
func (v *servers) inherit(now serverSeen, server *source.Server) {
	delete(v.inherited, now.addr)
	if server.FormerLine == "" {
		return
	}
	for _, was := range v.nodes {
		if was.replID == server.FormerLine && was.offset >= 0 && server.FormerOffset > was.offset {
			v.inherited[now.addr] = inheritance{from: was.addr, until: was.offsetAt}
		}
	}
}

// settleFailovers counts the locks that failovers and restarts may have taken: those
// that are gone and were not, as they were seen last, among what the new master had by
// then; and those whose lease went on when the server was back.
func (v *servers) settleFailovers(at time.Time, take func(read func(addr string) bool) []failoverSuspect) {
	for _, s := range take(func(addr string) bool { return v.nodes[addr].at.Equal(at) }) {
		if s.ended != "" {
			v.broughtBack(s)
			continue
		}
		if had := v.inherited[s.to]; had.from == s.from && s.since <= had.until {
			continue // the new master had it: somebody released it
		}
		for i := len(v.events) - 1; i >= 0; i-- {
			e := &v.events[i]
			if !s.mayBeTakenBy(e) {
				continue
			}
			if e.Kind == locksteward.ServerRestarted {
				if !s.outlasts(e) {
					break // its lease ended while the server was away
				}
				if e.Classes = maps.Clone(e.Classes); e.Classes == nil { // readers have the other one
					e.Classes = map[string]int{}
				}
				e.Classes[s.class]++
			}
			e.Locks, v.changed = e.Locks+1, true
			if len(e.Keys) < maxFailoverKeys {
				e.Keys = append(slices.Clone(e.Keys), s.key) // readers have the other one
			}
			break
		}
	}
}

// mayBeTakenBy says whether e is the failover or the restart between the two looks.
func (s *failoverSuspect) mayBeTakenBy(e *locksteward.ServerEvent) bool {
	switch e.Kind {
	case locksteward.ServerFailedOver:
		return !s.ranOut && e.Node == s.to && (e.Was == "" || e.Was == s.from)
	case locksteward.ServerRestarted:
		return e.Node == s.to && s.from == s.to && !e.After.IsZero()
	default:
		return false
	}
}

// outlasts says that the lease would have gone on after the restart e: the server did
// not end it.
func (s *failoverSuspect) outlasts(e *locksteward.ServerEvent) bool {
	back := e.Started
	if back.IsZero() {
		back = e.At
	}
	return s.expireAt == locksteward.NoExpireAt || s.expireAt > back.UnixMilli()
}

// broughtBack counts a hold that stands again with what happened to its server. On the
// same data somebody has taken it again, with the same token.
func (v *servers) broughtBack(s failoverSuspect) {
	if v.nodes[s.to].replID == s.ended {
		return
	}
	for i := len(v.events) - 1; i >= 0; i-- {
		e := &v.events[i]
		if e.Kind != locksteward.ServerFailedOver && e.Kind != locksteward.ServerRestarted || e.Node != s.to || e.After.IsZero() {
			continue
		}
		e.Back, v.changed = e.Back+1, true
		if len(e.BackKeys) < maxFailoverKeys {
			e.BackKeys = append(slices.Clone(e.BackKeys), s.key)
		}
		return
	}
}
