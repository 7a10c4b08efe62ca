package scanner

import (
	"maps"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source"
)

// Bounds of a longest lease: what somebody wrote beside a lock is no more than
// that, and a live process needs some heartbeats to be seen again.
const (
	minPause = 3 * record.HeartbeatTTL
	maxPause = 24 * time.Hour
)

// eventsFor is how long an event is reported at least: as long as metadata outlives
// a lock that was lost by it.
const eventsFor = record.Grace

// eventFor is how long e is reported at least: a flush explains losses that are found
// a while after it.
func eventFor(e locksteward.ServerEvent) time.Duration {
	if e.Kind == locksteward.ServerFlushed {
		return eventsFor + time.Minute
	}
	return eventsFor
}

// maxEvents bounds what is remembered of a server that does nothing but restart.
const maxEvents = 64

// uptimeSlack is how far an uptime in whole seconds may be from the truth,
// compared with the time between two looks by two clocks.
const uptimeSlack = 2 * time.Second

// servers is what is known of the server processes of a target.
type servers struct {
	nodes   map[string]serverSeen // by address
	masters []string              // of the last sweep, sorted
	// longest is the longest lease of the last sweep that had locks.
	longest time.Duration
	events  []locksteward.ServerEvent
	open    map[string]flushWindow // by address, see there
	// inherited is what those that took over had from the ones before, by address.
	inherited map[string]inheritance
	changed   bool
}

// serverSeen is one server at the last look.
type serverSeen struct {
	addr          string
	runID, replID string
	promoted      bool // it followed another master once and does no more
	at            time.Time
	clock, ours   time.Time     // its own clock at a moment of ours; zero if not known
	uptime        time.Duration // negative: not known
	evicted       int64         // likewise
	flushes       int64         // likewise
	// offset is how far its replicas would have to be, at offsetAt, µs of its clock;
	// negative: not known.
	offset, offsetAt int64
	// refused is how often it refused writes since its start, nil if not known, and
	// refusals what follows from it.
	refused  map[locksteward.RefusalReason]int64
	refusals []locksteward.Refusal
}

// observe compares the servers of a sweep with those of the one before and returns
// what happened.
func (v *servers) observe(sweep *locksteward.Sweep, parts []source.Part, found []sweptPart) []locksteward.ServerEvent {
	longest := longestLease(sweep)
	lease := clampPause(max(v.longest, longest))
	if sweep.LockCount() > 0 {
		v.longest = longest
	}
	var current []string
	for i := range parts {
		current = append(current, parts[i].Node)
	}
	slices.Sort(current)
	left := slices.DeleteFunc(slices.Clone(v.masters), func(addr string) bool { return slices.Contains(current, addr) })

	var news []locksteward.ServerEvent
	for i := range parts {
		p := &parts[i]
		server := &p.Server
		if !p.Answered || server.Process == "" || server.Replica {
			continue // it does not tell, or it is no master: nothing can be compared
		}
		now := serverSeen{
			addr: p.Node, runID: server.Process, replID: server.Line, promoted: server.Promoted,
			at: sweep.At, clock: p.At, ours: p.AnsweredAt, uptime: server.Uptime, evicted: server.Evicted, flushes: server.Flushes,
			offset: server.Offset, offsetAt: server.OffsetAt, refused: server.Refused,
		}
		was, met := v.nodes[now.addr]
		now.refusals = refusals(was, now, server)
		happened := v.compare(was, met, now, left)
		for _, e := range happened {
			if e.Kind == locksteward.ServerFailedOver {
				if !slices.Contains(v.masters, now.addr) {
					v.masters = append(v.masters, now.addr) // reported once, even by incomplete sweeps
				}
				v.inherit(now, server)
			}
			if e.Kind == locksteward.ServerRestarted {
				e.Started, e.Stood = now.started(), found[i].stood
			}
			if e = pausing(e, now, lease); e.After.IsZero() && !e.Pause.After(e.At) {
				continue // young, and yet older than every lease
			}
			news = append(news, e)
		}
		v.changed = v.changed || !met || was.runID != now.runID || was.replID != now.replID
		v.nodes[now.addr] = now
	}
	v.forget(current)
	if sweep.Complete() && !slices.Equal(v.masters, current) {
		v.masters, v.changed = current, true
	}
	v.keep(news, sweep.At)
	return news
}

// started is when the process began, by the server's clock; zero if that is not known.
func (s *serverSeen) started() time.Time {
	if s.uptime < 0 || s.clock.IsZero() {
		return time.Time{}
	}
	return s.clock.Add(-s.uptime)
}

// pausing says until when verdicts wait because of e.
func pausing(e locksteward.ServerEvent, now serverSeen, lease time.Duration) locksteward.ServerEvent {
	switch {
	case e.Kind != locksteward.ServerRestarted && e.Kind != locksteward.ServerFailedOver:
	case e.After.IsZero():
		e.Pause = e.At.Add(lease - now.uptime) // it began with the process
	default:
		e.Pause = e.At.Add(lease)
	}
	return e
}

