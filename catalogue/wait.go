package catalogue

var waitSentences = sentences{
	"contention/high.cause": {
		EN: "More work wants the same locks than they can serve: holds are too long, one lock guards too much, clients retry without a pause, or the server cannot be reached. " +
			"Where replicas race for a job that only one must do, failures are what is meant.",
		ZH: "争用同一批锁的任务超过其处理能力：持有时间过长、一把锁保护的范围过大、客户端不间断重试，或服务器不可达。若多个副本竞争一个只需执行一次的任务，则失败属于预期。",
	},
	"contention/high.remedy": {
		EN: "Hold the lock for less of the work, give each resource a lock of its own, and wait for a release (Acquire) instead of trying again in a loop. " +
			"If failures are meant, raise max_failures of the class; 1 is no limit.",
		ZH: "缩短持有时间，为每个资源使用独立的锁，并等待释放（Acquire）而不是循环重试。若失败属于预期，请调大其 class 的 max_failures；1 表示不限制。",
	},
	"contention/high.summary": {
		EN: "class %s: %d of %d acquires ended without the lock (%s), above the limit of %s",
		ZH: "class %s：%d/%d 次加锁未成功（%s），超过上限 %s",
	},
	"contention/high.counted-by": {EN: "counted by %s since %s, in their heartbeats", ZH: "自 %[2]s 起由 %[1]s在其心跳中计数"},
	"wait/handoff-lapsed.cause": {
		EN: "The waiter's process hangs, was paused or lost its connection after the server had sent it the lock.",
		ZH: "服务器已将锁移交给等待者，但其进程挂起、被暂停或连接中断。",
	},
	"wait/handoff-lapsed.remedy": {
		EN: "Nothing was held and the next waiter has its turn. If it repeats, look at the process for pauses (garbage collection, CPU limits, swap) and at its network.",
		ZH: "没有锁被持有，下一个等待者会得到机会。若反复出现，请检查该进程的停顿（垃圾回收、CPU 限额、交换）及其网络。",
	},
	"wait/handoff-lapsed.summary": {EN: "%s was handed to a waiter that did not take it up in time", ZH: "%s 已移交给等待者，但其未在时限内接手"},
	"wait/handoff-lapsed.until":   {EN: "handed over until %s, found lapsed at %s", ZH: "移交有效至 %s；在 %s 发现已失效"},
	"contention/high.contended":   {EN: "%d acquires found another holder first", ZH: "%d 次加锁首先遇到其他持有者"},
	"contention/high.by-design": {
		EN: "replicas that race for work that one of them must do fail by design",
		ZH: "若多个副本竞争只需其中之一执行的任务，失败属于预期",
	},
	"contention/high.other-reasons": {
		EN: "at least %d failures had another reason than a holder (time out, an unreachable server, a canceled call)",
		ZH: "至少 %d 次失败并非由持有者造成（超时、服务器不可达、调用被取消）",
	},
	"wait/order-inversion.cause": {
		EN: "One piece of code takes a lock of the first class and then one of the second, another takes them the other way round. When both get their first lock at the same time, each waits for the other.",
		ZH: "一段代码先取第一个 class 的锁再取第二个，另一段代码顺序相反。若两者同时取得各自的第一把锁，就会互相等待。",
	},
	"wait/order-inversion.remedy": {
		EN: "Agree on one order of the classes and take them in it everywhere, or take a lock around both. Until then bound the wait with Lease.Wait, and give up what is held when it ends.",
		ZH: "约定各 class 的加锁顺序并处处遵守，或在两者之外再加一把锁。在此之前用 Lease.Wait 限制等待时间，超时后放弃已持有的锁。",
	},
	"wait/order-inversion.summary": {
		EN: "locks of class %s and class %s are taken in both orders: a deadlock waits to happen",
		ZH: "class %s 与 class %s 的锁以两种顺序被获取：存在潜在死锁",
	},
	"wait/order-inversion.classes-only": {
		EN: "classes are compared, not keys: the two may never touch the same locks, or never run at the same time",
		ZH: "比较的是 class 而不是键：两者可能从不涉及相同的锁，或从不同时运行",
	},
	"wait/order-inversion.order": {
		EN: "%s, then %s: %s was held when %s was taken at %s%s",
		ZH: "先 %s，后 %s：持有锁 %s 时取得了锁 %s，时间为 %s%s",
	},
	"wait/cycle.cause": {
		EN: "Two pieces of code take the same locks in different orders, and each got its first lock before the other. None of them can go on until one gives up: " +
			"renewal keeps the locks alive for as long as they wait.",
		ZH: "两段代码以不同的顺序获取相同的锁，且各自先取得了第一把锁。在其中一方放弃之前，谁都无法继续：等待期间续期会一直保持这些锁有效。",
	},
	"wait/cycle.remedy": {
		EN: "End the suggested victim (cancel its context, or end its process), or request a release of its lock: the others then go on. " +
			"Take locks in one order everywhere (by name, for instance), or bound the wait with Lease.Wait and give up what is held when it ends.",
		ZH: "结束建议的牺牲者（取消其 context 或结束其进程），或申请释放其持有的锁，其余会话即可继续。" +
			"各处应以同一顺序加锁（例如按名称排序），或用 Lease.Wait 限制等待时间，超时后放弃已持有的锁。",
	},
	"wait/cycle.victim": {
		EN: "suggested victim: session %s, which holds %s%s: it has the least work to lose (the shortest hold, then the shortest wait)",
		ZH: "建议的牺牲者：会话 %s，它持有锁 %s%s：其损失的工作最少（持有时间最短，其次等待时间最短）",
	},
	"wait/cycle.summary-alone": {
		EN: "deadlock: the session that holds %s waits for it itself",
		ZH: "死锁：持有锁 %s 的会话正在等待它自己",
	},
	"wait/cycle.more":        {EN: "and %d more sessions", ZH: "另有 %d 个会话"},
	"wait/cycle.waits-since": {EN: " since %s (%s)", ZH: "，始于 %s（已等待 %s）"},
	"wait/cycle.member": {
		EN: "session %[1]s holds %[3]s%[2]s%[4]s and waits for %[6]s%[5]s%[7]s",
		ZH: "会话 %[1]s 持有%[2]s锁 %[3]s%[4]s，正在等待%[5]s锁 %[6]s%[7]s",
	},
	"wait/cycle.on-target-db": {EN: " of %s (db %d)", ZH: "目标 %s（db %d）上的"},
	"wait/cycle.on-target":    {EN: " of %s", ZH: "目标 %s 上的"},
	"wait/cycle.held-since":   {EN: "since %s", ZH: "自 %s 起"},
	"wait/cycle.proof":        {EN: "seen in two reads of the same holds and the same waits", ZH: "两次读取都看到相同的持有与相同的等待"},
	"wait/cycle.once": {
		EN: "locks and waiters were read one after the other: until a second read sees the same, one of them may just have gone on",
		ZH: "锁与等待者是先后读取的：在第二次读取看到相同情形之前，其中某一方可能刚好已继续执行",
	},
	"wait/cycle.inferred": {
		EN: "%s does not name its session itself: that %s has it is what another lock of that session said when it was taken",
		ZH: "锁 %s 自身未写明会话：由 %s 持有，是该会话的另一把锁在加锁时所写",
	},
	"wait/cycle.calls": {
		EN: "%d calls of session %s wait at once: another part of it may still release the lock",
		ZH: "会话 %[2]s 有 %[1]d 个调用同时在等待：其另一部分仍可能释放该锁",
	},
	"wait/starved.cause": {
		EN: "The holder keeps the lock for too long, more work queues up for one lock than it can serve, or others take it again and again before this one has its turn.",
		ZH: "持有者占用锁的时间过长，或排队等待同一把锁的任务超过其处理能力，或其他客户端反复抢先取得该锁。",
	},
	"wait/starved.remedy": {
		EN: "If one holder keeps it, look at what that does (hold/too-long, wait/cycle). If it changes hands all the time, " +
			"split the work over more locks, or hold it for less of the work. Bound the wait with Lease.Wait.",
		ZH: "若一直由同一个持有者占用，请查看其正在做什么（hold/too-long、wait/cycle）。若锁频繁易手，请" +
			"或拆分为更多的锁，或缩短持有时间。用 Lease.Wait 限制等待时间。",
	},
	"wait/starved.summary": {EN: "somebody has waited for %s for %s, longer than the limit of %s", ZH: "等待锁 %s 已达 %s，超过上限 %s"},
	"wait/starved.count": {
		EN: "%s; %d longer than %s, as class %q allows",
		ZH: "%s在等待；其中 %d 个已超过 %s，即 class %q 允许的时间",
	},
	"wait/starved.longest-since": {EN: "the longest waits since %s%s", ZH: "等待最久的自 %s 起等待%s"},
	"wait/starved.longest-by":    {EN: ", %s", ZH: "，%s"},
	"wait/starved.not-held":      {EN: "nobody was seen to hold it", ZH: "未看到有人持有它"},
	"wait/starved.held-at-least": {EN: "held for at least %s", ZH: "已被持有至少 %s"},
	"wait/starved.held":          {EN: "held for %s", ZH: "已被持有 %s"},
	"wait/starved.turnover": {
		EN: "the lock changes hands: it was taken at %s, after this one began to wait",
		ZH: "锁在易手：它在 %s 被取得，晚于该调用开始等待的时间",
	},
	"wait/cycle.summary": {
		EN: "deadlock: %d sessions wait for each other's locks: %s",
		ZH: "死锁：%d 个会话互相等待对方的锁：%s",
	},
	"wait/cycle.locks-more": {EN: "%[1]s and %[2]d more", ZH: "%[1]s 等 %[3]d 把"},
}
