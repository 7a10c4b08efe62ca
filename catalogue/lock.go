package catalogue

var lockSentences = sentences{
	"class.limit": {EN: "the limit of class %q is %s", ZH: "class %q 的上限为 %s"},
	"custom.cause": {
		EN: "The expression that the configuration gives for this rule holds for the lock.",
		ZH: "配置中为该规则给出的表达式对这把锁成立。",
	},
	"custom.remedy": {
		EN: "Ask the team that wrote the rule what to do; it can say so in the rule's remedy.",
		ZH: "请向编写该规则的团队确认处理方式；可写入规则的 remedy 字段。",
	},
	"custom.summary":            {EN: "the rule %s holds for %s", ZH: "规则 %s 对锁 %s 成立"},
	"custom.summary-of-its-own": {EN: "%s: %s", ZH: "%s：锁 %s"},
	"custom.holds":              {EN: "holds: %s", ZH: "成立：%s"},
	"lock.pid":                  {EN: "pid %d", ZH: "pid %d"},
	"lock.holder":               {EN: "holder: %s", ZH: "持有者：%s"},
	"lock.app":                  {EN: "app %s", ZH: "应用 %s"},
	"lock.host":                 {EN: "host %s", ZH: "主机 %s"},
	"lock.session":              {EN: "session %s", ZH: "会话 %s"},
	"lock.instance":             {EN: "instance %s", ZH: "实例 %s"},
	"lock.waiters":              {EN: "%s for it", ZH: "有 %s在等待它"},
	"lock.idle": {
		EN: "no client had read or written it for %s when it was first seen (OBJECT IDLETIME)",
		ZH: "首次看到时，已有 %s 没有客户端读写过它（OBJECT IDLETIME）",
	},
	"lock.ttl-none": {EN: "no TTL: it never expires by itself", ZH: "没有过期时间：不会自行过期"},
	"lock.ttl-session": {
		EN: "no TTL: it ends with the session of its holder",
		ZH: "没有过期时间：随持有者的会话结束",
	},
	"lock.ttl":   {EN: "TTL %s left", ZH: "距过期还有 %s"},
	"lock.alive": {EN: "the holder's process is alive: its last heartbeat was %s ago", ZH: "持有者进程仍存活：上次心跳在 %s 前"},
	"lock.heartbeat-gone": {
		EN: "the heartbeat of the holder's process is gone (more than %s old)",
		ZH: "持有者进程的心跳已消失（超过 %s）",
	},
	"lock.heartbeat-late": {
		EN: "the last heartbeat of the holder's process was %s ago, one is due every %s",
		ZH: "持有者进程的上次心跳在 %s 前，应每 %s 一次",
	},
	"lock.name-only": {
		EN: "only the key's name says that it is a lock; no configured class claims it",
		ZH: "只有键名表明它是锁，没有任何已配置的 class 与之匹配",
	},
	"lock.names": {EN: "locks: %s", ZH: "锁：%s"},
	"fact.empty": {EN: "empty", ZH: "空"},
	"written-age.asked": {
		EN: "it is when the holder asked for the lock, which may have waited since",
		ZH: "这是持有者请求加锁的时间，此后可能还在等待",
	},
	"written-age.future":   {EN: "it lies in the future of the server", ZH: "晚于服务器的当前时间"},
	"written-age.too-long": {EN: "the lease would be longer than 24h although no renewal was seen", ZH: "未看到续期，而租约将超过 24h"},
	"library.redisson-removed-ttl": {
		EN: "Redisson sets the TTL in the script that takes the lock, so something else removed or recreated it: PERSIST, RESTORE, or a plain HSET or HINCRBY on the key.",
		ZH: "Redisson 在加锁脚本中设置过期时间，因此是其他操作去掉或重建了该键：PERSIST、RESTORE，或直接对该键执行 HSET、HINCRBY。",
	},
	"library.locksteward-removed-ttl": {
		EN: "The lock library never takes a lock without TTL, so somebody removed it afterwards: PERSIST, or a SET or RESTORE by another program.",
		ZH: "本锁库绝不会加无过期时间的锁，因此是之后被去掉的：PERSIST，或其他程序的 SET、RESTORE。",
	},
	"lock.seen":         {EN: "first seen %s ago, at %s, in %s", ZH: "%s 前首次看到（%s），共看到 %s"},
	"fact":              {EN: "%s is %s", ZH: "%s 为 %s"},
	"fact.unknown":      {EN: "%s is not known", ZH: "%s 未知"},
	"fact.age":          {EN: "%s is %s (%s)", ZH: "%s 为 %s（%s）"},
	"fact.age-at-least": {EN: "%s is at least %s (%s)", ZH: "%s 至少为 %s（%s）"},
	"fact.more":         {EN: "%s, and %d more", ZH: "%s，另有 %d 个"},
}
