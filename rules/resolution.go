package rules

import (
	"time"

	"github.com/locksteward/locksteward"
)

// The reasons why a finding is over.
var (
	notFoundAgain = locksteward.Text{
		EN: "no longer so: the last look did not find it any more", ZH: "已不再如此：最近一次查看未再发现",
	}
	targetRemoved = locksteward.Text{
		EN: "no longer watched: the target was removed from the configuration", ZH: "不再监控：该目标已从配置中移除",
	}
	lossForgotten = locksteward.Text{
		EN: "no longer shown: the server has no evidence of the lost hold any more; that it was lost remains true",
		ZH: "不再显示：服务器上已没有这次丢失的证据；丢锁的事实不变",
	}
	eventPast = locksteward.Text{
		EN: "no longer shown: it was minutes ago; what was lost by it is not back", ZH: "不再显示：事件已过去数分钟；由此丢失的内容并未恢复",
	}
	lessSevere = locksteward.Text{
		EN: "no longer severe enough for a notification; the finding is still shown", ZH: "级别已降低，不再通知；该问题仍会显示",
	}
)

// endedHow words how the hold of a finding ended, as far as it can be told from outside.
var endedHow = map[locksteward.EndedHow]locksteward.Text{
	locksteward.EndedReleased: {EN: "the hold ended: the lock was released", ZH: "持有已结束：锁已释放"},
	locksteward.EndedExpired:  {EN: "the hold ended: its lease expired, and nobody had released it", ZH: "持有已结束：租约到期，此前无人释放"},
	locksteward.EndedDeleted:  {EN: "the hold ended: its key was deleted before its expiry", ZH: "持有已结束：其 key 在到期前被删除"},
	locksteward.EndedReplaced: {EN: "the hold ended: another hold has its key", ZH: "持有已结束：该 key 已属于另一次持有"},
}

// endedBy words the end of a hold that went with what happened to its server.
var endedBy = map[locksteward.ServerEventKind]locksteward.Text{
	locksteward.ServerRestarted: {
		EN: "the hold was lost: another server process answers (a restart or a failover) and does not have it",
		ZH: "持有已丢失：应答的已是另一个服务器进程（重启或故障切换），且没有这把锁",
	},
	locksteward.ServerFailedOver: {EN: "the hold was lost: another server took over and does not have it", ZH: "持有已丢失：另一台服务器接管，且没有这把锁"},
	locksteward.ServerFlushed:    {EN: "the hold was lost: the server's data was flushed", ZH: "持有已丢失：服务器的数据被清空"},
	locksteward.ServerEvicted:    {EN: "the hold was lost: the server evicted keys meanwhile", ZH: "持有已丢失：期间服务器淘汰了键"},
}

// ReleasedBy is the resolution of a finding on a hold that a request for a release ended.
func ReleasedBy(request string) locksteward.Text {
	return text("the hold ended: the lock was released by request %s", "持有已结束：锁已由申请 %s 释放", request)
}

// MayBeReleased says whether the resolution of f leaves open who ended the hold.
func MayBeReleased(f locksteward.Finding) bool {
	return f.Status == locksteward.StatusResolved && f.Key != "" && (f.Resolution == endedHow[locksteward.EndedReleased] ||
		f.Resolution == endedHow[locksteward.EndedDeleted] || f.Resolution == endedHow[locksteward.EndedReplaced])
}

// whyEnded says why a finding on a hold is over that ended.
func (p *pass) whyEnded(end locksteward.Ending) locksteward.Text {
	by := end.By
	if by == "" && end.How == locksteward.EndedDeleted {
		by = worst(onNode(p.e.situations[p.target].suspects(end.Lock.History.LastSeen, p.orAt(end.At)), end.Lock.Node))
	}
	if text, ok := endedBy[by]; ok {
		return text
	}
	if text, ok := endedHow[end.How]; ok {
		return text
	}
	return notFoundAgain
}

// whyUnseen says why a finding is over that a complete sweep did not confirm.
func whyUnseen(k *kind) locksteward.Text {
	switch {
	case k.scope == ScopeLoss:
		return lossForgotten
	case k.rule == ServerRestarted || k.rule == ServerFlushed || k.rule == serverFailoverDoc.Name:
		return eventPast
	default:
		return notFoundAgain
	}
}

// resolved is the finding as it ends.
func resolved(f locksteward.Finding, at time.Time, why locksteward.Text) locksteward.Finding {
	f.Status, f.ResolvedAt, f.Resolution = locksteward.StatusResolved, at, why
	return f
}
