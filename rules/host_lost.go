package rules

import (
	"fmt"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// HostLost is the name of the rule that finds lost hosts.
const HostLost = "host/lost"

// What makes many locks of one host one event.
const (
	// hostWindow is how far the last signs of life may be apart: two heartbeat
	// TTLs cover the rhythms of heartbeats and of renewals of a usual lease.
	hostWindow       = 2 * heartbeatTTL
	minHostInstances = 3
	minHostLocks     = 5
	// hostShare is the part of the host's locks that must be stale, in percent.
	hostShare = 80
)

// inhibitedByHost are the rules that say of one lock what host/lost says of all.
var inhibitedByHost = map[string]bool{
	HolderDead: true, "renewal/failing": true, "hold/lost": true, HoldTooLong: true,
}

// Host is what is known of one host's locks on one target.
type Host struct {
	Name  string
	Locks int
	// Stale are those of the locks that are stale.
	Stale  []*locksteward.Lock
	Losses []*locksteward.Loss
}

// add takes in a lock as it was at now.
func (h *Host) add(l *locksteward.Lock, now time.Time) {
	h.Locks++
	if isStale(l, now) {
		h.Stale = append(h.Stale, new(*l))
	}
}

// hostLost reports hosts all of whose locks went stale together: one finding
// instead of one for each lock.
type hostLost struct{}

var hostLostDoc = Doc{
	Name:     HostLost,
	Title:    "Many locks of one host went stale together",
	Scope:    ScopeHost,
	Since:    "0.1.0",
	Severity: locksteward.SeverityWarning,
	Cause:    message("host/lost.cause"),
	Remedy:   message("host/lost.remedy"),
}

// Doc implements [Rule].
func (hostLost) Doc() Doc { return hostLostDoc }

// Evaluate implements [Rule].
func (hostLost) Evaluate(in Input) Verdict {
	h := in.Host
	if h == nil || h.Name == "" {
		return in.notApplicable(because("the lock does not say on which host its holder is"))
	}
	if e, paused := in.Situation.pause(in.Now); paused {
		return in.notApplicable(func() string { return pausedReason(e) })
	}
	g := h.stale(in)
	instances, all := g.instances(), g.counted
	living := in.Situation.living(h.Name)
	switch {
	case len(g.signs) == 0:
		return in.clear(because("no lock of the host is stale"))
	case len(instances) < minHostInstances && len(g.signs) < minHostLocks:
		return in.clear(func() string {
			return fmt.Sprintf("%s of %s stale: fewer than %d processes and %d locks",
				count(len(g.signs), "lock", "locks"), count(len(instances), "process", "processes"), minHostInstances, minHostLocks)
		})
	case 100*len(g.signs) < hostShare*all || 100*len(instances) < hostShare*(len(instances)+living):
		return in.clear(func() string {
			return fmt.Sprintf("%d of %d locks went stale together, and %s of the host %s alive",
				len(g.signs), all, count(living, "process", "processes"), isAre(living))
		})
	}
	first, last := g.signs[0].at, g.signs[len(g.signs)-1].at
	return in.fires(locksteward.Finding{
		Summary: message("host/lost.summary", locksteward.DisplayKey(h.Name), len(g.signs), all),
		Evidence: join(
			message("host/lost.stale", message("count.locks", len(g.signs)), message("count.processes", len(instances))),
			message("host/lost.last-signs", first, last),
			lostLine(g),
			locksLine(g.keys(), len(g.keys())),
		),
		CounterEvidence: join(
			livingLine(living),
			message("host/lost.may-be-alive"),
		),
	})
}

// sign is the last sign of life of the holder of one lock that is stale.
type sign struct {
	at       time.Time
	key      string
	instance string
	lost     bool // the lock is gone already
}

// staleGroup is the largest set of a host's locks that went stale within one
// window, oldest sign first.
type staleGroup struct {
	signs []sign
	// counted is how many locks the host has, those of the group that are lost
	// included.
	counted int
}

// stale groups the host's stale locks.
func (h *Host) stale(in Input) staleGroup {
	var all []sign
	for _, l := range h.Stale {
		all = append(all, sign{at: in.lastSign(l), key: l.Key, instance: l.Holder.Instance})
	}
	for _, s := range h.Losses {
		if s.Instance == nil && s.Holder.Instance != "" {
			all = append(all, sign{at: in.lastSignOf(s), key: s.Key, instance: s.Holder.Instance, lost: true})
		}
	}
	slices.SortStableFunc(all, func(a, b sign) int { return a.at.Compare(b.at) })
	var g staleGroup
	from := 0
	for i := range all {
		for all[i].at.Sub(all[from].at) > hostWindow {
			from++
		}
		if i+1-from > len(g.signs) {
			g.signs = all[from : i+1]
		}
	}
	g.counted = h.Locks
	for _, s := range g.signs {
		if s.lost {
			g.counted++
		}
	}
	return g
}

func (g staleGroup) instances() []string {
	var ids []string
	for _, s := range g.signs {
		ids = append(ids, s.instance)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (g staleGroup) keys() []string {
	var keys []string
	for _, s := range g.signs {
		keys = append(keys, s.key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Stale says of a lock of our library that, when it was last looked at, its
// process did not beat, or did not renew as it said.
func Stale(l locksteward.Lock) bool { return isStale(&l, l.At) }

// isStale says that the process of a lock of ours does not beat, or does not
// renew as it said.
func isStale(l *locksteward.Lock, now time.Time) bool {
	if l.Claim == nil || l.Holder.Instance == "" {
		return false
	}
	if l.Instance == nil {
		return true
	}
	return claimedRenewal(l, now).late()
}

// lastSign is the last that is known of the holder: a heartbeat or a renewal.
func (in Input) lastSign(l *locksteward.Lock) time.Time {
	last := signOfLife(l)
	if l.Instance != nil && l.Instance.Beat.After(last) {
		last = l.Instance.Beat
	}
	return in.lastBeat(l.Holder.Instance, last)
}

func (in Input) lastSignOf(s *locksteward.Loss) time.Time {
	last := s.Claim.Acquired
	if s.Claim.Renewed.After(last) {
		last = s.Claim.Renewed
	}
	return in.lastBeat(s.Holder.Instance, last)
}

// lastBeat is the last heartbeat that was seen of a silent process, if it is
// later than last.
func (in Input) lastBeat(id string, last time.Time) time.Time {
	if in.Situation == nil {
		return last
	}
	if s := in.Situation.Silent[id]; s != nil && s.Instance.Beat.After(last) {
		return s.Instance.Beat
	}
	return last
}

// living counts the processes of a host that beat.
func (s *Situation) living(host string) int {
	if s == nil {
		return 0
	}
	n := 0
	for _, i := range s.Alive {
		if i.Host == host && alive(i, s.At) {
			n++
		}
	}
	return n
}

func livingLine(n int) locksteward.Message {
	if n == 0 {
		return locksteward.Message{}
	}
	return message("host/lost.living", message("count.processes-of-host", n))
}

func lostLine(g staleGroup) locksteward.Message {
	n := 0
	for _, s := range g.signs {
		if s.lost {
			n++
		}
	}
	if n == 0 {
		return locksteward.Message{}
	}
	return message("host/lost.lost", message("count.of-them-have", n))
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
