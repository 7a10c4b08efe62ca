package scanner

import (
	"maps"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// pushedFlush is a flush that the server pushed, without saying of which database.
type pushedFlush struct {
	at int64 // µs of the server's clock
	// received is when the push was read, by our clock: at is only as good as what is known of
	// the difference between the two, which a busy machine takes to be some
	// milliseconds too small or too large.
	received time.Time
	// gone counts the known holds that were gone in a later reading, stood those that were
	// not: if there are any, another database was flushed.
	gone, stood int
	// held is how many known holds stood before it, as far as their leases have not run
	// out since: gone comes up to it when all of them have been read again.
	held int
	// before and found are the looks of the first that is gone: the last that saw it
	// and the first that did not, µs of the server's clock as it reported them. at is by
	// ours and what the two differ, and late by what the push waited to be read.
	before, found int64
	reported      bool // gone is unchanged since the last report
	ordered       bool // by a command: the data did not go with a process
}

// kind is what happened to the server: where no command ordered it, another process has
// the address, started since or not.
func (f *pushedFlush) kind() locksteward.ServerEventKind {
	if f.ordered {
		return locksteward.ServerFlushed
	}
	return locksteward.ServerRestarted
}

// flushLate is by how much a flush may be noted too late: its push waits up to 10 ms
// to be read, and longer in a busy process. A hold that was first seen in that time
// may have begun after the flush.
const flushLate = 100 * time.Millisecond

// severalGone is from how many holds on that are gone, and none that stands, all holds
// are put down to the flush: one or two may have ended by themselves meanwhile.
const severalGone = 3

// took is how many holds the flush took. Those that have not been read again yet count:
// of 60,000 that takes half a minute, and people act on the first report.
func (f *pushedFlush) took() int {
	if f.gone < severalGone {
		return f.gone
	}
	return max(f.gone, f.held)
}

// flush notes that the data of the server at addr went at at, by its own clock:
// ordered, as it reported, or with the process that was there before.
func (t *Table) flush(addr string, at time.Time, ordered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := &pushedFlush{at: micros(at), received: time.Now(), ordered: ordered}
	for _, e := range t.entries {
		if e.traits.node == addr && e.lastSeen <= f.at && !e.ranOut(f.at) {
			f.held++
		}
	}
	if old := t.flushed[addr]; ordered && old != nil && old.ordered && old.stood == 0 {
		f.gone, f.before, f.found = old.gone, old.before, old.found // no sweep has taken it yet
		f.held += old.gone
	}
	t.flushed[addr] = f
}

// flushedSince reports whether the server of e was flushed since e was read last. t.mu is
// held.
func (t *Table) flushedSince(e *entry) bool {
	f := t.flushed[e.traits.node]
	return f != nil && e.lastSeen <= f.at
}

// countFlushed counts the hold of e, which ended, with the flush of its server. t.mu is
// held.
func (t *Table) countFlushed(e *entry, at int64) {
	f := t.flushed[e.traits.node]
	if e.ranOut(at) {
		f.held--
		return
	}
	if f.gone == 0 {
		f.before, f.found = e.lastSeen, at
	}
	f.gone, f.reported = f.gone+1, false
}

// outlived counts a hold that a reading begun at began, by our clock, found after the
// flush. A reading begun before the push was received may be older than the flush. t.mu is
// held.
func (t *Table) outlived(e *entry, began time.Time) {
	if f := t.flushed[e.traits.node]; f != nil && e.firstSeen <= f.at-flushLate.Microseconds() && began.After(f.received) {
		f.stood++
	}
}

// pushedFlushOf is the last flush that the server at addr reported; nil for none. Its
// time and its kind do not change.
func (t *Table) pushedFlushOf(addr string) *pushedFlush {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.flushed[addr]
}

// flushes are the flushes that took holds and are not reported yet, for an update of the
// watch.
func (t *Table) flushes() []locksteward.ServerEvent {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []locksteward.ServerEvent
	for _, addr := range slices.Sorted(maps.Keys(t.flushed)) {
		f := t.flushed[addr]
		if f.ordered && f.gone > 0 && f.stood == 0 && !f.reported {
			out = append(out, locksteward.ServerEvent{
				Kind: locksteward.ServerFlushed, Node: addr, After: fromMicros(f.before), At: fromMicros(f.found), Locks: f.took(),
			})
			f.reported = true
		}
	}
	return out
}

// takeFlush is how many holds a flush of addr took by what its push led to, once.
func (t *Table) takeFlush(addr string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.flushed[addr]
	if f == nil || !f.ordered || f.stood > 0 {
		return 0
	}
	gone := f.gone
	f.gone = 0
	return gone
}

// ranOut reports whether the last known lease had expired at at, so that the lock would be
// gone by itself.
func (e *entry) ranOut(at int64) bool {
	past := e.expireAt > 0 && at/1000 >= e.expireAt
	return past && (e.claim != nil || e.renewals == 0)
}

// flushWindow is what a sweep finds of the holds that stood before a flush.
type flushWindow struct {
	open   bool
	before int64     // server time, µs: what was seen by then stood before it
	pushed int64     // likewise, when it was, if the server reported it
	event  time.Time // At of its event
	fresh  bool      // it was noticed by this sweep
	// another says that another process has the data than at the last look: holds that
	// are over may have gone with that one, and the watch alone knows which did not.
	another bool
	// ended are the holds that are over, stood those that are not.
	ended, stood int
}

// window opens for a master of which data was flushed since it was seen last. It
// stays open over the next sweep where a hold still seemed to stand: that one may
// have been read before the flush.
func (v *servers) window(p *source.Part, pushed *pushedFlush) flushWindow {
	was, met := v.nodes[p.Node]
	if !met || p.Server.Process == "" {
		return flushWindow{}
	}
	w, before := v.open[p.Node], was.flushes
	if p.Server.Process != was.runID {
		w, before = flushWindow{another: true}, 0 // it counts from its start
		if !restarted(was, p.Server.Uptime, p.At) {
			return flushWindow{}
		}
	}
	if before >= 0 && p.Server.Flushes > before {
		w.fresh = true
		if !w.open {
			w.open, w.before = true, micros(was.at)
		}
	}
	if pushed != nil && pushed.ordered && pushed.at >= w.before {
		w.pushed = pushed.at
	}
	return w
}

// ends counts a hold that had ended at at.
func (w *flushWindow) ends(e *entry, at int64) {
	if w.open && !w.another && !e.ranOut(at) {
		w.ended++
	}
}

// stands counts a hold that was still there at at.
func (w *flushWindow) stands(e *entry, at int64) {
	if w.open && e.firstSeen <= w.before && at > w.pushed {
		w.stood++
	}
}

// settleFlushes reports of each flush how many locks it took, once that is known. The
// sweep was at at, and took returns what the watch saw go.
func (v *servers) settleFlushes(parts []source.Part, found []sweptPart, at time.Time, took func(addr string) int) {
	for i := range parts {
		w, addr := found[i].flush, parts[i].Node
		delete(v.open, addr)
		if !w.open {
			continue
		}
		if w.fresh {
			w.event = at
		}
		w.ended += took(addr)
		switch {
		case parts[i].Err != nil || w.stood > 0 && w.fresh:
			w.fresh, w.stood = false, 0
			v.open[addr] = w
		case w.stood > 0: // it was another database
		default:
			for k := range v.events {
				if e := &v.events[k]; e.Kind == locksteward.ServerFlushed && e.Node == addr && e.At.Equal(w.event) {
					e.Locks, v.changed = w.ended, true
				}
			}
		}
	}
}
