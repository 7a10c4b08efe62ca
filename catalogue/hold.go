package catalogue

var holdSentences = sentences{
	"hold/lost.cause": {EN: "The lock was lost while it was held.", ZH: "锁在持有期间丢失。"},
	"hold/lost.remedy": {
		EN: "Treat what the lock protects as written by two: check its data since the loss, and let it refuse a fence lower than the highest it has seen. " +
			"Stop the work when the handle's context ends.",
		ZH: "按可能存在两个写入者处理：检查丢锁之后受保护资源的数据，并让资源拒绝小于已见最大值的 fence。在句柄的 context 结束时停止执行。",
	},
	"hold/lost.remedy-silent": {
		EN: "Look whether the holder's process still runs: if it does, it may write beside the next holder. If it does not, nothing has to be freed; find out why it ended without releasing.",
		ZH: "查看持有者进程是否仍在运行：若是，它可能与下一个持有者同时写入。若否，无需释放任何锁；请查明其为何未释放就退出。",
	},
	"hold/lost.remedy-gone": {
		EN: "Nothing has to be freed. Find out why the process ended without releasing (crash, kill -9, out of memory, node lost); what it had half done stays half done.",
		ZH: "无需释放任何锁。请查明进程为何未释放就退出（崩溃、kill -9、内存不足、节点丢失）；其未完成的操作仍停留在一半。",
	},
	"hold/lost.cause-expired": {
		EN: "The lease ran out under the holder: renewal stopped (crash, pause, lost network) or was not asked for, and the work took longer than the TTL.",
		ZH: "租约在持有期间到期：续期停止（崩溃、暂停、断网）或未启用续期，而执行时间超过了过期时间。",
	},
	"hold/lost.cause-deleted": {
		EN: "Somebody deleted the key before its lease ended: DEL by hand or by a client that does not compare the token, an eviction, FLUSHDB, or a failover to a replica that did not have the write.",
		ZH: "在租约结束前键被删除：人工 DEL、未比较 token 的客户端、内存淘汰、FLUSHDB，或故障切换到尚未复制该写入的副本。",
	},
	"hold/lost.cause-replaced": {
		EN: "Another holder's value stands under the key: it was overwritten by a SET without NX, or it vanished and was taken again.",
		ZH: "该键下已是另一个持有者的值：被不带 NX 的 SET 覆盖，或先消失后又被取得。",
	},
	"hold/lost.cause-server": {
		EN: "What happened to the server in the meantime explains it best (see the evidence): an eviction, a flush, a restart without the last writes, or a failover to a replica that did not have them.",
		ZH: "期间服务器上发生的事件最能解释此次丢失（见证据）：内存淘汰、清空、丢失最近写入的重启，或故障切换到尚未复制这些写入的副本。",
	},
	"hold/lost.cause-clock": {
		EN: "The server's clock jumped forward (see the evidence): every lease that was to end in that time ended at once, however well it was renewed.",
		ZH: "服务器时钟向前跳变（见证据）：所有本应在这段时间内到期的租约立即到期，无论续期是否正常。",
	},
	"hold/lost.how-expired":  {EN: "its lease ran out", ZH: "租约到期"},
	"hold/lost.how-deleted":  {EN: "it was deleted before its expiry by somebody else", ZH: "在到期前被他人删除"},
	"hold/lost.how-replaced": {EN: "another holder's value replaced it", ZH: "被另一个持有者的值取代"},
	"hold/lost.how-failover": {EN: "it was gone before its expiry, after a failover", ZH: "在到期前消失，期间发生故障切换"},
	"hold/lost.how-restart":  {EN: "it was gone before its expiry, after a restart of the server", ZH: "在到期前消失，期间服务器重启"},
	"hold/lost.how-flush":    {EN: "it was gone before its expiry, after a flush of the server", ZH: "在到期前消失，期间服务器被清空"},
	"hold/lost.how-evicted":  {EN: "it was gone before its expiry, while the server evicted keys", ZH: "在到期前消失，期间服务器淘汰了键"},
	"hold/lost.how-unknown":  {EN: "it ended without a release", ZH: "未经释放而结束"},
	"hold/lost.may-be-alive": {
		EN: "the process may still be alive; this becomes critical if its heartbeat continues",
		ZH: "进程可能仍存活；若其心跳继续，级别将变为 critical",
	},
	"hold/lost.heartbeat-gone": {EN: "the heartbeat of the holder's process is gone", ZH: "持有者进程的心跳已消失"},
	"hold/lost.lives-past-lease": {
		EN: "the holder's process sent a heartbeat at %s, after its lease had run out",
		ZH: "在 %s 收到持有者进程的心跳，晚于其租约到期",
	},
	"hold/lost.lives": {EN: "the holder's process is alive: its last heartbeat was at %s", ZH: "持有者进程仍存活：上次心跳在 %s"},
	"hold/lost.context-ended": {
		EN: "the library ends the holder's context before the server can expire the lock: code that obeys it has stopped",
		ZH: "锁库会在服务器使锁过期之前结束持有者的 context：遵守它的代码已经停止",
	},
	"hold/lost.context-ends": {
		EN: "the library ends the holder's context at its next renewal, due every %s: code that obeys it stops then",
		ZH: "锁库会在下次续期时（每 %s 一次）结束持有者的 context：遵守它的代码届时停止",
	},
	"hold/lost.last-beat-unknown": {
		EN: "the time of the last heartbeat of the holder's process is not known",
		ZH: "不知道上次收到持有者进程的心跳是在何时",
	},
	"hold/lost.last-beat":            {EN: "the last heartbeat of the holder's process was at %s", ZH: "持有者进程的上次心跳在 %s"},
	"hold/lost.found-at":             {EN: "found at %s", ZH: "发现于 %s"},
	"hold/lost.deadline":             {EN: "the lease was to end at %s; found lost at %s", ZH: "租约应在 %s 结束；在 %s 发现丢失"},
	"hold/lost.held-without-renewal": {EN: "acquired at %s, without renewal", ZH: "加锁于 %s，未启用续期"},
	"hold/lost.held-renewed":         {EN: "acquired at %s, renewed every %s, last at %s", ZH: "加锁于 %s，每 %s 续期一次，上次在 %s"},
	"hold/lost.held-never-renewed":   {EN: "acquired at %s, to be renewed every %s, never renewed", ZH: "加锁于 %s，应每 %s 续期一次，从未续期"},
	"hold/lost.fence":                {EN: "fence %d", ZH: "fence 为 %d"},
	"hold/too-long.cause": {
		EN: "The holder hangs on something slow or stuck (a query, a remote call, another lock) while its watchdog keeps the lock, or it forgot to release, or the work has outgrown its expectation.",
		ZH: "持有者卡在缓慢或停滞的操作上（查询、远程调用、另一把锁），而看门狗仍在续期；或忘记释放；或实际执行时间已超出预期。",
	},
	"hold/too-long.remedy": {
		EN: "Look at what the holder is doing. If it is stuck, end its process and let the TTL free the lock, or request a release once it is surely gone. " +
			"Bound the work with a deadline and the hold with Lease.MaxHold; if the work is right, raise expect.",
		ZH: "查看持有者正在做什么。若已卡死，结束其进程并等待过期时间释放锁，或在确认其已不存在后申请释放。" +
			"为执行设置截止时间，并用 Lease.MaxHold 限制持有时间；若执行时间合理，请调大 expect。",
	},
	"hold/too-long.remedy-without-ttl": {
		EN: "Look at what the holder is doing. The lock has no TTL, so that nothing frees it when its process ends: request a release once it is surely gone. " +
			"Take the lock with a TTL, bound the work with a deadline and the hold with Lease.MaxHold; if the work is right, raise expect.",
		ZH: "查看持有者正在做什么。该锁没有过期时间，进程结束后也不会自动释放：请在确认其已不存在后申请释放。" +
			"加锁时设置过期时间，为执行设置截止时间，并用 Lease.MaxHold 限制持有时间；若执行时间合理，请调大 expect。",
	},
	"hold/too-long.summary":            {EN: "%s has been held for %s, expected %s", ZH: "锁 %s 已被持有 %s，预期为 %s"},
	"hold/too-long.expected-by-holder": {EN: "expected %s, as the holder's metadata says", ZH: "预期为 %s（据持有者的元数据）"},
	"hold/too-long.expected-by-class":  {EN: "expected %s, as class %q says", ZH: "预期为 %s（据 class %q）"},
	"hold/too-long.turnover-hidden":    {EN: "a constant token without TTL hides turnover", ZH: "常量 token 且没有过期时间会掩盖易手"},
	"hold/too-long.turnover-possible": {
		EN: "the token is constant and the expiry was set anew %s ago",
		ZH: "其 token 为常量，且过期时间在 %s 前被重新设置",
	},
	"hold/too-long.turnover-none": {
		EN: "its expiry has not moved since, so it is one hold although the token is constant",
		ZH: "此后其到期时间未曾变动，因此虽然 token 为常量，仍是同一次持有",
	},
	"hold/too-long.acquired-by-value":  {EN: "acquired at %s, as its value says (the holder's clock)", ZH: "加锁于 %s，据其值所写（持有者的时钟）"},
	"hold/too-long.acquired-by-holder": {EN: "acquired at %s, as the holder says (server time)", ZH: "加锁于 %s，据持有者所写（服务器时间）"},
	"hold/too-long.written-doubt":      {EN: "its value says %s, which is not counted: %s", ZH: "其值写明 %s，未予计入：%s"},
	"hold/too-long.clock-of-holder": {
		EN: "the age is by the holder's clock, which may differ from the server's",
		ZH: "持有时间依据持有者的时钟，可能与服务器的时钟不一致",
	},
	"hold/too-long.seen-but": {EN: "the key was seen for %s, but %s", ZH: "已看到该键 %s，但%s"},
	"hold/too-long.token-not-fresh": {
		EN: "the token is not fresh per hold: its holder may have released and retaken the lock between two looks",
		ZH: "token 并非每次加锁都重新生成：其持有者可能在两次查看之间释放并重新取得了锁",
	},
	"hold/too-long.purpose": {EN: "purpose: %s", ZH: "用途：%s"},
	"hold/too-long.renewing": {
		EN: "%s: the holder's process runs (that does not prove progress)",
		ZH: "%s：持有者进程在运行（但不能证明执行有进展）",
	},
	"hold/too-long.progress": {EN: "the work itself reported progress %s ago", ZH: "执行任务自身在 %s 前上报过进度"},
	"hold/too-long.stalled":  {EN: "the work reported progress %s ago and not since", ZH: "执行任务在 %s 前上报过进度，此后再未上报"},
	"redlock/minority.cause": {
		EN: "A master restarted without its memory, was flushed, evicts, or somebody deleted the key there; the release did not reach all masters; or an acquire failed and could not take its votes back. While a holder works with such a lock, another can get the majority.",
		ZH: "某个主节点在丢失内存数据后重启、被清空、发生淘汰，或有人在该节点上删除了键；释放未到达所有主节点；或加锁失败且未能收回其投票。若持有者仍凭此锁工作，另一方可以取得多数。",
	},
	"redlock/minority.remedy": {
		EN: "Look whether the holder still works. If it does, what it writes to must check the fence, since others can take the lock. If it does not, the rest goes with its TTL, or can be released on the masters that have it. " +
			"Set MinUptime on all clients, noeviction and appendonly with appendfsync always on all masters.",
		ZH: "查看持有者是否仍在工作。若是，其写入的资源必须校验 fence，因为他人可以取得该锁。若否，剩余的键会随过期时间消失，也可在拥有它的主节点上释放。" +
			"在所有客户端设置 MinUptime，在所有主节点使用 noeviction 并开启 appendonly（appendfsync always）。",
	},
	"redlock/minority.summary": {
		EN: "%s of Redlock %s lives on %d of %d masters; a holder needs %d",
		ZH: "Redlock %[2]s 的锁 %[1]s 仅存在于 %[4]d 个主节点中的 %[3]d 个；持有者需要 %[5]d 个",
	},
	"redlock/minority.with": {EN: "masters that have it: %s", ZH: "拥有它的主节点：%s"},
	"redlock/minority.without": {
		EN: "masters that do not, by a complete sweep during which another had it: %s",
		ZH: "没有它的主节点（据一次完整的扫描，期间另一主节点拥有它）：%s",
	},
	"redlock/minority.unknown": {EN: "masters that could not be read since: %s", ZH: "此后无法读取的主节点：%s"},
	"hold/lost.summary-lives": {
		EN: "%s was lost while its holder lives: %s; two writers are possible",
		ZH: "锁 %s 已丢失，而其持有者仍在运行：%s；可能存在两个写入者",
	},
	"hold/lost.summary-silent": {
		EN: "%s was lost: %s; its holder has sent no heartbeat since",
		ZH: "锁 %s 已丢失：%s；此后未再收到其持有者的心跳",
	},
	"hold/lost.summary-gone": {
		EN: "%s was lost: %s; its holder's process is gone",
		ZH: "锁 %s 已丢失：%s；其持有者进程已不存在",
	},
}
