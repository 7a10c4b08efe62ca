package rules

import (
	"time"

	"github.com/locksteward/locksteward"
)

// heartbeat and heartbeatTTL are the rhythm of lock/record: how often a process
// refreshes its instance key, and how long that lives without. They are repeated
// here since rules judge facts and do not know the wire format; a test compares
// them.
const (
	heartbeat    = 5 * time.Second
	heartbeatTTL = 15 * time.Second
)

// aliveWithin is how old a heartbeat may be while its process counts as alive:
// one and a half beats, so that one late beat does not kill anybody.
const aliveWithin = heartbeat * 3 / 2

// renewSlack is how late a renewal may be beyond the arithmetic: scheduling, one
// round trip and the gap between reading the clock and reading the key.
const renewSlack = 50 * time.Millisecond

// holderLine names the holder, or is empty when nothing is known.
func holderLine(h locksteward.Holder) locksteward.Message {
	parts := holderParts(h)
	if len(parts) == 0 {
		return locksteward.Message{}
	}
	return message("lock.holder", list(parts))
}

// holderParts are what is known of a holder, or of who waits.
func holderParts(h locksteward.Holder) []locksteward.Message {
	parts := named(h.App, h.Host)
	if h.PID != 0 {
		parts = append(parts, message("lock.pid", h.PID))
	}
	if h.Session != "" {
		parts = append(parts, sessionPart(h.Session))
	}
	if h.Instance != "" {
		parts = append(parts, instancePart(h.Instance))
	}
	return parts
}

// named are the parts of a line that name an application and a host, if they are
// known.
func named(app, host string) []locksteward.Message {
	var parts []locksteward.Message
	if app != "" {
		parts = append(parts, message("lock.app", locksteward.DisplayKey(app)))
	}
	if host != "" {
		parts = append(parts, message("lock.host", locksteward.DisplayKey(host)))
	}
	return parts
}

func sessionPart(id string) locksteward.Message {
	return message("lock.session", locksteward.DisplayKey(id))
}

func instancePart(id string) locksteward.Message {
	return message("lock.instance", locksteward.DisplayKey(id))
}

// waitersLine says how many wait, or is empty when nobody does or it cannot be
// known.
func waitersLine(l *locksteward.Lock) locksteward.Message {
	if l.Waiters <= 0 {
		return locksteward.Message{}
	}
	return message("lock.waiters", message("count.clients-wait", l.Waiters))
}

// seenLine says since when this hold was seen.
func seenLine(l *locksteward.Lock, now time.Time) locksteward.Message {
	if l.History.FirstSeen.IsZero() {
		return locksteward.Message{}
	}
	return message("lock.seen", seenFor(l, now), l.History.FirstSeen, message("count.looks", max(1, l.History.Looks)))
}

// seenFor is how long this hold has been seen.
func seenFor(l *locksteward.Lock, now time.Time) time.Duration {
	if l.History.FirstSeen.IsZero() {
		return 0
	}
	return max(0, now.Sub(l.History.FirstSeen))
}

// idleLine says for how long no client had touched the key before it was first
// seen. Later looks only add the time since: our own reads hide the rest.
func idleLine(l *locksteward.Lock) locksteward.Message {
	before := l.Idle - seenFor(l, l.At)
	if before < time.Second {
		return locksteward.Message{}
	}
	return message("lock.idle", before)
}

// ttlLine says how much of the lease is left.
func ttlLine(l *locksteward.Lock) locksteward.Message {
	switch {
	case l.NeverExpires():
		return message("lock.ttl-none")
	case l.Lifetime == locksteward.LifetimeSession:
		return message("lock.ttl-session")
	}
	return message("lock.ttl", l.TTL)
}

// alive says that the heartbeat of the holder's process is fresh.
func alive(i *locksteward.Instance, now time.Time) bool {
	return i != nil && !i.Beat.IsZero() && now.Sub(i.Beat) <= aliveWithin
}

// aliveLine is evidence that the holder's process runs.
func aliveLine(l *locksteward.Lock, now time.Time) locksteward.Message {
	if !alive(l.Instance, now) {
		return locksteward.Message{}
	}
	return message("lock.alive", max(0, now.Sub(l.Instance.Beat)))
}

// silentLine is evidence that the holder's process does not run. Only our own
// library writes heartbeats: that others have none says nothing.
func silentLine(l *locksteward.Lock, now time.Time) locksteward.Message {
	switch {
	case l.Instance == nil && l.Claim != nil && l.Holder.Instance != "":
		return message("lock.heartbeat-gone", heartbeatTTL)
	case l.Instance != nil && !alive(l.Instance, now) && !l.Instance.Beat.IsZero():
		return message("lock.heartbeat-late", now.Sub(l.Instance.Beat), heartbeat)
	default:
		return locksteward.Message{}
	}
}

// nameOnlyLine is the doubt about a key that nothing but its name makes a lock.
func nameOnlyLine(l *locksteward.Lock) locksteward.Message {
	if l.Configured || l.Confidence != locksteward.ConfidenceLow {
		return locksteward.Message{}
	}
	return message("lock.name-only")
}

// expireAt is when the lease runs out, and false for a key without expiry.
// It is computed from the TTL where the store does not report it.
func expireAt(l *locksteward.Lock) (time.Time, bool) {
	switch {
	case l.TTL == locksteward.NoExpiry || l.ExpireAt == locksteward.NoExpireAt:
		return time.Time{}, false
	case l.ExpireAt > 0:
		return time.UnixMilli(l.ExpireAt), true
	default:
		return l.At.Add(l.TTL), true
	}
}

// leaseFrom is the last look at which the expiry is known to have been set
// already: the lease is at least as long as was left of it then.
func leaseFrom(l *locksteward.Lock) time.Time {
	if l.History.LastRenewal.After(l.History.FirstSeen) {
		return l.History.LastRenewal
	}
	return l.History.FirstSeen
}
