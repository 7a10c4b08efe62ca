package rules

import (
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// HolderDead is the name of the rule that judges whether a holder is dead.
const HolderDead = "holder/dead"

const (
	// provenAfter is for how long a heartbeat must be missing before a proof of
	// death counts: one TTL, in at least two looks.
	provenAfter = heartbeatTTL
	provenLooks = 2
	// presumedAfter is the silence from which death is presumed.
	presumedAfter = 3 * heartbeatTTL
	presumedLooks = 3
)

// holderDead reports locks whose holder's process is dead.
type holderDead struct{}

var holderDeadDoc = Doc{
	Name:     HolderDead,
	Title:    "The process that holds a lock is dead",
	Scope:    ScopeLock,
	Since:    "0.1.0",
	Severity: locksteward.SeverityWarning,
	Risk:     locksteward.RiskDeadlock,
	Cause: locksteward.Text{
		EN: "The process ended without releasing the lock (crash, kill -9, out of memory, machine lost), and the lease is long or has no end.",
		ZH: "进程未释放锁就已结束（崩溃、kill -9、内存不足、机器丢失），而租约很长或没有期限。",
	},
	Remedy: locksteward.Text{
		EN: "Make sure that the process is gone, and free the lock: request a release, or wait for the TTL. " +
			"Then take a short TTL with renewal, so that the lock of a dead process frees itself within seconds.",
		ZH: "确认进程确已不存在，然后释放锁：提交释放请求，或等待过期。" +
			"之后使用较短的过期时间并自动续期，使死亡进程的锁在数秒内自行释放。",
	},
}

// Doc implements [Rule].
func (holderDead) Doc() Doc { return holderDeadDoc }

// Evaluate implements [Rule].
func (holderDead) Evaluate(in Input) Verdict {
	l, id := in.Lock, in.Lock.Holder.Instance
	if l.Claim == nil || id == "" {
		return in.notApplicable(because("the lock does not name a process with a heartbeat: whether its holder lives cannot be known"))
	}
	if l.Instance != nil {
		switch {
		case l.Instance.Beat.IsZero():
			return in.notApplicable(because("the heartbeat of the holder's process could not be read"))
		case alive(l.Instance, in.Now):
			return in.clear(func() string { return aliveLine(l, in.Now).EN })
		}
		return in.clear(func() string { return "the heartbeat of the holder's process is late, and not gone" })
	}
	var s *locksteward.Silence
	if in.Situation != nil {
		if in.Situation.Alive[id] != nil {
			return in.clear(because("the heartbeat of the holder's process was there at the last sweep"))
		}
		s = in.Situation.Silent[id]
	}
	if s == nil {
		return in.notApplicable(because("the heartbeat of the holder's process is gone, and no complete look has missed it before"))
	}
	if target := in.aliveElsewhere(l.Target, id); target != "" {
		return in.clear(func() string { return fmt.Sprintf("the holder's process has a heartbeat on target %s", target) })
	}
	if sign := signOfLife(l); sign.After(s.Since) {
		return in.clear(func() string {
			return fmt.Sprintf("the holder renewed the lock or reported progress at %s, after its heartbeat was missed first", at(sign))
		})
	}
	if e, paused := in.Situation.pause(in.Now); paused {
		return in.notApplicable(func() string { return pausedReason(e) })
	}
	return judgeSilence(in, s)
}

// judgeSilence says what follows from a heartbeat that is missing.
func judgeSilence(in Input, s *locksteward.Silence) Verdict {
	switch proven := s.Successor != nil || s.Deleted && s.Listeners == 0; {
	case proven && s.For >= provenAfter && s.Looks >= provenLooks:
		return dead(in, s, locksteward.Proven)
	case proven:
		return in.clear(func() string {
			return proofLine(s).EN + "; it counts when the heartbeat has been missing for " + dur(provenAfter)
		})
	case s.Listeners < 0:
		return in.notApplicable(because("whether the holder's process still has a connection cannot be known: PUBSUB NUMSUB was not answered"))
	case s.Listeners > 0:
		return in.clear(func() string {
			return fmt.Sprintf("the heartbeat is missing for %s, but the holder's process still has %s to its channel",
				dur(s.For), count(s.Listeners, "subscription", "subscriptions"))
		})
	case s.For < presumedAfter || s.Looks < presumedLooks:
		return in.clear(func() string {
			return fmt.Sprintf("the heartbeat is missing for %s, in %s; death is presumed after %s in %d looks",
				dur(s.For), count(s.Looks, "look", "looks"), dur(presumedAfter), presumedLooks)
		})
	default:
		return dead(in, s, locksteward.Presumed)
	}
}

// proofLine is what proves the death of a silent process.
func proofLine(s *locksteward.Silence) locksteward.Text {
	if s.Successor != nil {
		return phrase("proven: %s was started at %s in the same declared slot %s, after the last heartbeat of this one",
			"已证实：%s在 %s 于同一声明的 slot %s 中启动，晚于本进程的上次心跳",
			processName(s.Successor), at(s.Successor.Started), locksteward.DisplayKey(s.Instance.Slot))
	}
	return locksteward.Text{
		EN: "proven: the process said farewell: its heartbeat was deleted before its time, while nothing happened to the server, and it is not connected",
		ZH: "已证实：进程已自行告别：其心跳在到期之前被删除，期间服务器未发生任何事件，且进程已无连接",
	}
}

func dead(in Input, s *locksteward.Silence, proof locksteward.Proof) Verdict {
	l, key := in.Lock, locksteward.MarkKey(in.Lock.Key)
	f := locksteward.Finding{
		Proof: proof,
		Evidence: join(
			groundLine(s, proof),
			phrase("its heartbeat is missing for %s, since %s, in %s without a break", "其心跳已缺失 %s，自 %s 起，连续 %s查看均未看到",
				dur(s.For), at(s.Since), counted(s.Looks, "look", "looks", "次")),
			lastHeardLine(s),
			noListenerLine(s),
			holderLine(l.Holder),
			heldSinceLine(l),
			ttlLine(l),
			waitersLine(l),
		),
		CounterEvidence: join(listenersLine(s)),
	}
	if proof == locksteward.Proven {
		f.Summary = text("lock %s is held by a process that is dead: proven", "锁 %s 的持有者进程已死亡：已证实", key)
		return in.fires(f)
	}
	f.Summary = text("lock %s is held by a process that is presumed dead: silent for %s",
		"推定锁 %s 的持有者进程已死亡：已静默 %s", key, dur(s.For))
	if l.Claim.EndsWithHeartbeat {
		f.Evidence = append(f.Evidence, locksteward.Text{
			EN: "the holder promised to stop working before its heartbeat ran out (ends_with_heartbeat)",
			ZH: "持有者承诺在其心跳到期之前停止工作（ends_with_heartbeat）",
		})
	}
	f.CounterEvidence = append(f.CounterEvidence, locksteward.Text{
		EN: "a process that cannot reach this server, or is frozen with its machine, is silent too, and may come back and write",
		ZH: "无法访问本服务器的进程，或随机器一同冻结的进程，同样会静默，恢复后可能继续写入",
	})
	return in.fires(f)
}

// groundLine is what a verdict of death rests on.
func groundLine(s *locksteward.Silence, proof locksteward.Proof) locksteward.Text {
	if proof == locksteward.Proven {
		return proofLine(s)
	}
	return locksteward.Text{EN: "presumed: nothing but its silence says that the process is dead", ZH: "推定：只有其静默表明进程已死亡"}
}

// signOfLife is when the holder last did something that only it can do.
func signOfLife(l *locksteward.Lock) time.Time {
	last := l.History.LastRenewal
	for _, t := range []time.Time{l.Claim.Renewed, l.Claim.Progress, l.Claim.Acquired} {
		if t.After(last) {
			last = t
		}
	}
	return last
}

func processName(i *locksteward.Instance) locksteward.Text {
	if i.Host == "" {
		return text("instance %s", "实例 %s ", locksteward.DisplayKey(i.ID))
	}
	return text("instance %s (host %s, pid %d)", "实例 %s（主机 %s，pid %d）", locksteward.DisplayKey(i.ID), locksteward.DisplayKey(i.Host), i.PID)
}

func lastHeardLine(s *locksteward.Silence) locksteward.Text {
	if s.Instance.Beat.IsZero() {
		return locksteward.Text{EN: "no heartbeat of it was ever seen from here", ZH: "从未在此看到过它的心跳"}
	}
	return text("its last heartbeat that was seen is of %s", "最后一次看到其心跳是在 %s", at(s.Instance.Beat))
}

func noListenerLine(s *locksteward.Silence) locksteward.Text {
	if s.Listeners != 0 {
		return locksteward.Text{}
	}
	return locksteward.Text{EN: "no connection is subscribed to its channel (PUBSUB NUMSUB is 0)", ZH: "没有连接订阅其频道（PUBSUB NUMSUB 为 0）"}
}

func listenersLine(s *locksteward.Silence) locksteward.Text {
	switch {
	case s.Listeners > 0:
		return phrase("%s still subscribed to its channel", "仍有 %s订阅其频道", counted(s.Listeners, "connection is", "connections are", "个连接"))
	case s.Listeners < 0:
		return locksteward.Text{
			EN: "whether it still has a connection is not known: PUBSUB NUMSUB was not answered",
			ZH: "不知道它是否仍有连接：PUBSUB NUMSUB 未得到应答",
		}
	default:
		return locksteward.Text{}
	}
}

func heldSinceLine(l *locksteward.Lock) locksteward.Text {
	if l.Claim.Acquired.IsZero() {
		return locksteward.Text{}
	}
	return text("acquired at %s", "加锁于 %s", at(l.Claim.Acquired))
}
