package catalogue

var resolutionSentences = sentences{
	"resolution.not-found-again": {EN: "no longer so: the last look did not find it any more", ZH: "已不再如此：最近一次查看未再发现"},
	"resolution.target-removed":  {EN: "no longer watched: the target was removed from the configuration", ZH: "不再监控：该目标已从配置中移除"},
	"resolution.loss-forgotten": {
		EN: "no longer shown: the server has no evidence of the lost hold any more; that it was lost remains true",
		ZH: "不再显示：服务器上已没有这次丢失的证据；丢锁的事实不变",
	},
	"resolution.event-past": {
		EN: "no longer shown: it was minutes ago; what was lost by it is not back",
		ZH: "不再显示：事件已过去数分钟；由此丢失的内容并未恢复",
	},
	"resolution.less-severe": {
		EN: "no longer severe enough for a notification; the finding is still shown",
		ZH: "级别已降低，不再通知；该问题仍会显示",
	},
	"resolution.released-by-holder": {EN: "the hold ended: its holder released the lock", ZH: "持有已结束：持有者已释放锁"},
	"resolution.released":           {EN: "the hold ended: the lock was released or deleted", ZH: "持有已结束：锁已释放或被删除"},
	"resolution.expired": {
		EN: "the hold ended: its lease expired, and nobody had released it",
		ZH: "持有已结束：租约到期，此前无人释放",
	},
	"resolution.deleted":  {EN: "the hold ended: it was deleted before its expiry", ZH: "持有已结束：锁在到期前被删除"},
	"resolution.replaced": {EN: "the hold ended: another hold has the lock", ZH: "持有已结束：该锁已属于另一次持有"},
	"resolution.lapsed":   {EN: "the hold ended: its waiter did not take up the hand-off in time", ZH: "持有已结束：等待者未在时限内接手移交的锁"},
	"resolution.server-restarted": {
		EN: "the hold was lost: another server process answers (a restart or a failover) and does not have it",
		ZH: "持有已丢失：应答的已是另一个服务器进程（重启或故障切换），且没有这把锁",
	},
	"resolution.server-failed-over": {
		EN: "the hold was lost: another server took over and does not have it",
		ZH: "持有已丢失：另一台服务器接管，且没有这把锁",
	},
	"resolution.server-flushed": {EN: "the hold was lost: the server's data was flushed", ZH: "持有已丢失：服务器的数据被清空"},
	"resolution.server-evicted": {EN: "the hold was lost: the server evicted keys meanwhile", ZH: "持有已丢失：期间服务器淘汰了键"},
	"resolution.released-by":    {EN: "the hold ended: the lock was released by request %s", ZH: "持有已结束：锁已由申请 %s 释放"},
}
