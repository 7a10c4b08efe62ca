package catalogue

// releaseSentences are the outcomes of requests and what people are notified of beside
// these. Where an argument is in one language only, the other has less to say.
var releaseSentences = sentences{
	// requests and decisions
	"release.requested":          {EN: "A release waits for a decision.", ZH: "有一个%s申请等待审批。"},
	"release.reminder":           {EN: "A release still waits for a decision and expires in %[2]s.", ZH: "有一个%[1]s申请仍未审批，%[2]s 后过期。"},
	"release.self-approved":      {EN: "%s approved their own request.", ZH: "%s 批准了自己的申请。"},
	"release.alone":              {EN: "Released without a person: %[2]s.", ZH: "未经人工审批，按类别策略执行%[1]s%[3]s。"},
	"release.alone-rules":        {EN: " (because of: %s)", ZH: "（依据：%s）"},
	"release.glass-broken":       {EN: "%[1]s broke the glass: a lock is released without another person.", ZH: "%[1]s 使用了紧急权限：未经他人批准即%[2]s一把锁。"},
	"release.denied":             {EN: "Denied by %s. Nothing was touched.", ZH: "申请已被拒绝，由 %s 拒绝。未做任何改动。"},
	"release.expired":            {EN: "Expired: not enough people approved in time. Nothing was touched.", ZH: "已过期：未在期限内获得足够的批准。未做任何改动。"},
	"release.expired-approved":   {EN: "Expired: it was approved but not executed in time. Nothing was touched.", ZH: "已过期：申请已批准，但未在期限内执行。未做任何改动。"},
	"release.superseded-decided": {EN: "Superseded by request %[1]s, which was decided on. Nothing was touched by this one.", ZH: "申请已被取代。未做任何改动。（原文：Superseded by request %[1]s, which was decided on. Nothing was touched by this one.）"},
	"release.superseded-changed": {EN: "Superseded by request %[1]s: the lock changed since this one. Nothing was touched.", ZH: "申请已被取代。未做任何改动。（原文：Superseded by request %[1]s: the lock changed since this one. Nothing was touched.）"},
	"release.back":               {EN: "The old holder wrote the lock again after its release: its library re-creates a key that is missing. Stop that process, then request again.", ZH: "释放之后，原持有者再次写入了这把锁：其客户端库会重建缺失的 key。请先停止该进程，再重新申请。"},
	"release.back-weak":          {EN: "The same owner has the lock again after its release: it took it anew, or its library re-creates a key that is missing. If nobody works under it, stop that process, then request again.", ZH: "释放之后，同一所有者再次持有这把锁：可能是重新加锁，也可能是其客户端库重建了缺失的 key。若确认无人使用，请停止该进程后重新申请。"},

	// pauses
	"release.paused-all":        {EN: "%s paused all releases%s.", ZH: "%s 暂停了所有释放%s。"},
	"release.paused-automatic":  {EN: "%s paused automatic releases%s.", ZH: "%s 暂停了自动释放%s。"},
	"release.paused-until":      {EN: " until %s", ZH: "，直至 %s"},
	"release.resumed-all":       {EN: "%s resumed all releases.", ZH: "%s 恢复了所有释放。"},
	"release.resumed-automatic": {EN: "%s resumed automatic releases.", ZH: "%s 恢复了自动释放。"},
	"release.breaker": {
		EN: "%d locks of target %q look dead at once: nothing is released without a person until it is over for %s.",
		ZH: "目标 %[2]s 有 %[1]d 把锁同时疑似失效：恢复并持续 %[3]s 之前，不会自动释放任何锁。",
	},

	// outcomes
	"release.done":         {EN: "Released: the hold was ended%s.", ZH: "已释放：该持有已结束%s。"},
	"release.done-delay":   {EN: "Released: the hold was ended, and nobody gets it for %s.", ZH: "已释放：该持有已结束，%s 内任何人都无法获得。"},
	"release.taken-over":   {EN: "Taken over: nobody gets the lock for %s, or until that is ended.", ZH: "已接管：%s 内任何人都无法获得这把锁，除非提前解除。"},
	"release.undone":       {EN: "Undone: the lock stands again, with the expiry that it had. What its library keeps beside it did not come back.", ZH: "已撤销：锁已恢复，过期时间与原来相同；其客户端库另存的数据未恢复。"},
	"release.lifted":       {EN: "Released: what stood in the lock's place was deleted%s.", ZH: "已解除：占位已删除%s。"},
	"release.woken":        {One: " and %d waiting client was notified", EN: " and %d waiting clients were notified", ZH: "，并通知了 %d 个等待的客户端"},
	"release.recorded":     {EN: "%s Its answer was lost: confirmed by the execution record.", ZH: "%s服务器的应答已丢失，由执行记录确认。"},
	"release.gone":         {EN: "Not released: the lock had ended by itself. Nothing was touched.", ZH: "未释放：锁已自行结束。未做任何改动。"},
	"release.gone-undo":    {EN: "Not undone: the lock is not kept any more; its own time or that for an undo is over. Nothing was touched.", ZH: "未能撤销：保留的锁已不存在，其自身期限或可撤销期限已过。未做任何改动。"},
	"release.gone-lift":    {EN: "Nothing stood in the lock's place any more. Nothing was touched.", ZH: "占位已不存在。未做任何改动。"},
	"release.changed":      {EN: "Not released: the lock changed since the request. Nothing was touched.", ZH: "未释放：锁在申请之后发生了变化。未做任何改动。"},
	"release.changed-undo": {EN: "Not undone: somebody holds the lock now. Nothing was touched.", ZH: "未能撤销：已有人持有这把锁。未做任何改动。"},
	"release.changed-lift": {EN: "Somebody else holds the lock now. Nothing was touched.", ZH: "锁已由他人持有。未做任何改动。"},
	"release.failed":       {EN: "Not released: %[1]s. Nothing was touched.", ZH: "未释放：执行失败。未做任何改动。（原文：Not released: %[1]s. Nothing was touched.）"},
	"release.unknown": {
		EN: "Not known whether the lock was released: %[1]s. It is not tried again; look at the lock before you request another release.",
		ZH: "无法确定锁是否已释放，不会重试。再次申请之前，请先查看这把锁。（原文：Not known whether the lock was released: %[1]s. It is not tried again; look at the lock before you request another release.）",
	},
}
