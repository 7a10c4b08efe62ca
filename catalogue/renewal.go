package catalogue

var renewalSentences = sentences{
	"renewal/failing.cause": {
		EN: "The holder's process died, is paused (garbage collection, SIGSTOP, a swapping or frozen machine), its watchdog ended, or it cannot reach the server of the lock (network, exhausted pool, timeouts).",
		ZH: "持有者进程已退出或被暂停（GC、SIGSTOP、机器换页或冻结），看门狗已停止，或无法访问锁所在的服务器（网络、连接池耗尽、超时）。",
	},
	"renewal/failing.remedy": {
		EN: "Look at the holder's process before the lease runs out: if it still works, others may soon work beside it. " +
			"If it is gone, do nothing: the TTL frees the lock. Renew each third of the TTL with retries, on a connection of its own.",
		ZH: "在租约到期前查看持有者进程：若仍在执行，很快可能有他人与其并行。若进程已不存在，无需处理：过期时间会释放锁。" +
			"续期间隔取过期时间的三分之一，带重试，并使用独立连接。",
	},
	"renewal/failing.overdue": {
		EN: "overdue by %s: with this lease and interval a renewal is late after %s",
		ZH: "已逾期 %s：按此租约和间隔，超过 %s 未续期即为延迟",
	},
	"renewal/failing.summary-failures": {
		EN: "renewals of %s keep failing: %d failed attempts, %d succeeded",
		ZH: "锁 %s 的续期持续失败：失败 %d 次，成功 %d 次",
	},
	"renewal/failing.cause-failures": {
		EN: "The holder reaches Redis only now and then: a lossy network, an exhausted pool, timeouts below the server's latency, or a server that is overloaded.",
		ZH: "持有者只能时断时续地访问 Redis：网络丢包、连接池耗尽、超时小于服务器延迟，或服务器过载。",
	},
	"renewal/failing.renewed-by-holder": {
		EN: "renews %s, as the holder says; last renewed %s ago",
		ZH: "%s续期一次，据持有者所写；上次续期在 %s 前",
	},
	"renewal/failing.renewed-seen": {
		EN: "renews %s, judged from %s seen in this hold; one was last seen %s ago",
		ZH: "%s续期一次，据本次持有期间看到的 %s判断；最近一次在 %s 前看到",
	},
	"renewal/failing.on-time":        {EN: "%s, on time", ZH: "%s，未延迟"},
	"renewal/failing.interval-about": {EN: "about every %s", ZH: "约每 %s "},
	"renewal/failing.interval":       {EN: "every %s", ZH: "每 %s "},
	"renewal/failing.failures": {
		EN: "%d failed and %d successful attempts in this hold, as the holder reported with its last success",
		ZH: "本次持有期间续期失败 %d 次、成功 %d 次，据持有者上次成功时所写",
	},
	"renewal/failing.hand-extended": {
		EN: "only %s seen: the application may extend the lock by hand, and just not need it again",
		ZH: "只看到 %s：应用可能是手动延长锁，现在只是不再需要",
	},
	"renewal/failing.same-thread": {
		EN: "the token is not fresh per hold: the same holder may have released and retaken the lock, with a fixed lease that nothing renews",
		ZH: "token 并非每次加锁都重新生成：同一持有者可能释放后又重新取得了锁，且使用无人续期的固定租约",
	},
	"renewal/zombie.cause": {
		EN: "The work hangs or has ended without releasing, and its watchdog goes on renewing: a thread that is stuck or died, a release that threw, a renewal task that outlives its lock.",
		ZH: "执行已卡死，或已结束却未释放，而看门狗仍在续期：线程卡住或已退出、释放时抛出异常、续期任务比锁活得更久。",
	},
	"renewal/zombie.remedy": {
		EN: "Look at the holder's process: a stack dump shows whether the work still runs. If it does not, end the process, and the TTL frees the lock, or request a release as \"alive but stuck\", after which two may write. " +
			"Bound each hold with Lease.MaxHold, and report the progress of the work, so that this can be distinguished from slow work.",
		ZH: "查看持有者进程：线程堆栈能说明是否仍在执行。若已不再执行，结束该进程，过期时间会释放锁；或以“存活但卡住”申请释放，此后可能出现两个写入者。" +
			"用 Lease.MaxHold 限制每次持有时间，并上报执行进度，以便与缓慢的执行区分。",
	},
	"renewal/zombie.summary": {
		EN: "%s is renewed on and on: held for %s, expected %s, renewed %d times",
		ZH: "锁 %s 一直被续期：已持有 %s，预期 %s，续期 %d 次",
	},
	"renewal/zombie.renewals-by-holder": {EN: "renewed %s, as the holder says", ZH: "已续期 %s，据持有者所写"},
	"renewal/zombie.renewals-seen":      {EN: "seen renewed %s", ZH: "看到续期 %s"},
	"renewal/zombie.progress-unknown": {
		EN: "the work reports no progress, so whether it goes on is not known",
		ZH: "执行任务不上报进度，因此不知道它是否仍在继续",
	},
	"renewal/zombie.max-hold":          {EN: "the holder gives up by itself in %s (max_hold %s)", ZH: "持有者将在 %s 后自行放弃（max_hold %s）"},
	"renewal/failing.summary-late":     {EN: "renewal of %s is late: last %s ago, due %s", ZH: "锁 %s 的续期已延迟：上次续期在 %s 前，应%s一次"},
	"renewal/failing.summary-late-ttl": {EN: "renewal of %s is late: last %s ago, due %s; the lock runs out in %s", ZH: "锁 %s 的续期已延迟：上次续期在 %s 前，应%s一次；%s 后到期"},
}
