package rules

import (
	"strconv"
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
func holderLine(h locksteward.Holder) locksteward.Text {
	parts := named(h.App, h.Host)
	if h.PID != 0 {
		parts = append(parts, text("pid %d", "pid %d", h.PID))
	}
	if h.Session != "" {
		parts = append(parts, sessionPart(h.Session))
	}
	if h.Instance != "" {
		parts = append(parts, instancePart(h.Instance))
	}
	if len(parts) == 0 {
		return locksteward.Text{}
	}
	return phrase("holder: %s", "持有者：%s", list(parts))
}

// named are the parts of a line that name an application and a host, if they are
// known.
func named(app, host string) []locksteward.Text {
	var parts []locksteward.Text
	if app != "" {
		parts = append(parts, text("app %s", "应用 %s", locksteward.DisplayKey(app)))
	}
	if host != "" {
		parts = append(parts, text("host %s", "主机 %s", locksteward.DisplayKey(host)))
	}
	return parts
}

func sessionPart(id string) locksteward.Text {
	return text("session %s", "会话 %s", locksteward.DisplayKey(id))
}

func instancePart(id string) locksteward.Text {
	return text("instance %s", "实例 %s", locksteward.DisplayKey(id))
}

// waitersLine says how many wait, or is empty when nobody does or it cannot be
// told.
func waitersLine(l *locksteward.Lock) locksteward.Text {
	if l.Waiters <= 0 {
		return locksteward.Text{}
	}
	return phrase("%s for it", "有 %s在等待它", counted(l.Waiters, "client waits", "clients wait", "个客户端"))
}

// seenLine says since when this hold was seen.
func seenLine(l *locksteward.Lock, now time.Time) locksteward.Text {
	if l.History.FirstSeen.IsZero() {
		return locksteward.Text{}
	}
	// Almost every finding has this line, in each sweep anew: a storm is spared its
	// formats.
	ago, first, looks := dur(seenFor(l, now)), at(l.History.FirstSeen), max(1, l.History.Looks)
	return locksteward.Text{
		EN: "first seen " + ago + " ago, at " + first + ", in " + count(looks, "look", "looks"),
		ZH: ago + " 前首次看到（" + first + "），共看到 " + strconv.Itoa(looks) + " 次",
	}
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
func idleLine(l *locksteward.Lock) locksteward.Text {
	before := l.Idle - seenFor(l, l.At)
	if before < time.Second {
		return locksteward.Text{}
	}
	return text("no client had read or written it for %s when it was first seen (OBJECT IDLETIME)",
		"首次看到时，已有 %s 没有客户端读写过它（OBJECT IDLETIME）", dur(before))
}

// ttlLine says how much of the lease is left.
func ttlLine(l *locksteward.Lock) locksteward.Text {
	if l.TTL == locksteward.NoExpiry {
		return locksteward.Text{EN: "no TTL (PTTL is -1): the key never expires", ZH: "没有过期时间（PTTL 为 -1）：该键永不过期"}
	}
	return text("TTL %s left", "距过期还有 %s", dur(l.TTL))
}

// alive says that the heartbeat of the holder's process is fresh.
func alive(i *locksteward.Instance, now time.Time) bool {
	return i != nil && !i.Beat.IsZero() && now.Sub(i.Beat) <= aliveWithin
}

// aliveLine is evidence that the holder's process runs.
func aliveLine(l *locksteward.Lock, now time.Time) locksteward.Text {
	if !alive(l.Instance, now) {
		return locksteward.Text{}
	}
	return text("the holder's process is alive: its last heartbeat was %s ago", "持有者进程仍存活：上次心跳在 %s 前",
		dur(max(0, now.Sub(l.Instance.Beat))))
}

// silentLine is evidence that the holder's process does not run. Only our own
// library writes heartbeats: that others have none says nothing.
func silentLine(l *locksteward.Lock, now time.Time) locksteward.Text {
	switch {
	case l.Instance == nil && l.Claim != nil && l.Holder.Instance != "":
		return text("the heartbeat of the holder's process is gone (more than %s old)", "持有者进程的心跳已消失（超过 %s）", dur(heartbeatTTL))
	case l.Instance != nil && !alive(l.Instance, now) && !l.Instance.Beat.IsZero():
		return text("the last heartbeat of the holder's process was %s ago, one is due every %s", "持有者进程的上次心跳在 %s 前，应每 %s 一次",
			dur(now.Sub(l.Instance.Beat)), dur(heartbeat))
	default:
		return locksteward.Text{}
	}
}

// nameOnlyLine is the doubt about a key that nothing but its name makes a lock.
func nameOnlyLine(l *locksteward.Lock) locksteward.Text {
	if l.Configured || l.Confidence != locksteward.ConfidenceLow {
		return locksteward.Text{}
	}
	return locksteward.Text{
		EN: "only the key's name says that it is a lock; no configured class claims it",
		ZH: "只有键名表明它是锁，没有任何已配置的 class 与之匹配",
	}
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
