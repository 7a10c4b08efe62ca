package catalogue

var ttlSentences = sentences{
	"ttl/none.cause": {
		EN: "A crash between taking the lock and setting its TTL (SETNX and EXPIRE are two commands): the process died, was cut off or threw an error between them. " +
			"Or the lock is taken without any expiry, as a row of a lock table is, or its expiry was removed (PERSIST, a later SET without KEEPTTL).",
		ZH: "在加锁与设置过期时间之间崩溃（SETNX 与 EXPIRE 是两条命令）：进程在其间退出、断网或抛出异常。" +
			"也可能加锁时根本没有设置过期时间（例如锁表中的一行），或过期时间被去掉了（PERSIST，或之后不带 KEEPTTL 的 SET）。",
	},
	"ttl/none.cause-row": {
		EN: "The process that locked the row ended without unlocking it: it was killed, crashed or lost its connection. Nothing ends the lock of such a row.",
		ZH: "锁定该行的进程未解锁就已结束：被终止、崩溃或断开连接。这样的行锁不会自行结束。",
	},
	"ttl/none.cause-etcd": {
		EN: "The key was written without a lease, or its lease was detached by a later write without one.",
		ZH: "写入该键时没有附带租约，或之后不带租约的写入解除了租约。",
	},
	"ttl/none.cause-znode": {
		EN: "The node is not ephemeral, so it does not end with the session of its creator: it was created so (kazoo: ephemeral=False), or a backup brought it back.",
		ZH: "该节点不是临时节点，不会随创建者的会话结束：创建时即如此（kazoo：ephemeral=False），或由备份恢复而来。",
	},
	"ttl/none.remedy-stores": {
		EN: "If its holder is gone, request a release of the lock. Where a lock without TTL is meant, set ttl: allowed-none on its class.",
		ZH: "若持有者已不存在，请申请释放该锁。若确实需要无过期时间的锁，请在其 class 上设置 ttl: allowed-none。",
	},
	"ttl/none.remedy": {
		EN: "If its holder is gone, request a release of the lock. On Redis, take it in one command, SET key token NX PX ms, with a random token per acquisition, " +
			"and release it with a script that compares the token. Where a lock without TTL is meant, set ttl: allowed-none on its class.",
		ZH: "若持有者已不存在，请申请释放该锁。在 Redis 上改用一条命令加锁：SET key token NX PX ms，每次加锁使用随机 token，" +
			"释放时用脚本比较 token。若确实需要无过期时间的锁，请在其 class 上设置 ttl: allowed-none。",
	},
	"ttl/none.cause-ttl-removed": {
		EN: "The lock had a TTL, and somebody removed it: PERSIST, or a SET without KEEPTTL, a RENAME or a RESTORE that wrote the same value without one.",
		ZH: "该锁原有过期时间，之后被去掉了：PERSIST，或不带 KEEPTTL 的 SET、RENAME、RESTORE 写入了同一个值而没有过期时间。",
	},
	"ttl/none.summary": {
		EN: "%s has no TTL: if its holder is gone, nobody can ever take it again",
		ZH: "锁 %s 没有过期时间：若持有者已不存在，将再也没有人能取得它",
	},
	"ttl/none.no-expiry": {EN: "it never expires by itself", ZH: "不会自行过期"},
	"ttl/none.library":   {EN: "library %s", ZH: "锁类型 %s"},
	"ttl/none.ttl-removed": {
		EN: "an earlier look at this hold saw a TTL: it was removed since",
		ZH: "此前查看这次持有时有过期时间：之后被去掉了",
	},
	"ttl/none.design": {EN: "%s gives its locks no TTL by design", ZH: "%s 按设计不为锁设置过期时间"},
	"ttl/none.young": {
		EN: "first seen only %s ago: a library that sets the TTL with a second command may still do so",
		ZH: "%s 前才首次看到：用第二条命令设置过期时间的库可能尚未执行该命令",
	},
	"ttl/none.turnover": {
		EN: "the token is the same for every hold, so these looks may have seen several short holds",
		ZH: "每次持有的 token 都相同，因此看到的可能是多次短暂的持有",
	},
	"ttl/running-out.cause": {
		EN: "The work takes longer than usual, and its lock was taken with a fixed TTL that nothing renews: the work may outlive its lock, and another then works beside it.",
		ZH: "执行时间比平时长，而加锁时使用了固定的过期时间且没有续期：执行可能比锁活得更久，届时他人会与其并行。",
	},
	"ttl/running-out.remedy": {
		EN: "Look whether the work will be done in time. Renew the lock while the work runs (a watchdog), or take it with a TTL above the longest hold, and let the work stop when its lock is lost. " +
			"If holds of this class may use up their lease, lower warn_ttl_below.",
		ZH: "查看执行能否及时完成。在执行期间续期（看门狗），或将过期时间设为大于最长持有时间，并在丢锁时停止执行。若该 class 的锁本来就可以用满租约，请调小 warn_ttl_below。",
	},
	"ttl/running-out.summary": {
		EN: "%s runs out in %s and was never renewed: the work may outlive its lock",
		ZH: "锁 %s 将在 %s 后到期且从未续期：执行可能比锁活得更久",
	},
	"ttl/running-out.limit":            {EN: "class %q wants at least %s", ZH: "class %q 要求至少 %s"},
	"ttl/running-out.never-renewed":    {EN: "never renewed in this hold", ZH: "本次持有期间从未续期"},
	"ttl/running-out.ends-after-lock":  {EN: "the work is expected to end at %s, after the lock", ZH: "预计执行在 %s 结束，晚于锁到期"},
	"ttl/running-out.ends-before-lock": {EN: "the work is expected to end at %s, before the lock", ZH: "预计执行在 %s 结束，早于锁到期"},
	"ttl/running-out.short-lease": {
		EN: "no more than %s of its lease was ever seen: warn_ttl_below may be above the whole lease",
		ZH: "看到的租约从未超过 %s：warn_ttl_below 可能大于整个租约",
	},
	"ttl/running-out.few-looks": {EN: "seen in one look only: a renewal cannot have been seen yet", ZH: "只看到过一次：还不可能看到续期"},
	"ttl/too-long.cause": {
		EN: "Seconds and milliseconds mixed up (EX 30000 is more than eight hours), or a long TTL in place of renewal, so that slow work does not lose its lock.",
		ZH: "秒与毫秒混淆（EX 30000 超过八小时），或用很长的过期时间代替续期，以免执行缓慢时丢锁。",
	},
	"ttl/too-long.remedy": {
		EN: "Take the lock with a TTL of a few times the usual hold and renew it while the work runs, so that a crash blocks others for seconds. " +
			"If so long a lease is meant, raise max_ttl of the class.",
		ZH: "将过期时间设为通常持有时间的几倍，并在执行期间续期，这样崩溃只会阻塞他人数秒。若确实需要这么长的租约，请调大其 class 的 max_ttl。",
	},
	"ttl/too-long.summary":     {EN: "%s has a TTL of %s, above the limit of %s", ZH: "锁 %s 的过期时间为 %s，超过上限 %s"},
	"ttl/too-long.lease-seen":  {EN: "%s was left of it at %s", ZH: "在 %[2]s 时还剩 %[1]s"},
	"ttl/too-long.lease-taken": {EN: "taken for %s, as the holder says", ZH: "据持有者所写，加锁时的租约为 %s"},
	"ttl/too-long.unit": {
		EN: "a thousandth of it is %s: milliseconds may have been given as seconds",
		ZH: "其千分之一为 %s：可能把毫秒数当作秒数设置了",
	},
}
