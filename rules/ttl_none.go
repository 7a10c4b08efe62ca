package rules

import (
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// TTLNone is the id of the rule whose pending findings are worth a second look
// after [RecheckAfter].
const TTLNone = "ttl/none"

// RecheckAfter is how long a lock without TTL must be seen so before it is
// called one: between SETNX and EXPIRE every hand-made lock has none. One that had a
// TTL before is called so after a quarter of that, see [Engine.NextLook]. A caller
// that wants the answer soon reads the pending locks again after this long and
// hands them to [Engine.EvaluateDirect]; [Engine.Due] names them.
const RecheckAfter = 2 * time.Second

// lostAfter is the same for a lock that an earlier look at the same hold saw with a TTL:
// nobody is between SETNX and EXPIRE there, but somebody may be between two commands of
// another kind (SET without KEEPTTL, then EXPIRE). A watched lock is told of within a
// second so.
const lostAfter = 500 * time.Millisecond

// lostTTL says that the hold had a TTL. Under a constant token an earlier look may have
// seen another hold, and this one may be between SETNX and EXPIRE; so where the value was
// not read.
func lostTTL(l *locksteward.Lock) bool {
	return l.TTL == locksteward.NoExpiry && l.History.HadTTL && !l.SharedToken && l.TokenDigest != ""
}

// youngLock is the age below which a lock without TTL may still get one.
const youngLock = 10 * time.Second

// ttlNone reports locks that no crash will ever free.
type ttlNone struct{}

var ttlNoneDoc = Doc{
	Name:         TTLNone,
	Title:        "A lock has no TTL",
	Scope:        ScopeLock,
	Since:        "0.1.0",
	Severity:     locksteward.SeverityCritical,
	SeverityNote: "info for libraries whose locks have no TTL by design, unless the class says ttl: required",
	For:          RecheckAfter,
	Risk:         locksteward.RiskDeadlock,
	Cause: locksteward.Text{
		EN: "A crash between SETNX and EXPIRE: they are two commands, and the process died, was cut off or threw an error between them. " +
			"Or the lock is taken without any expiry, or its expiry was removed (PERSIST, a later SET without KEEPTTL).",
		ZH: "在 SETNX 与 EXPIRE 之间崩溃：这是两条命令，进程在其间退出、断网或抛出异常。" +
			"也可能加锁时根本没有设置过期时间，或过期时间被去掉了（PERSIST，或之后不带 KEEPTTL 的 SET）。",
	},
	Remedy: locksteward.Text{
		EN: "If its holder is gone, request a release of the lock. Then take it in one command, SET key token NX PX ms, with a random token per acquisition, " +
			"and release it with a script that compares the token. Where a lock without TTL is meant, set ttl: allowed-none on its class.",
		ZH: "若持有者已不存在，请申请释放该锁。随后改用一条命令加锁：SET key token NX PX ms，每次加锁使用随机 token，" +
			"释放时用脚本比较 token。若确实需要无过期时间的锁，请在其 class 上设置 ttl: allowed-none。",
	},
}

// ttlNoneLost is the cause for any other lock that had a TTL.
var ttlNoneLost = locksteward.Text{
	EN: "The lock had a TTL, and somebody removed it: PERSIST, or a SET without KEEPTTL, a RENAME or a RESTORE that wrote the same value without one.",
	ZH: "该锁原有过期时间，之后被去掉了：PERSIST，或不带 KEEPTTL 的 SET、RENAME、RESTORE 写入了同一个值而没有过期时间。",
}

// Doc implements [Rule].
func (ttlNone) Doc() Doc { return ttlNoneDoc }

// Evaluate implements [Rule].
func (ttlNone) Evaluate(in Input) Verdict {
	l := in.Lock
	if l.TTL != locksteward.NoExpiry {
		return in.clear(func() string { return ttlLine(l).EN })
	}
	if in.Class.TTL == class.TTLAllowedNone {
		return in.notApplicable(func() string {
			return fmt.Sprintf("class %q allows locks without TTL", in.Class.Name)
		})
	}
	key := locksteward.MarkKey(l.Key)
	severity := locksteward.SeverityCritical
	if in.LibraryFacts.NoTTLByDesign && in.Class.TTL != class.TTLRequired {
		severity = locksteward.SeverityInfo
	}
	cause := in.LibraryFacts.NoTTLCause
	if cause == (locksteward.Text{}) && lostTTL(l) {
		cause = ttlNoneLost
	}
	return in.fires(locksteward.Finding{
		Severity: severity,
		Summary: text("lock %s has no TTL: if its holder is gone, nobody can ever take it again",
			"锁 %s 没有过期时间：若持有者已不存在，将再也没有人能取得它", key),
		Evidence: join(
			locksteward.Text{EN: "PTTL is -1: the key never expires", ZH: "PTTL 为 -1：该键永不过期"},
			ttlNoneLostLine(l),
			seenLine(l, in.Now),
			idleLine(l),
			ttlNoneLibraryLine(l),
			holderLine(l.Holder),
			silentLine(l, in.Now),
			waitersLine(l),
		),
		CounterEvidence: join(
			ttlNoneYoungLine(l, in.Now),
			ttlNoneTurnoverLine(l),
			aliveLine(l, in.Now),
			nameOnlyLine(l),
			ttlNoneDesignLine(in),
		),
		Cause: cause,
	})
}

func ttlNoneLibraryLine(l *locksteward.Lock) locksteward.Text {
	if l.Library == "" {
		return locksteward.Text{}
	}
	return text("library %s", "锁类型 %s", l.Library)
}

// ttlNoneLostLine is evidence that the TTL was taken away.
func ttlNoneLostLine(l *locksteward.Lock) locksteward.Text {
	if !lostTTL(l) {
		return locksteward.Text{}
	}
	return locksteward.Text{
		EN: "an earlier look at this hold saw a TTL: it was removed since",
		ZH: "此前查看这次持有时有过期时间：之后被去掉了",
	}
}

// ttlNoneDesignLine is the doubt that the library would have it otherwise.
func ttlNoneDesignLine(in Input) locksteward.Text {
	if !in.LibraryFacts.NoTTLByDesign {
		return locksteward.Text{}
	}
	return text("%s gives its keys no TTL by design", "%s 按设计不为键设置过期时间", in.Lock.Library)
}

// ttlNoneYoungLine is the doubt that the EXPIRE is still on its way.
func ttlNoneYoungLine(l *locksteward.Lock, now time.Time) locksteward.Text {
	if lostTTL(l) || max(seenFor(l, now), l.Idle) >= youngLock {
		return locksteward.Text{}
	}
	return text("first seen only %s ago: a SETNX + EXPIRE pair may be in flight", "%s 前才首次看到：SETNX 与 EXPIRE 可能尚未执行完",
		dur(seenFor(l, now)))
}

// ttlNoneTurnoverLine is the doubt that the looks saw one and the same hold.
func ttlNoneTurnoverLine(l *locksteward.Lock) locksteward.Text {
	if !l.SharedToken || l.History.Looks < 2 {
		return locksteward.Text{}
	}
	return locksteward.Text{
		EN: "the token is the same for every hold, so these looks may have seen several short holds",
		ZH: "每次持有的 token 都相同，因此看到的可能是多次短暂的持有",
	}
}
