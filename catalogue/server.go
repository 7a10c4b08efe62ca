package catalogue

var serverSentences = sentences{
	"server.more": {EN: "and %d more", ZH: "另有 %d 台"},
	"server.line": {EN: "%s: %s", ZH: "%s：%s"},
	"server.pause": {
		EN: "verdicts of death (%s, host/lost, proposals by dead_when) pause until %s",
		ZH: "死亡判定（%s、host/lost、由 dead_when 提出的申请）暂停至 %s",
	},
	"server.back": {
		EN: "stand again with older data, after their end was seen, and belong to nobody: %s",
		ZH: "随较旧的数据重新出现，此前已看到其结束，不属于任何持有者：%s",
	},
	"server/evicts-locks.cause": {
		EN: "The server has a memory limit (maxmemory) and a policy that evicts keys when it is reached: allkeys-* may take any key, volatile-* those that have a TTL, which locks do. An evicted lock is free for the next client while its holder works.",
		ZH: "服务器设置了内存上限（maxmemory），且策略会在达到上限时淘汰键：allkeys-* 可能淘汰任意键，volatile-* 淘汰带过期时间的键，而锁正是如此。锁被淘汰后，在持有者仍在工作时即可被他人取得。",
	},
	"server/evicts-locks.remedy": {
		EN: "Keep locks on a server with maxmemory-policy noeviction, apart from caches. Until then give the server more memory than it uses, and watch locksteward_redis_evicted_keys_total.",
		ZH: "将锁放在 maxmemory-policy 为 noeviction 的服务器上，与缓存分开。在此之前，为服务器提供多于其用量的内存，并关注 locksteward_redis_evicted_keys_total。",
	},
	"server/evicts-locks.summary":         {EN: "the server may evict locks: %s on %s", ZH: "服务器可能淘汰锁：%s（%s）"},
	"server/evicts-locks.evicted":         {EN: ", %s evicted since its start", ZH: "，自启动以来已淘汰 %s"},
	"server/evicts-locks.memory":          {EN: "maxmemory-policy %s, %s of %s used%s", ZH: "maxmemory-policy %s，已用 %s，上限 %s%s"},
	"server/evicts-locks.no-eviction-yet": {EN: "nothing was evicted so far", ZH: "目前尚未淘汰任何键"},
	"server/failover.cause": {
		EN: "A replica became the master: Sentinel or Cluster promoted it, or somebody did. Replication is asynchronous: locks, releases and renewals that it had not received are undone.",
		ZH: "副本已成为主节点：由 Sentinel、Cluster 或人工提升。复制是异步的：副本尚未收到的加锁、释放和续期都已失效。",
	},
	"server/failover.remedy": {
		EN: "Look at the locks that may be lost (see the evidence) and at others that were taken or released right before it: two may hold one, and a released one may stand again. What must never be written by two needs a fence. Verdicts of death wait for one longest lease, so that live processes can show themselves.",
		ZH: "检查可能已丢失的锁（见证据）以及在此之前刚被取得或释放的其他锁：可能有两个持有者，已释放的锁也可能重新出现。绝不能被两方写入的资源需要 fence。死亡判定会暂停一个最长租约，以便存活的进程重新出现。",
	},
	"server/failover.summary":      {EN: "another server took over: %s", ZH: "另一台服务器已接管：%s"},
	"server/failover.summary-lost": {EN: "another server took over, and %s may be lost: %s", ZH: "另一台服务器已接管，%s可能已丢失：%s"},
	"server/failover.lost": {
		EN: "held before it, before their expiry, and gone; that the new master ever had them is not proved: %s",
		ZH: "此前被持有、尚未到期、现已不存在，且无法证明新主节点曾有过：%s",
	},
	"server.may-be-released": {EN: "some of them may have been released meanwhile", ZH: "其中一部分可能已在此期间释放"},
	"server/flushed.cause": {
		EN: "Somebody sent FLUSHALL, FLUSHDB or SWAPDB: a cache that is emptied and shares the database with locks, a test or a deployment on the wrong server, or a person. Every lock was free at once while its holder worked.",
		ZH: "有人执行了 FLUSHALL、FLUSHDB 或 SWAPDB：与锁共用数据库的缓存被清空、测试或部署连错了服务器，或人工操作。所有锁立即可被他人取得，而其持有者仍在工作。",
	},
	"server/flushed.remedy": {
		EN: "Treat what the locks protect as written by two since then: holders that use our library learn of it at their next renewal, others do not. Keep locks in a database of their own, and take FLUSHALL, FLUSHDB and SWAPDB from applications by ACL.",
		ZH: "自那时起，请按可能存在两个写入者处理这些锁保护的资源：使用本库的持有者会在下次续期时得知，其他持有者则不会。将锁放在单独的数据库中，并通过 ACL 禁止应用执行 FLUSHALL、FLUSHDB 和 SWAPDB。",
	},
	"server/flushed.summary": {EN: "a flush took %s: %s", ZH: "清空操作带走了 %s：%s"},
	"server/flushed.taken":   {EN: "none of the %d locks that stood before it stands any more", ZH: "此前存在的 %d 把锁已无一存在"},
	"server/not-durable.cause": {
		EN: "The server keeps no log of its writes (appendonly no) and has no replica that could take over, or saving fails. Locks taken since the last snapshot, if there is any, are free after a restart while their holders work.",
		ZH: "服务器未记录写入日志（appendonly no），也没有可接管的副本，或持久化失败。重启后，自上次快照（若有）以来取得的锁会变为空闲，而其持有者仍在工作。",
	},
	"server/not-durable.remedy": {
		EN: "Switch on appendonly (with appendfsync always for a master of a Redlock), or add a replica with Sentinel or Cluster. If saving fails, look into the server's log: disk, permissions, fork. Fence what must never be written by two.",
		ZH: "开启 appendonly（Redlock 的主节点使用 appendfsync always），或通过 Sentinel、Cluster 增加副本。若持久化失败，请查看服务器日志：磁盘、权限、fork。对绝不能被两方写入的资源使用 fence。",
	},
	"server/not-durable.summary":      {EN: "the server may lose locks when it restarts: %s", ZH: "服务器重启时可能丢失锁：%s"},
	"server/not-durable.no-log":       {EN: "appendonly is off and no replica is connected", ZH: "appendonly 未开启，且没有已连接的副本"},
	"server/not-durable.saving-fails": {EN: "the last snapshot or write to the log failed", ZH: "上次快照或日志写入失败"},
	"server/not-durable.snapshots": {
		EN: "%s names %s as the time of its last snapshot, or of its start; %s since",
		ZH: "%s 称其上次快照或启动的时间为 %s；此后有 %s",
	},
	"server/refuses-writes.cause": {
		EN: "The server answers every write with an error: MISCONF, since it cannot save and is not to go on then (stop-writes-on-bgsave-error, or a log that it cannot write), or NOREPLICAS, since fewer replicas are in step with it than min-replicas-to-write asks for. No lock can be taken, renewed or released: leases run out under their holders.",
		ZH: "服务器对所有写命令返回错误：MISCONF（无法持久化，且被配置为此时停止写入：stop-writes-on-bgsave-error，或无法写入日志），或 NOREPLICAS（保持同步的副本少于 min-replicas-to-write 的要求）。锁无法加锁、续期或释放：租约会在持有期间到期。",
	},
	"server/refuses-writes.remedy": {
		EN: "MISCONF: look into the server's log (disk, permissions, fork) and mend what keeps it from saving. NOREPLICAS: bring the replicas back, or lower min-replicas-to-write if what is written may stand on fewer servers. Holders whose lease ran out meanwhile must stop (hold/lost).",
		ZH: "MISCONF：查看服务器日志（磁盘、权限、fork），修复导致持久化失败的问题。NOREPLICAS：恢复副本；若允许数据只写入更少的服务器，可调低 min-replicas-to-write。租约已在此期间到期的持有者必须停止（见 hold/lost）。",
	},
	"server/refuses-writes.summary": {
		EN: "the server takes no writes, so that no lock can be taken, renewed or released: %s",
		ZH: "服务器拒绝写入，锁无法加锁、续期或释放：%s",
	},
	"server/refuses-writes.saving-fails": {EN: "MISCONF since saving fails", ZH: "MISCONF，因为持久化失败"},
	"server/refuses-writes.too-few-replicas": {
		EN: "NOREPLICAS since min-replicas-to-write asks for more than the %s in step",
		ZH: "NOREPLICAS，因为 min-replicas-to-write 要求多于目前保持同步的 %s",
	},
	"server/refuses-writes.refused": {EN: "%s, %s refused between %s and %s", ZH: "%s，%s在 %s 与 %s 之间被拒绝"},
	"server/restarted.cause": {
		EN: "Another server process answers than before, and it was started since: a planned restart, a crash, or the machine's end. What was not saved is gone: locks, metadata, heartbeats.",
		ZH: "应答的已是另一个服务器进程，且在上次查看之后才启动：计划内重启、崩溃或机器故障。未持久化的内容已丢失：锁、元数据、心跳。",
	},
	"server/restarted.remedy": {
		EN: "Treat what the locks protect as written by two if locks were lost (server/not-durable tells whether they could be). Verdicts of death wait for one longest lease, so that live processes can show themselves.",
		ZH: "若有锁丢失，请按可能存在两个写入者处理其保护的资源（server/not-durable 说明是否可能丢失）。死亡判定会暂停一个最长租约，以便存活的进程重新出现。",
	},
	"server/restarted.summary":      {EN: "the server was restarted: %s", ZH: "服务器已重启：%s"},
	"server/restarted.summary-lost": {EN: "the server was restarted and lost %s: %s", ZH: "服务器已重启，并丢失了 %s：%s"},
	"server/restarted.none-left":    {EN: "no lock that was known before it is left", ZH: "此前已知的锁已无一存在"},
	"server/restarted.left":         {EN: "%s known before it are left", ZH: "此前已知的锁中仍有 %s存在"},
	"server/restarted.lost": {
		EN: "gone, though without TTL or with a lease that ended after the server was back: %s",
		ZH: "没有过期时间，或租约在服务器恢复之后才到期，但已不存在：%s",
	},
	"server/restarted.started-since": {EN: "%s since %s", ZH: "%s 自 %s 起"},
	"server/restarted.started": {
		EN: "another process answers (its run_id is another one), running: %s",
		ZH: "应答的是另一个进程（run_id 不同），运行时间：%s",
	},
	"server/restarted.more-classes":  {EN: "%d more classes", ZH: "另有 %d 个 class"},
	"server/restarted.class":         {EN: "class %s: %d", ZH: "class %s：%d"},
	"server/restarted.lost-by-class": {EN: "lost by class: %s", ZH: "按 class 统计的丢失数量：%s"},
	"server.event-before":            {EN: "%s shortly before %s", ZH: "%s，就在 %s 之前"},
	"server.event-between":           {EN: "%s between %s and %s", ZH: "%s，在 %s 与 %s 之间"},
	"server.event-restarted":         {EN: "%s was restarted", ZH: "%s 已重启"},
	"server.event-failover-from":     {EN: "a failover made %s the master in place of %s", ZH: "故障切换使 %s 取代 %s 成为主节点"},
	"server.event-failover":          {EN: "a failover made %s the master", ZH: "故障切换使 %s 成为主节点"},
	"server.event-evicted":           {EN: "%s evicted %s for want of memory", ZH: "%s 因内存不足淘汰了 %s"},
	"server.event-flushed":           {EN: "data of %s was flushed (FLUSHALL or FLUSHDB)", ZH: "%s 的数据被清空（FLUSHALL 或 FLUSHDB）"},
	"server.event-flushed-calls": {
		EN: "data of %s was flushed (FLUSHALL, FLUSHDB or SWAPDB, %s)",
		ZH: "%s 的数据被清空（FLUSHALL、FLUSHDB 或 SWAPDB，%s）",
	},
	"server.event-clock-back":    {EN: "the clock of %s jumped back by %s", ZH: "%s 的时钟向后跳变 %s"},
	"server.event-clock-forward": {EN: "the clock of %s jumped forward by %s", ZH: "%s 的时钟向前跳变 %s"},
}
