package rules

import (
	"cmp"
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// HoldTooLong is the name of the rule about holds that last too long.
const HoldTooLong = "hold/too-long"

// holdTooLong reports locks that are held past the time they were meant for.
type holdTooLong struct{}

var holdTooLongDoc = Doc{
	Name:     HoldTooLong,
	Title:    "A lock is held past its expected duration",
	Scope:    ScopeLock,
	Since:    "0.1.0",
	Severity: locksteward.SeverityWarning,
	Risk:     locksteward.RiskDeadlock,
	Cause: locksteward.Text{
		EN: "The holder hangs on something slow or stuck (a query, a remote call, another lock) while its watchdog keeps the lock, or it forgot to release, or the work has outgrown its expectation.",
		ZH: "持有者卡在缓慢或停滞的操作上（查询、远程调用、另一把锁），而看门狗仍在续期；或忘记释放；或实际执行时间已超出预期。",
	},
	Remedy: locksteward.Text{
		EN: "Look at what the holder is doing. If it is stuck, end its process and let the TTL free the lock, or request a release once it is surely gone. " +
			"Bound the work with a deadline and the hold with Lease.MaxHold; if the work is right, raise expect.",
		ZH: "查看持有者正在做什么。若已卡死，结束其进程并等待过期时间释放锁，或在确认其已不存在后申请释放。" +
			"为执行设置截止时间，并用 Lease.MaxHold 限制持有时间；若执行时间合理，请调大 expect。",
	},
}

// holdTooLongBareRemedy is the advice where no TTL frees the lock.
var holdTooLongBareRemedy = locksteward.Text{
	EN: "Look at what the holder is doing. The lock has no TTL, so that nothing frees it when its process ends: request a release once it is surely gone. " +
		"Take the lock with a TTL, bound the work with a deadline and the hold with Lease.MaxHold; if the work is right, raise expect.",
	ZH: "查看持有者正在做什么。该锁没有过期时间，进程结束后也不会自动释放：请在确认其已不存在后申请释放。" +
		"加锁时设置过期时间，为执行设置截止时间，并用 Lease.MaxHold 限制持有时间；若执行时间合理，请调大 expect。",
}

// Doc implements [Rule].
func (holdTooLong) Doc() Doc { return holdTooLongDoc }

// Evaluate implements [Rule].
func (holdTooLong) Evaluate(in Input) Verdict {
	l := in.Lock
	expect := expectation(in)
	if expect <= 0 {
		return in.notApplicable(func() string {
			return fmt.Sprintf("no expectation: neither the holder's metadata nor class %q says how long a hold may last", in.Class.Name)
		})
	}
	age := provenAge(l)
	if age.basis == locksteward.AgeNone {
		return in.notApplicable(because("its age is not known"))
	}
	if age.proven <= expect {
		return in.clear(func() string {
			if age.shown > expect {
				return fmt.Sprintf("present for %s, but %s; one hold of more than %s is not proven", dur(age.shown), age.doubt().EN, dur(expect))
			}
			return fmt.Sprintf("held for %s (%s), expected %s", dur(age.shown), age.basis, dur(expect))
		})
	}
	var remedy locksteward.Text // else the usual one
	if l.TTL == locksteward.NoExpiry {
		remedy = holdTooLongBareRemedy
	}
	return in.fires(locksteward.Finding{
		Remedy: remedy,
		Summary: text("lock %s has been held for %s, expected %s",
			"锁 %s 已被持有 %s，预期为 %s", locksteward.MarkKey(l.Key), dur(age.proven), dur(expect)),
		Evidence: join(
			ageLine(l, age),
			writtenSeenLine(l, age),
			idleBefore(l, age),
			expectLine(in, expect),
			age.proof(),
			ttlLine(l),
			holderLine(l.Holder),
			purposeLine(l),
			stalledLine(l, in.Now, expect),
			silentLine(l, in.Now),
			waitersLine(l),
		),
		CounterEvidence: join(
			minimumLine(l, age),
			writtenDoubtLine(l),
			renewingLine(in),
			progressLine(l, in.Now, expect),
			aliveLine(l, in.Now),
			nameOnlyLine(l),
		),
	})
}

// expectation is how long the hold may last: the holder itself knows better than
// its class.
func expectation(in Input) time.Duration {
	if c := in.Lock.Claim; c != nil && c.Expect > 0 {
		return c.Expect
	}
	return in.Class.Expect
}

func expectLine(in Input, expect time.Duration) locksteward.Text {
	if c := in.Lock.Claim; c != nil && c.Expect > 0 {
		return text("expected %s, as the holder's metadata says", "预期为 %s（据持有者的元数据）", dur(expect))
	}
	return text("expected %s, as class %q says", "预期为 %s（据 class %q）", dur(expect), in.Class.Name)
}

// age is how long one and the same hold is proven to last, beside the age that
// screens show.
type age struct {
	shown  time.Duration
	proven time.Duration
	basis  locksteward.AgeBasis
	turnover
}

// turnover is what a constant token makes of an age. Its words are made where they
// are shown: most ages are of locks that nothing is wrong with.
type turnover int

const (
	turnoverSeen    turnover = iota // the token is not constant
	turnoverHidden                  // nothing tells one hold from the next
	turnoverRenewed                 // the expiry was set anew: that may have been the next hold
	turnoverNone                    // the expiry stood still: it is one hold
)

// provenAge is Lock.Age less what turnover could hide: under a constant token a
// release and a new acquisition between two looks leave the same bytes. Such a
// hold is proven only for as long as its expiry stood still.
func provenAge(l *locksteward.Lock) age {
	shown, basis, _ := l.Age()
	a := age{shown: shown, proven: shown, basis: basis}
	if !l.SharedToken || basis == locksteward.AgeClaimed || basis == locksteward.AgeNone {
		return a
	}
	switch {
	case l.TTL == locksteward.NoExpiry:
		a.proven, a.turnover = 0, turnoverHidden
	case l.History.LastRenewal.After(l.History.FirstSeen):
		a.proven, a.turnover = max(0, min(shown, l.At.Sub(l.History.LastRenewal))), turnoverRenewed
	default:
		a.turnover = turnoverNone
	}
	return a
}

// doubted says that a turnover may be hidden, so that proven is less than shown.
func (a age) doubted() bool { return a.turnover == turnoverHidden || a.turnover == turnoverRenewed }

// doubt is why proven is less than shown.
func (a age) doubt() locksteward.Text {
	switch a.turnover {
	case turnoverHidden:
		return locksteward.Text{EN: "a constant token without TTL hides turnover", ZH: "常量 token 且没有过期时间会掩盖易手"}
	case turnoverRenewed:
		return text("the token is constant and the expiry was set anew %s ago", "其 token 为常量，且过期时间在 %s 前被重新设置", dur(a.proven))
	default:
		return locksteward.Text{}
	}
}

// proof is why proven is not less than shown, where that could be doubted.
func (a age) proof() locksteward.Text {
	if a.turnover != turnoverNone {
		return locksteward.Text{}
	}
	return locksteward.Text{
		EN: "its expiry has not moved since, so it is one hold although the token is constant",
		ZH: "此后其到期时间未曾变动，因此虽然 token 为常量，仍是同一次持有",
	}
}

func ageLine(l *locksteward.Lock, a age) locksteward.Text {
	switch {
	case a.basis != locksteward.AgeClaimed:
		return seenLine(l, l.At)
	case isWritten(l):
		return text("acquired at %s, as its value says (the holder's clock)", "加锁于 %s，据其值所写（持有者的时钟）", at(l.Acquired))
	default:
		return text("acquired at %s, as the holder says (server time)", "加锁于 %s，据持有者所写（服务器时间）", at(l.Claim.Acquired))
	}
}

// isWritten says that an age of basis AgeClaimed is that of the lock's value.
func isWritten(l *locksteward.Lock) bool { return l.Claim == nil || l.Claim.Acquired.IsZero() }

// writtenSeenLine shows what was observed beside the time in the value.
func writtenSeenLine(l *locksteward.Lock, a age) locksteward.Text {
	if a.basis != locksteward.AgeClaimed || !isWritten(l) {
		return locksteward.Text{}
	}
	return seenLine(l, l.At)
}

// writtenDoubtLine shows a time in the value that the age does not count.
func writtenDoubtLine(l *locksteward.Lock) locksteward.Text {
	_, doubt := l.WrittenAge()
	if doubt.EN == "" {
		return locksteward.Text{}
	}
	return phrase("its value says %s, which is not counted: %s", "其值写明 %s，未予计入：%s", at(l.Acquired), doubt)
}

// idleBefore is idleLine where the age rests on it.
func idleBefore(l *locksteward.Lock, a age) locksteward.Text {
	if a.basis != locksteward.AgeIdle {
		return locksteward.Text{}
	}
	return idleLine(l)
}

// minimumLine says what is uncertain about the age.
func minimumLine(l *locksteward.Lock, a age) locksteward.Text {
	switch {
	case a.basis == locksteward.AgeClaimed && isWritten(l):
		return locksteward.Text{
			EN: "the age is by the holder's clock, which may differ from the server's",
			ZH: "持有时间依据持有者的时钟，可能与服务器的时钟不一致",
		}
	case a.basis == locksteward.AgeClaimed:
		return locksteward.Text{}
	case a.doubted():
		return phrase("the key was seen for %s, but %s", "已看到该键 %s，但%s", dur(a.shown), a.doubt())
	case l.Identity == locksteward.IdentityStrong || a.turnover == turnoverNone || l.History.Looks < 2:
		return locksteward.Text{}
	default:
		return locksteward.Text{
			EN: "the token is not fresh per hold: its holder may have released and retaken the lock between two looks",
			ZH: "token 并非每次加锁都重新生成：其持有者可能在两次查看之间释放并重新取得了锁",
		}
	}
}

func purposeLine(l *locksteward.Lock) locksteward.Text {
	if l.Claim == nil || l.Claim.Purpose == "" {
		return locksteward.Text{}
	}
	return purposePart(l.Claim.Purpose)
}

func purposePart(purpose string) locksteward.Text {
	return text("purpose: %s", "用途：%s", locksteward.DisplayKey(purpose))
}

// renewingLine is evidence that the holder's process runs: somebody renews.
func renewingLine(in Input) locksteward.Text {
	r := judgeRenewal(in.Lock, in.LibraryFacts, in.Now)
	if !r.onTime() {
		return locksteward.Text{}
	}
	return phrase("%s: the holder's process runs (that does not prove progress)", "%s：持有者进程在运行（但不能证明执行有进展）", onTimeLine(in, r))
}

// progressLine and stalledLine weigh the work's own heartbeat, which is apart
// from renewal; without one nothing is said.
func progressLine(l *locksteward.Lock, now time.Time, expect time.Duration) locksteward.Text {
	since, ok := sinceProgress(l, now)
	if !ok || since > expect {
		return locksteward.Text{}
	}
	return text("the work itself reported progress %s ago", "执行任务自身在 %s 前上报过进度", dur(since))
}

func stalledLine(l *locksteward.Lock, now time.Time, expect time.Duration) locksteward.Text {
	since, ok := sinceProgress(l, now)
	if !ok || since <= expect {
		return locksteward.Text{}
	}
	return text("the work reported progress %s ago and not since", "执行任务在 %s 前上报过进度，此后再未上报", dur(since))
}

func sinceProgress(l *locksteward.Lock, now time.Time) (time.Duration, bool) {
	if l.Claim == nil || l.Claim.Progress.IsZero() {
		return 0, false
	}
	return max(0, now.Sub(cmp.Or(l.Claim.Progress, now))), true
}
