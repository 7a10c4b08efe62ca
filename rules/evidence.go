package rules

import (
	"fmt"
	"strings"
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
func holderLine(h locksteward.Holder) string {
	var parts []string
	add := func(format, value string) {
		if value != "" {
			parts = append(parts, fmt.Sprintf(format, locksteward.DisplayKey(value)))
		}
	}
	add("app %s", h.App)
	add("host %s", h.Host)
	if h.PID != 0 {
		parts = append(parts, fmt.Sprintf("pid %d", h.PID))
	}
	add("session %s", h.Session)
	add("instance %s", h.Instance)
	if len(parts) == 0 {
		return ""
	}
	return "holder: " + strings.Join(parts, ", ")
}

// waitersLine says how many wait, or is empty when nobody does or it cannot be
// told.
func waitersLine(l *locksteward.Lock) string {
	if l.Waiters <= 0 {
		return ""
	}
	return count(l.Waiters, "client waits", "clients wait") + " for it"
}

// seenLine says since when this hold was seen.
func seenLine(l *locksteward.Lock, now time.Time) string {
	if l.History.FirstSeen.IsZero() {
		return ""
	}
	return fmt.Sprintf("first seen %s ago, at %s, in %s",
		dur(seenFor(l, now)), at(l.History.FirstSeen), count(max(1, l.History.Looks), "look", "looks"))
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
func idleLine(l *locksteward.Lock) string {
	before := l.Idle - seenFor(l, l.At)
	if before < time.Second {
		return ""
	}
	return fmt.Sprintf("no client had read or written it for %s when it was first seen (OBJECT IDLETIME)", dur(before))
}

// ttlLine says how much of the lease is left.
func ttlLine(l *locksteward.Lock) string {
	if l.TTL == locksteward.NoExpiry {
		return "no TTL (PTTL is -1): the key never expires"
	}
	return fmt.Sprintf("TTL %s left", dur(l.TTL))
}

// alive says that the heartbeat of the holder's process is fresh.
func alive(i *locksteward.Instance, now time.Time) bool {
	return i != nil && !i.Beat.IsZero() && now.Sub(i.Beat) <= aliveWithin
}

// aliveLine is evidence that the holder's process runs.
func aliveLine(l *locksteward.Lock, now time.Time) string {
	if !alive(l.Instance, now) {
		return ""
	}
	return fmt.Sprintf("the holder's process is alive: its last heartbeat was %s ago", dur(max(0, now.Sub(l.Instance.Beat))))
}

// silentLine is evidence that the holder's process does not run. Only our own
// library writes heartbeats: that others have none says nothing.
func silentLine(l *locksteward.Lock, now time.Time) string {
	switch {
	case l.Instance == nil && l.Claim != nil && l.Holder.Instance != "":
		return fmt.Sprintf("the heartbeat of the holder's process is gone (more than %s old)", dur(heartbeatTTL))
	case l.Instance != nil && !alive(l.Instance, now) && !l.Instance.Beat.IsZero():
		return fmt.Sprintf("the last heartbeat of the holder's process was %s ago, one is due every %s",
			dur(now.Sub(l.Instance.Beat)), dur(heartbeat))
	default:
		return ""
	}
}

// nameOnlyLine is the doubt about a key that nothing but its name makes a lock.
func nameOnlyLine(l *locksteward.Lock) string {
	if l.Configured || l.Confidence != locksteward.ConfidenceLow {
		return ""
	}
	return "only the key's name says that it is a lock; no configured class claims it"
}

// expireAt is when the lease runs out, and false for a key without expiry.
// Servers before 7.0 do not tell PEXPIRETIME, so there it is computed.
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
