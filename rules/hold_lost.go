package rules

import (
	"fmt"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// holdLost reports holds of our own library that ended without a release.
type holdLost struct{}

var holdLostDoc = Doc{
	Name:         "hold/lost",
	Title:        "A lock ended without a release",
	Scope:        ScopeLoss,
	Since:        "0.1.0",
	Severity:     locksteward.SeverityCritical,
	SeverityNote: "info while the holder's process has not been heard from since, or is gone: the lease did its work",
	Cause: locksteward.Text{
		EN: "The lock was lost while it was held.",
		ZH: "锁在持有期间丢失。",
	},
	Remedy: locksteward.Text{
		EN: "Treat what the lock protects as written by two: check its data since the loss, and let it refuse a fence lower than the highest it has seen. " +
			"Stop the work when the handle's context ends.",
		ZH: "按可能存在两个写入者处理：检查丢锁之后受保护资源的数据，并让资源拒绝小于已见最大值的 fence。在句柄的 context 结束时停止执行。",
	},
}

// holdLostSilentRemedy is the advice while it is open who could still write.
var holdLostSilentRemedy = locksteward.Text{
	EN: "Look whether the holder's process still runs: if it does, it may write beside the next holder. If it does not, nothing has to be freed; find out why it ended without releasing.",
	ZH: "查看持有者进程是否仍在运行：若是，它可能与下一个持有者同时写入。若否，无需释放任何锁；请查明其为何未释放就退出。",
}

// holdLostGoneRemedy is the advice when nobody is left who could still write.
var holdLostGoneRemedy = locksteward.Text{
	EN: "Nothing has to be freed. Find out why the process ended without releasing (crash, kill -9, out of memory, node lost); what it had half done stays half done.",
	ZH: "无需释放任何锁。请查明进程为何未释放就退出（崩溃、kill -9、内存不足、节点丢失）；其未完成的操作仍停留在一半。",
}

// holdLostCauses are the usual causes of each way to lose a lock.
var holdLostCauses = map[locksteward.EndedHow]locksteward.Text{
	locksteward.EndedExpired: {
		EN: "The lease ran out under the holder: renewal stopped (crash, pause, lost network) or was not asked for, and the work took longer than the TTL.",
		ZH: "租约在持有期间到期：续期停止（崩溃、暂停、断网）或未启用续期，而执行时间超过了过期时间。",
	},
	locksteward.EndedDeleted: {
		EN: "Somebody deleted the key before its lease ended: DEL by hand or by a client that does not compare the token, an eviction, FLUSHDB, or a failover to a replica that did not have the write.",
		ZH: "在租约结束前键被删除：人工 DEL、未比较 token 的客户端、内存淘汰、FLUSHDB，或故障切换到尚未复制该写入的副本。",
	},
	locksteward.EndedReplaced: {
		EN: "Another holder's value stands under the key: it was overwritten by a SET without NX, or it vanished and was taken again.",
		ZH: "该键下已是另一个持有者的值：被不带 NX 的 SET 覆盖，或先消失后又被取得。",
	},
}

// holdLostServerCause is the cause of an early end where something happened to
// the server meanwhile.
var holdLostServerCause = locksteward.Text{
	EN: "What happened to the server in the meantime explains it best (see the evidence): an eviction, a flush, a restart without the last writes, or a failover to a replica that did not have them.",
	ZH: "期间服务器上发生的事件最能解释此次丢失（见证据）：内存淘汰、清空、丢失最近写入的重启，或故障切换到尚未复制这些写入的副本。",
}

// holdLostClockCause is the cause of a lease that ran out where the server's clock
// jumped forward meanwhile.
var holdLostClockCause = locksteward.Text{
	EN: "The server's clock jumped forward (see the evidence): every lease that was to end in that time ended at once, however well it was renewed.",
	ZH: "服务器时钟向前跳变（见证据）：所有本应在这段时间内到期的租约立即到期，无论续期是否正常。",
}

// holdLostHow words the ways to lose a lock for a summary.
var holdLostHow = map[locksteward.EndedHow]locksteward.Text{
	locksteward.EndedExpired:  {EN: "its lease ran out", ZH: "租约到期"},
	locksteward.EndedDeleted:  {EN: "it was deleted before its expiry by somebody else", ZH: "在到期前被他人删除"},
	locksteward.EndedReplaced: {EN: "another holder's value replaced it", ZH: "被另一个持有者的值取代"},
}

// holdLostEvents words an early end where something happened to the server
// meanwhile: then nobody need have deleted it.
var holdLostEvents = map[locksteward.ServerEventKind]locksteward.Text{
	locksteward.ServerFailedOver: {EN: "it was gone before its expiry, after a failover", ZH: "在到期前消失，期间发生故障切换"},
	locksteward.ServerRestarted:  {EN: "it was gone before its expiry, after a restart of the server", ZH: "在到期前消失，期间服务器重启"},
	locksteward.ServerFlushed:    {EN: "it was gone before its expiry, after a flush of the server", ZH: "在到期前消失，期间服务器被清空"},
	locksteward.ServerEvicted:    {EN: "it was gone before its expiry, while the server evicted keys", ZH: "在到期前消失，期间服务器淘汰了键"},
}

// worst is the kind of event that explains most.
func worst(events []locksteward.ServerEvent) locksteward.ServerEventKind {
	for _, kind := range []locksteward.ServerEventKind{
		locksteward.ServerFailedOver, locksteward.ServerRestarted, locksteward.ServerFlushed, locksteward.ServerEvicted,
	} {
		if slices.ContainsFunc(events, func(e locksteward.ServerEvent) bool { return e.Kind == kind }) {
			return kind
		}
	}
	return ""
}

// jumpedForward says that e ended leases early.
func jumpedForward(e locksteward.ServerEvent) bool {
	return e.Kind == locksteward.ServerClockStepped && e.Step > 0
}

// originOf is how and when a stored finding says that a hold was lost, in the
// words in which the rule put it first; zero if another version worded it. English
// decides: what a version stored that knew no other has nothing else.
func originOf(f locksteward.Finding) lossOrigin {
	if len(f.Evidence) == 0 {
		return lossOrigin{}
	}
	for how, text := range holdLostHow {
		if f.Evidence[0].EN == text.EN {
			return lossOrigin{how: how, at: f.Since}
		}
	}
	for _, text := range holdLostEvents {
		if f.Evidence[0].EN == text.EN {
			return lossOrigin{how: locksteward.EndedDeleted, at: f.Since}
		}
	}
	return lossOrigin{}
}

// Doc implements [Rule].
func (holdLost) Doc() Doc { return holdLostDoc }

// Evaluate implements [Rule].
func (holdLost) Evaluate(in Input) Verdict {
	s := in.Loss
	how, ok := holdLostHow[s.How]
	if !ok {
		how = locksteward.Text{EN: "it ended without a release", ZH: "未经释放而结束"}
	}
	events := onNode(in.Situation.suspects(lastGood(s), s.At), s.Node)
	if told, ok := holdLostEvents[worst(events)]; ok && s.How == locksteward.EndedDeleted {
		how = told
	}
	f := locksteward.Finding{
		Severity: locksteward.SeverityInfo,
		Evidence: join(
			how,
			deadlineLine(s),
			heldLine(s),
			holderLine(s.Holder),
			fenceLine(s),
		),
		Cause: holdLostCauses[s.How],
	}
	if len(events) > 0 {
		f.Evidence = append(f.Evidence, newest(events)...)
		switch {
		case s.How != locksteward.EndedExpired && worst(events) != "":
			f.Cause = holdLostServerCause
		case s.How == locksteward.EndedExpired && slices.ContainsFunc(events, jumpedForward):
			f.Cause = holdLostClockCause
		}
	}
	summary := func(en, zh string) locksteward.Text {
		key := locksteward.MarkKey(s.Key)
		return locksteward.Text{EN: fmt.Sprintf(en, key, how.EN), ZH: fmt.Sprintf(zh, key, how.ZH)}
	}
	switch lives, beat := holderLives(s); {
	case lives:
		f.Severity = locksteward.SeverityCritical
		f.Remedy = holdLostDoc.Remedy
		f.Summary = summary("lock %s was lost while its holder lives: %s; two writers are possible",
			"锁 %s 已丢失，而其持有者仍在运行：%s；可能存在两个写入者")
		f.Evidence = append(f.Evidence, livesLine(s, beat))
		f.CounterEvidence = join(contextLine(s))
	case s.Instance != nil:
		f.Remedy = holdLostSilentRemedy
		f.Summary = summary("lock %s was lost: %s; its holder has not been heard from since",
			"锁 %s 已丢失：%s；此后未再收到其持有者的心跳")
		f.Evidence = append(f.Evidence, lastBeatLine(beat))
		f.CounterEvidence = join(locksteward.Text{
			EN: "the process may still be alive; this becomes critical if its heartbeat continues",
			ZH: "进程可能仍存活；若其心跳继续，级别将变为 critical",
		})
	default:
		f.Remedy = holdLostGoneRemedy
		f.Summary = summary("lock %s was lost: %s; its holder's process is gone",
			"锁 %s 已丢失：%s；其持有者进程已不存在")
		f.Evidence = append(f.Evidence, locksteward.Text{EN: "the heartbeat of the holder's process is gone", ZH: "持有者进程的心跳已消失"})
	}
	return in.fires(f)
}

// lastGood is the last moment at which the hold is known to have stood.
func lastGood(s *locksteward.Loss) time.Time {
	if s.Claim.Renewed.After(s.Claim.Acquired) {
		return s.Claim.Renewed
	}
	return s.Claim.Acquired
}

// onNode are the events of the server that had the lock.
func onNode(events []locksteward.ServerEvent, node string) []locksteward.ServerEvent {
	return slices.DeleteFunc(slices.Clone(events), func(e locksteward.ServerEvent) bool {
		return node != "" && e.Node != node && e.Was != node
	})
}

// holderLives says whether the holder's process has outlived its lock, and when
// it was last heard from. A lease that had run out when the loss was found may
// have done just what a lease is for, so only a heartbeat after the deadline
// counts. A lock that was deleted or replaced before its deadline was lost
// through no failing of the holder, so a heartbeat that was not overdue then is
// enough. Both stay true once they are true, for as long as the process lives.
func holderLives(s *locksteward.Loss) (bool, time.Time) {
	if s.Instance == nil || s.Instance.Beat.IsZero() {
		return false, time.Time{}
	}
	beat := s.Instance.Beat
	if !s.Deadline.IsZero() && (s.How == locksteward.EndedExpired || s.How == locksteward.EndedReplaced && !s.At.Before(s.Deadline)) {
		return beat.After(s.Deadline), beat
	}
	return !beat.Before(s.At.Add(-aliveWithin)), beat
}

func livesLine(s *locksteward.Loss, beat time.Time) locksteward.Text {
	if s.How == locksteward.EndedExpired {
		return text("the holder's process was heard from at %s, after its lease had run out", "在 %s 收到持有者进程的心跳，晚于其租约到期", at(beat))
	}
	return text("the holder's process is alive: its last heartbeat was at %s", "持有者进程仍存活：上次心跳在 %s", at(beat))
}

// contextLine says when the holder's own code learns of the loss, if it does.
func contextLine(s *locksteward.Loss) locksteward.Text {
	switch {
	case s.How == locksteward.EndedExpired:
		return locksteward.Text{
			EN: "the library ends the holder's context before the server can expire the lock: code that obeys it has stopped",
			ZH: "锁库会在服务器使锁过期之前结束持有者的 context：遵守它的代码已经停止",
		}
	case s.Claim.RenewEvery > 0:
		return text("the library ends the holder's context at its next renewal, due every %s: code that obeys it stops then",
			"锁库会在下次续期时（每 %s 一次）结束持有者的 context：遵守它的代码届时停止", dur(s.Claim.RenewEvery))
	default:
		return locksteward.Text{}
	}
}

func lastBeatLine(beat time.Time) locksteward.Text {
	if beat.IsZero() {
		return locksteward.Text{EN: "when the holder's process was last heard from is not known", ZH: "不知道上次收到持有者进程的心跳是在何时"}
	}
	return text("the last heartbeat of the holder's process was at %s", "持有者进程的上次心跳在 %s", at(beat))
}

func deadlineLine(s *locksteward.Loss) locksteward.Text {
	if s.Deadline.IsZero() {
		return text("found at %s", "发现于 %s", at(s.At))
	}
	return text("the lease was to end at %s; found lost at %s", "租约应在 %s 结束；在 %s 发现丢失", at(s.Deadline), at(s.At))
}

func heldLine(s *locksteward.Loss) locksteward.Text {
	c := &s.Claim
	switch {
	case c.Acquired.IsZero():
		return locksteward.Text{}
	case c.RenewEvery <= 0:
		return text("acquired at %s, without renewal", "加锁于 %s，未启用续期", at(c.Acquired))
	case c.Renewed.After(c.Acquired):
		return text("acquired at %s, renewed every %s, last at %s", "加锁于 %s，每 %s 续期一次，上次在 %s", at(c.Acquired), dur(c.RenewEvery), at(c.Renewed))
	default:
		return text("acquired at %s, to be renewed every %s, never renewed", "加锁于 %s，应每 %s 续期一次，从未续期", at(c.Acquired), dur(c.RenewEvery))
	}
}

func fenceLine(s *locksteward.Loss) locksteward.Text {
	if s.Claim.Fence == 0 {
		return locksteward.Text{}
	}
	return text("fence %d", "fence 为 %d", s.Claim.Fence)
}
