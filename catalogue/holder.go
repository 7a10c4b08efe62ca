package catalogue

var holderSentences = sentences{
	"fence/regressed.cause": {
		EN: "The counter locksteward:fence:{n} was lost (a failover to a replica without it, a restart without persistence, FLUSHALL, DEL, eviction) while the server's clock is behind the time at which the larger fence was given.",
		ZH: "计数器 locksteward:fence:{n} 丢失（故障切换到没有它的副本、无持久化重启、FLUSHALL、DEL、内存淘汰），且服务器时钟落后于发放较大 fence 的时刻。",
	},
	"fence/regressed.remedy": {
		EN: "Set the server's clock right (NTP), and raise the counter above the largest fence: SET the key that the evidence names to it. " +
			"Until then what checks fences refuses the holders of that slot; do not switch the check off. Keep the counters: noeviction, persistence, and WAIT for what must survive a failover.",
		ZH: "校正服务器时钟（NTP），并把计数器提高到最大 fence 之上：将证据中指出的键 SET 为该值。" +
			"在此之前，校验 fence 的资源会拒绝该槽的持有者；请勿关闭校验。保护计数器：noeviction、持久化，对必须经受故障切换的写入使用 WAIT。",
	},
	"fence/regressed.summary": {EN: "fence of %s went backwards: %d after %d", ZH: "锁 %s 的 fence 倒退：先有 %[3]d，后有 %[2]d"},
	"fence/regressed.fences": {
		EN: "this hold has fence %d; %d was given before it, and seen at %s, from the same counter",
		ZH: "本次持有的 fence 为 %d；同一计数器此前已发放 %d，并在 %s 被看到",
	},
	"fence/regressed.fence-unseen": {
		EN: "a resource that never saw the larger fence accepts this one",
		ZH: "从未见过较大 fence 的资源会接受这一个",
	},
	"fence/regressed.counter": {EN: "the counter is the key %s", ZH: "计数器是键 %s"},
	"holder/dead.cause": {
		EN: "The process ended without releasing the lock (crash, kill -9, out of memory, machine lost), and the lease is long or has no end.",
		ZH: "进程未释放锁就已结束（崩溃、kill -9、内存不足、机器丢失），而租约很长或没有期限。",
	},
	"holder/dead.remedy": {
		EN: "Make sure that the process is gone, and free the lock: request a release, or wait for the TTL. " +
			"Then take a short TTL with renewal, so that the lock of a dead process frees itself within seconds.",
		ZH: "确认进程确已不存在，然后释放锁：提交释放请求，或等待过期。" +
			"之后使用较短的过期时间并自动续期，使死亡进程的锁在数秒内自行释放。",
	},
	"holder/dead.remedy-row": {
		EN: "Make sure that the process is gone, and request a release of the row: nothing else ends it.",
		ZH: "确认进程确已不存在，然后为该行提交释放请求：它不会自行结束。",
	},
	"holder/dead.proof-successor": {
		EN: "proven: %s was started at %s in the same declared slot %s, after the last heartbeat of this one",
		ZH: "已证实：%s在 %s 于同一声明的 slot %s 中启动，晚于本进程的上次心跳",
	},
	"holder/dead.proof-ended": {
		EN: "proven: the process ended in order: it deleted its heartbeat before the TTL ran out, the server neither restarted nor failed over, and the process is not connected",
		ZH: "已证实：进程已正常结束：它在心跳到期之前删除了心跳，服务器既未重启也未故障转移，且进程已无连接",
	},
	"holder/dead.silent": {
		EN: "its heartbeat is missing for %s, since %s, in %s without a break",
		ZH: "其心跳已缺失 %s，自 %s 起，连续 %s查看均未看到",
	},
	"holder/dead.summary-proven": {EN: "%s is held by a process that is dead: proven", ZH: "锁 %s 的持有者进程已死亡：已证实"},
	"holder/dead.summary-presumed": {
		EN: "%s is held by a process that is presumed dead: silent for %s",
		ZH: "推定锁 %s 的持有者进程已死亡：已静默 %s",
	},
	"holder/dead.ends-with-heartbeat": {
		EN: "the holder promised to stop working before its heartbeat ran out (ends_with_heartbeat)",
		ZH: "持有者承诺在其心跳到期之前停止工作（ends_with_heartbeat）",
	},
	"holder/dead.may-come-back": {
		EN: "a process that cannot reach this server, or is frozen with its machine, is silent too, and may come back and write",
		ZH: "无法访问本服务器的进程，或随机器一同冻结的进程，同样会静默，恢复后可能继续写入",
	},
	"holder/dead.ground":         {EN: "presumed: nothing but its silence says that the process is dead", ZH: "推定：只有其静默表明进程已死亡"},
	"holder/dead.process-id":     {EN: "instance %s", ZH: "实例 %s "},
	"holder/dead.process":        {EN: "instance %s (host %s, pid %d)", ZH: "实例 %s（主机 %s，pid %d）"},
	"holder/dead.no-heartbeat":   {EN: "no heartbeat of it was ever seen from here", ZH: "从未在此看到过它的心跳"},
	"holder/dead.last-heartbeat": {EN: "its last heartbeat that was seen is of %s", ZH: "最后一次看到其心跳是在 %s"},
	"holder/dead.no-listener": {
		EN: "no connection is subscribed to its channel (PUBSUB NUMSUB is 0)",
		ZH: "没有连接订阅其频道（PUBSUB NUMSUB 为 0）",
	},
	"holder/dead.listeners": {EN: "%s still subscribed to its channel", ZH: "仍有 %s订阅其频道"},
	"holder/dead.listeners-unknown": {
		EN: "whether it still has a connection is not known: PUBSUB NUMSUB was not answered",
		ZH: "不知道它是否仍有连接：PUBSUB NUMSUB 未得到应答",
	},
	"holder/dead.held-since": {EN: "acquired at %s", ZH: "加锁于 %s"},
	"holder/dead.summary-absent": {
		EN: "%s is held from %s, and nobody is connected to the database from there: presumed dead",
		ZH: "锁 %s 由 %s 持有，而数据库中已没有来自该地址的连接：推定持有者已死亡",
	},
	"holder/dead.absent": {
		EN: "no session comes from %s for %s, since %s, in %s without a break",
		ZH: "已有 %[2]s 没有来自 %[1]s 的会话，自 %[3]s 起，连续 %[4]s查看均未看到",
	},
	"holder/dead.written": {EN: "acquired at %s, as the row says", ZH: "加锁于 %s（依据该行所写）"},
	"holder/dead.behind-a-pooler": {
		EN: "behind a pooler, a proxy or NAT a holder that lives comes from another address",
		ZH: "经由连接池、代理或 NAT 时，存活的持有者会来自另一个地址",
	},
	"holder/stranded.cause": {
		EN: "The session that took the lock waits for its client and is not in a transaction: the unlock went to another session (a pooler in transaction mode), or the client forgot the lock, hangs, or is gone and did not close its connection. The lock stays until the session ends.",
		ZH: "取得锁的会话正在等待其客户端，且不在事务中：解锁语句进入了另一个会话（事务模式的连接池），或客户端忘记了锁、已挂起，或未关闭连接就已消失。在会话结束之前锁一直存在。",
	},
	"holder/stranded.remedy": {
		EN: "Ask whether the client still works under the lock. If not, request a release: it ends that session. Then take the lock over a connection of its own, not through a pooler in transaction mode, or use pg_advisory_xact_lock.",
		ZH: "确认客户端是否仍在该锁下工作。若否，提交释放请求：它会结束该会话。之后通过专用连接取锁，不经过事务模式的连接池，或使用 pg_advisory_xact_lock。",
	},
	"holder/stranded.summary":    {EN: "%s is held by a session that is idle for %s", ZH: "锁 %s 由一个已空闲 %s 的会话持有"},
	"holder/stranded.idle":       {EN: "session %s is idle outside of a transaction for %s, since %s", ZH: "会话 %s 在事务之外已空闲 %s，自 %s 起"},
	"holder/stranded.login":      {EN: "the session is of user %s and began at %s", ZH: "该会话属于用户 %s，始于 %s"},
	"holder/stranded.login-from": {EN: "the session is of user %s from %s and began at %s", ZH: "该会话属于来自 %[2]s 的用户 %[1]s，始于 %[3]s"},
	"holder/stranded.others":     {EN: "the same session holds other %s", ZH: "同一会话还持有其他%s"},
	"holder/stranded.by-design": {
		EN: "who keeps a connection for its lock alone (a leader, a migration that works over other connections) has an idle session, too",
		ZH: "专为锁保留一个连接的客户端（leader、通过其他连接执行的迁移）其会话同样空闲",
	},
	"holder/shared-token.cause": {
		EN: "The lock's value is a constant (1, true, locked) or names a host or process, so it does not tell one acquisition from the next. " +
			"A client that comes back from a pause releases the lock of the holder of that time.",
		ZH: "锁的值是常量（1、true、locked）或仅标识主机、进程，无法区分不同的加锁。客户端暂停后恢复时，会释放此时他人持有的锁。",
	},
	"holder/shared-token.remedy": {
		EN: "Write a fresh random token per acquisition (SET key token NX PX ms, 16 random bytes or more) and release with a script that compares it before DEL. " +
			"Until then these holds cannot be distinguished, so a forced release of one needs a separate confirmation.",
		ZH: "每次加锁写入新的随机 token（SET key token NX PX ms，至少 16 个随机字节），释放时用脚本先比较再 DEL。" +
			"在此之前这些锁无法相互区分，强制释放它们需要单独确认。",
	},
	"holder/shared-token.summary": {
		EN: "class %s: %d of %d locks have a constant or shared token, so any client can release them",
		ZH: "class %s：%d/%d 把锁使用常量或共享 token，任何客户端都能释放它们",
	},
	"holder/shared-token.release-unknown": {
		EN: "how its clients release cannot be seen from here: one that never deletes another's lock does no harm",
		ZH: "从外部无法看到其客户端如何释放锁：从不删除他人锁的客户端不会造成危害",
	},
	"holder/shared-token.kind-count": {EN: "%s (%s)", ZH: "%s（%s）"},
	"holder/shared-token.token":      {EN: "token: %s", ZH: "token 类型：%s"},
	"host/lost.cause": {
		EN: "The machine or its network is gone, all its processes were ended at once (a deployment, a drained node, out of memory), or it cannot reach the server of its locks.",
		ZH: "机器或其网络已不可用，其全部进程被同时终止（部署、节点驱逐、内存不足），或无法访问锁所在的服务器。",
	},
	"host/lost.remedy": {
		EN: "Look at the host first, not at its locks. If it is gone, leave the locks to their TTL, and release those that have a long one or none. If it lives and merely cannot reach that server, its holders may still write: fence what they write to.",
		ZH: "先检查主机，而非逐个处理锁。若主机已不存在，让锁自然过期，并释放过期时间很长或没有过期时间的锁。若主机仍在运行、只是无法访问该服务器，其持有者可能仍在写入：请对其写入的资源使用 fence。",
	},
	"host/lost.summary": {
		EN: "host %s is lost: %d of its %d locks went stale together",
		ZH: "主机 %s 已失联：其 %[3]d 把锁中有 %[2]d 把同时失效",
	},
	"host/lost.stale":      {EN: "%s of %s: heartbeats gone or renewals late", ZH: "%[2]s的 %[1]s：心跳消失或续期延迟"},
	"host/lost.last-signs": {EN: "their last signs of life lie between %s and %s", ZH: "它们最后的存活迹象在 %s 与 %s 之间"},
	"host/lost.may-be-alive": {
		EN: "what cannot reach this server is silent too: the host may be alive",
		ZH: "无法访问本服务器者同样会静默：主机可能仍在运行",
	},
	"host/lost.living":         {EN: "%s alive", ZH: "该主机另有 %s仍存活"},
	"host/lost.lost":           {EN: "%s ended already: the lease ran out or the key is gone", ZH: "其中 %s已结束：租约到期或键已消失"},
	"token.shared":             {EN: "a constant or shared value", ZH: "常量或共享的值"},
	"token.empty":              {EN: "an empty value", ZH: "空值"},
	"token.digit":              {EN: "a one-digit number", ZH: "一位数字"},
	"token.short-number":       {EN: "a short number", ZH: "较短的数字"},
	"token.constant-word":      {EN: "a constant word", ZH: "常量单词"},
	"token.repeated-character": {EN: "one character repeated", ZH: "重复的单个字符"},
	"token.zero-uuid":          {EN: "the zero UUID", ZH: "全零的 UUID"},
	"token.network-address":    {EN: "a network address", ZH: "网络地址"},
	"token.host-and-process":   {EN: "a host name with a process id", ZH: "主机名与进程号"},
	"token.short-word":         {EN: "a short word", ZH: "较短的单词"},
	"token.worker":             {EN: "a host, worker or thread name", ZH: "主机、worker 或线程的名称"},
}
