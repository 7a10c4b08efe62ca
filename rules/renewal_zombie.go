package rules

import (
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// zombieFactor is how many times its expectation a renewed hold must last, and
// zombieRenewals how often it must have been renewed, to be called a zombie:
// work that takes twice as long as usual is slow, not dead.
const (
	zombieFactor   = 3
	zombieRenewals = 3
)

// renewalZombie reports holds that a watchdog keeps alive far past the time that
// their work should have taken.
type renewalZombie struct{}

var renewalZombieDoc = Doc{
	Name:     "renewal/zombie",
	Title:    "A lock is renewed on and on, far past its expected duration",
	Scope:    ScopeLock,
	Since:    "0.1.0",
	Severity: locksteward.SeverityWarning,
	Risk:     locksteward.RiskDeadlock,
	Cause: locksteward.Text{
		EN: "The work hangs or has ended without releasing, and its watchdog goes on renewing: a thread that is stuck or died, a release that threw, a renewal task that outlives its lock.",
		ZH: "执行已卡死，或已结束却未释放，而看门狗仍在续期：线程卡住或已退出、释放时抛出异常、续期任务比锁活得更久。",
	},
	Remedy: locksteward.Text{
		EN: "Look at the holder's process: a stack dump shows whether the work still runs. If it does not, end the process, and the TTL frees the lock; a forced release of a lock whose holder lives may let two write. " +
			"Bound each hold with Lease.MaxHold, and report the progress of the work, so that this can be told from slow work.",
		ZH: "查看持有者进程：线程堆栈能说明是否仍在执行。若已不再执行，结束该进程，过期时间会释放锁；强制释放仍存活的持有者的锁可能导致两个写入者。" +
			"用 Lease.MaxHold 限制每次持有时间，并上报执行进度，以便与缓慢的执行区分。",
	},
}

// Doc implements [Rule].
func (renewalZombie) Doc() Doc { return renewalZombieDoc }

// Evaluate implements [Rule].
func (renewalZombie) Evaluate(in Input) Verdict {
	l := in.Lock
	expect := expectation(in)
	if expect <= 0 {
		return in.notApplicable(func() string {
			return fmt.Sprintf("no expectation: neither the holder's metadata nor class %q says how long a hold may last", in.Class.Name)
		})
	}
	renewals := renewalsOf(l)
	if renewals < zombieRenewals {
		return in.clear(func() string { return renewalsLine(l, renewals).EN + ", too few to speak of a zombie" })
	}
	age := provenAge(l)
	if age.basis == locksteward.AgeNone {
		return in.notApplicable(because("its age is not known"))
	}
	if age.proven/zombieFactor <= expect {
		return in.clear(func() string {
			return fmt.Sprintf("held for %s, not more than %d times the expected %s", dur(age.proven), zombieFactor, dur(expect))
		})
	}
	if r := judgeRenewal(l, in.LibraryFacts, in.Now); r.late() {
		return in.clear(because("its renewal is late, so nothing keeps it alive for ever; renewal/failing judges that"))
	}
	if since, told := sinceProgress(l, in.Now); told && since <= expect {
		return in.clear(func() string { return progressLine(l, in.Now, expect).EN + ": it is slow, not stuck" })
	}
	return in.fires(locksteward.Finding{
		Summary: text("lock %s is renewed on and on: held for %s, expected %s, renewed %d times",
			"锁 %s 一直被续期：已持有 %s，预期 %s，续期 %d 次", locksteward.MarkKey(l.Key), dur(age.proven), dur(expect), renewals),
		Evidence: join(
			ageLine(l, age),
			expectLine(in, expect),
			renewalsLine(l, renewals),
			renewingStill(in),
			stalledLine(l, in.Now, expect),
			holderLine(l.Holder),
			purposeLine(l),
			silentLine(l, in.Now),
			waitersLine(l),
		),
		CounterEvidence: join(
			minimumLine(l, age),
			progressUnknownLine(l),
			maxHoldLine(l, in.Now),
			aliveLine(l, in.Now),
			nameOnlyLine(l),
		),
	})
}

// renewalsOf is how often the hold was renewed: the holder counts better than
// looks from outside do.
func renewalsOf(l *locksteward.Lock) int64 {
	seen := int64(l.History.Renewals)
	if l.Claim == nil {
		return seen
	}
	return max(seen, l.Claim.Renewals)
}

func renewalsLine(l *locksteward.Lock, n int64) locksteward.Text {
	times := text("%d times", "%d 次", n)
	if n == 1 {
		times.EN = "once"
	}
	if l.Claim != nil && l.Claim.Renewals == n {
		return phrase("renewed %s, as the holder says", "已续期 %s，据持有者所写", times)
	}
	return phrase("seen renewed %s", "看到续期 %s", times)
}

// renewingStill is renewedLine where the renewal can be judged.
func renewingStill(in Input) locksteward.Text {
	r := judgeRenewal(in.Lock, in.LibraryFacts, in.Now)
	if !r.onTime() {
		return locksteward.Text{}
	}
	return renewedLine(in, r)
}

// progressUnknownLine is the doubt about work that says nothing of itself.
func progressUnknownLine(l *locksteward.Lock) locksteward.Text {
	if l.Claim != nil && !l.Claim.Progress.IsZero() {
		return locksteward.Text{}
	}
	return locksteward.Text{EN: "the work reports no progress, so whether it goes on is not known", ZH: "执行任务不上报进度，因此不知道它是否仍在继续"}
}

// maxHoldLine says when the holder gives up by itself.
func maxHoldLine(l *locksteward.Lock, now time.Time) locksteward.Text {
	if l.Claim == nil || l.Claim.MaxHold <= 0 || l.Claim.Acquired.IsZero() {
		return locksteward.Text{}
	}
	end := l.Claim.Acquired.Add(l.Claim.MaxHold)
	if !end.After(now) {
		return locksteward.Text{}
	}
	return text("the holder gives up by itself in %s (max_hold %s)", "持有者将在 %s 后自行放弃（max_hold %s）", dur(end.Sub(now)), dur(l.Claim.MaxHold))
}