// compare says what happened to one server since it was seen last. left are the
// masters that serve no keys any more.
func (v *servers) compare(was serverSeen, met bool, now serverSeen, left []string) []locksteward.ServerEvent {
	event := locksteward.ServerEvent{Node: now.addr, After: was.at, At: now.at}
	one := func(kind locksteward.ServerEventKind) []locksteward.ServerEvent {
		event.Kind = kind
		return []locksteward.ServerEvent{event}
	}
	if len(left) > 0 && !slices.Contains(v.masters, now.addr) {
		event.After = v.lastLook()
		if len(left) == 1 {
			event.Was = left[0]
		}
		return one(locksteward.ServerFailedOver)
	}
	switch {
	case !met && len(v.masters) > 0, !met && (now.uptime < 0 || now.uptime >= maxPause):
		return nil // a node that joined a Cluster, or one that has been up for long
	case !met:
		return one(locksteward.ServerRestarted) // it may have lost what it had
	case was.runID != now.runID && !restarted(was, now.uptime, now.at):
		return one(locksteward.ServerFailedOver)
	case was.runID != now.runID:
		out := one(locksteward.ServerRestarted)
		if now.flushes > 0 {
			event.Kind, event.Count = locksteward.ServerFlushed, now.flushes // since its start
			out = append(out, event)
		}
		return out
	case was.replID != "" && was.replID != now.replID && now.promoted:
		// The same process was a replica in between.
		return one(locksteward.ServerFailedOver)
	}
	var out []locksteward.ServerEvent
	grown := func(kind locksteward.ServerEventKind, before, after int64) {
		if before >= 0 && after > before {
			e := event
			e.Kind, e.Count = kind, after-before
			out = append(out, e)
		}
	}
	if step := clockStep(was, now); step != 0 {
		e := event
		e.Kind, e.Step = locksteward.ServerClockStepped, step
		out = append(out, e)
	}
	grown(locksteward.ServerEvicted, was.evicted, now.evicted)
	grown(locksteward.ServerFlushed, was.flushes, now.flushes)
	return out
}

// restarted says of another process than was, which has been up for uptime at at, that it
// was started since. One that is older answers under an address that was another's then.
func restarted(was serverSeen, uptime time.Duration, at time.Time) bool {
	return uptime <= at.Sub(was.at)+uptimeSlack
}

// tookKeys reports whether the server of p lost keys since it was seen last: it evicted
// some or its data was flushed.
func (v *servers) tookKeys(p *source.Part) bool {
	was, met := v.nodes[p.Node]
	if !met || p.Server.Process != was.runID {
		return false
	}
	return was.evicted >= 0 && p.Server.Evicted > was.evicted || was.flushes >= 0 && p.Server.Flushes > was.flushes
}

// clockSlack is by how much a server's clock may differ from ours between two
// looks without having been set: a look takes a moment, and clocks are slewed.
const clockSlack = 3 * time.Second

// clockStep is how far a server's clock jumped between two looks, 0 if it did not.
// Our monotonic clock and our wall clock must both say so: the one stands still
// while this machine is suspended, and the other may be set itself.
func clockStep(was, now serverSeen) time.Duration {
	if was.clock.IsZero() || now.clock.IsZero() {
		return 0
	}
	went := now.clock.Sub(was.clock)
	byMono, byWall := went-now.ours.Sub(was.ours), went-now.ours.Round(0).Sub(was.ours.Round(0))
	switch {
	case byMono > clockSlack && byWall > clockSlack:
		return min(byMono, byWall).Round(time.Millisecond)
	case byMono < -clockSlack && byWall < -clockSlack:
		return max(byMono, byWall).Round(time.Millisecond)
	}
	return 0
}

// lastLook is when any server was seen last.
func (v *servers) lastLook() time.Time {
	var last time.Time
	for _, n := range v.nodes {
		last = maxTime(last, n.at)
	}
	return last
}

// forget bounds what is remembered of servers that are masters no more.
func (v *servers) forget(current []string) {
	if len(v.nodes) <= 4*len(current)+64 {
		return
	}
	maps.DeleteFunc(v.nodes, func(addr string, _ serverSeen) bool { return !slices.Contains(current, addr) })
	maps.DeleteFunc(v.inherited, func(addr string, _ inheritance) bool { return !slices.Contains(current, addr) })
}

// keep adds what is new and drops what is over.
func (v *servers) keep(news []locksteward.ServerEvent, now time.Time) {
	v.events = append(v.events, news...)
	v.events = slices.DeleteFunc(v.events, func(e locksteward.ServerEvent) bool {
		return now.Sub(e.At) >= eventFor(e) && !now.Before(e.Pause)
	})
	if extra := len(v.events) - maxEvents; extra > 0 {
		v.events = slices.Delete(v.events, 0, extra)
	}
}

// longestLease is the longest lease of locks that have one.
func longestLease(sweep *locksteward.Sweep) time.Duration {
	var longest time.Duration
	for l := range sweep.AllLocks() {
		if l.Kind == locksteward.KindCandidate {
			continue
		}
		longest = max(longest, l.TTL)
		if l.Claim != nil {
			longest = max(longest, l.Claim.TTL)
		}
	}
	return longest
}

func clampPause(d time.Duration) time.Duration { return min(max(d, minPause), maxPause) }
