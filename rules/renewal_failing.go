package rules

import (
	"fmt"

	"github.com/locksteward/locksteward"
)

// fewRenewals is how many inferred renewals still look like an application that
// extends by hand now and then.
const fewRenewals = 5

// minFailedRenewals is how many failed attempts make a pattern, if they are at
// least as many as the successful ones.
const minFailedRenewals = 3

// renewalFailing reports holders whose watchdog stopped or struggles: the lease
// will run out while they still work.
type renewalFailing struct{}

var renewalFailingDoc = Doc{
	Name:     "renewal/failing",
	Title:    "A lock's renewal is late or fails",
	Scope:    ScopeLock,
	Since:    "0.1.0",
	Severity: locksteward.SeverityWarning,
	Cause: locksteward.Text{
		EN: "The holder's process died, is paused (garbage collection, SIGSTOP, a swapping or frozen machine), its watchdog ended, or it cannot reach Redis (network, exhausted pool, timeouts).",
		ZH: "持有者进程已退出或被暂停（GC、SIGSTOP、机器换页或冻结），看门狗已停止，或无法访问 Redis（网络、连接池耗尽、超时）。",
	},
	Remedy: locksteward.Text{
		EN: "Look at the holder's process before the lease runs out: if it still works, others may soon work beside it. " +
			"If it is gone, do nothing: the TTL frees the lock. Renew each third of the TTL with retries, on a connection of its own.",
		ZH: "在租约到期前查看持有者进程：若仍在执行，很快可能有他人与其并行。若进程已不存在，无需处理：过期时间会释放锁。" +
			"续期间隔取过期时间的三分之一，带重试，并使用独立连接。",
	},
}

// Doc implements [Rule].
func (renewalFailing) Doc() Doc { return renewalFailingDoc }

// Evaluate implements [Rule].
func (renewalFailing) Evaluate(in Input) Verdict {
	l := in.Lock
	r := judgeRenewal(l, in.LibraryFacts, in.Now)
	switch {
	case !r.known:
		return in.notApplicable(r.why)
	case r.late():
		return renewalLate(in, r)
	case l.Claim != nil && l.Claim.RenewFailures >= minFailedRenewals && l.Claim.RenewFailures >= l.Claim.Renewals:
		return renewalStruggles(in, r)
	default:
		return in.clear(func() string { return onTimeLine(in, r).EN })
	}
}

func renewalLate(in Input, r renewal) Verdict {
	l, key := in.Lock, locksteward.MarkKey(in.Lock.Key)
	since, every := dur(max(0, in.Now.Sub(r.last))), r.interval()
	f := locksteward.Finding{
		Summary: locksteward.Text{
			EN: fmt.Sprintf("renewal of lock %s is late: last %s ago, due %s", key, since, every.EN),
			ZH: fmt.Sprintf("锁 %s 的续期已延迟：上次续期在 %s 前，应%s一次", key, since, every.ZH),
		},
		Evidence: join(
			renewedLine(in, r),
			text("overdue by %s: with this lease and interval a renewal is late after %s", "已逾期 %s：按此租约和间隔，超过 %s 未续期即为延迟", dur(r.overdue), dur(r.after)),
			ttlLine(l),
			failuresLine(l),
			silentLine(l, in.Now),
			holderLine(l.Holder),
			waitersLine(l),
		),
		CounterEvidence: join(aliveLine(l, in.Now), handExtendedLine(l, r), sameThreadLine(l)),
	}
	if l.TTL != locksteward.NoExpiry {
		left := dur(max(0, l.TTL))
		f.Summary.EN += fmt.Sprintf("; the lock runs out in %s", left)
		f.Summary.ZH += fmt.Sprintf("；%s 后到期", left)
	}
	return in.fires(f)
}

func renewalStruggles(in Input, r renewal) Verdict {
	l, c := in.Lock, in.Lock.Claim
	return in.fires(locksteward.Finding{
		Summary: text("renewals of lock %s keep failing: %d failed attempts, %d succeeded",
			"锁 %s 的续期持续失败：失败 %d 次，成功 %d 次", locksteward.MarkKey(l.Key), c.RenewFailures, c.Renewals),
		Evidence: join(failuresLine(l), ttlLine(l), holderLine(l.Holder), waitersLine(l)),
		CounterEvidence: join(
			onTimeLine(in, r),
			aliveLine(l, in.Now),
		),
		Cause: locksteward.Text{
			EN: "The holder reaches Redis only now and then: a lossy network, an exhausted pool, timeouts below the server's latency, or a server that is overloaded.",
			ZH: "持有者只能时断时续地访问 Redis：网络丢包、连接池耗尽、超时小于服务器延迟，或服务器过载。",
		},
	})
}

// renewedLine says how the hold renews and when it last did.
func renewedLine(in Input, r renewal) locksteward.Text {
	ago := dur(max(0, in.Now.Sub(r.last)))
	if !r.inferred {
		return phrase("renews %s, as the holder says; last renewed %s ago", "%s续期一次，据持有者所写；上次续期在 %s 前", r.interval(), ago)
	}
	return phrase("renews %s, judged from %s seen in this hold; one was last seen %s ago", "%s续期一次，据本次持有期间看到的 %s判断；最近一次在 %s 前看到",
		r.interval(), counted(in.Lock.History.Renewals, "renewal", "renewals", "次续期"), ago)
}

// onTimeLine is renewedLine of a hold whose renewal is not late.
func onTimeLine(in Input, r renewal) locksteward.Text {
	return phrase("%s, on time", "%s，未延迟", renewedLine(in, r))
}

// interval words the interval, with "about" where it was only seen from outside.
func (r renewal) interval() locksteward.Text {
	if r.inferred {
		return text("about every %s", "约每 %s ", dur(r.every))
	}
	return text("every %s", "每 %s ", dur(r.every))
}

func failuresLine(l *locksteward.Lock) locksteward.Text {
	if l.Claim == nil || l.Claim.RenewFailures == 0 {
		return locksteward.Text{}
	}
	return text("%d failed and %d successful attempts in this hold, as the holder told with its last success",
		"本次持有期间续期失败 %d 次、成功 %d 次，据持有者上次成功时所写", l.Claim.RenewFailures, l.Claim.Renewals)
}

func handExtendedLine(l *locksteward.Lock, r renewal) locksteward.Text {
	if !r.inferred || l.History.Renewals >= fewRenewals {
		return locksteward.Text{}
	}
	return phrase("only %s seen: the application may extend the lock by hand, and just not need it again", "只看到 %s：应用可能是手动延长锁，现在只是不再需要",
		counted(l.History.Renewals, "renewal was", "renewals were", "次续期"))
}

// sameThreadLine is the doubt about tokens that name a thread and not a hold.
func sameThreadLine(l *locksteward.Lock) locksteward.Text {
	if l.Claim != nil || l.Identity != locksteward.IdentityLineage {
		return locksteward.Text{}
	}
	return locksteward.Text{
		EN: "the token is not fresh per hold: the same holder may have released and retaken the lock, with a fixed lease that nothing renews",
		ZH: "token 并非每次加锁都重新生成：同一持有者可能释放后又重新取得了锁，且使用无人续期的固定租约",
	}
}
