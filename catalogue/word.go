package catalogue

// wordSentences are the words of notifications beside their sentences. Templates reach them
// with the function t: docs/templates.md.
var wordSentences = sentences{
	// states and severities
	"word.firing":   {EN: "FIRING", ZH: "告警"},
	"word.resolved": {EN: "RESOLVED", ZH: "已恢复"},
	"word.critical": {EN: "critical", ZH: "严重"},
	"word.warning":  {EN: "warning", ZH: "警告"},
	"word.info":     {EN: "info", ZH: "提示"},
	"word.deadlock": {EN: "deadlock", ZH: "死锁"},
	"word.proven":   {EN: "proven", ZH: "已证实"},
	"word.presumed": {EN: "presumed", ZH: "推定"},

	// what a notification does not list, beside severities
	"word.over":            {EN: "over", ZH: "已恢复"},
	"word.notified_before": {EN: "notified before", ZH: "此前已通知"},

	// why a notification is sent
	"word.news":        {EN: "new", ZH: "新消息"},
	"word.repeat":      {EN: "Still firing.", ZH: "仍未恢复，再次提醒。"},
	"word.first_sweep": {EN: "First sweep of this target: this is what was there already.", ZH: "首次巡检该目标：以下问题在此之前就已存在。"},
	"word.digest":      {EN: "More is due than the rate limit of this service permits: several groups in one message.", ZH: "待发消息超过该服务的频率限制，已将多个分组合并为一条。"},
	"word.loud":        {EN: "No silence and no filter applies to this message.", ZH: "此消息不受静默和过滤规则影响。"},

	// labels
	"word.lock":        {EN: "lock", ZH: "锁"},
	"word.class":       {EN: "class", ZH: "类别"},
	"word.target":      {EN: "target", ZH: "目标"},
	"word.db":          {EN: "db", ZH: "库"},
	"word.library":     {EN: "library", ZH: "锁类型"},
	"word.rule":        {EN: "rule", ZH: "规则"},
	"word.severity":    {EN: "severity", ZH: "级别"},
	"word.group":       {EN: "group", ZH: "分组"},
	"word.holder":      {EN: "holder", ZH: "持有者"},
	"word.since":       {EN: "since", ZH: "开始于"},
	"word.lasted":      {EN: "lasted", ZH: "持续"},
	"word.summary":     {EN: "summary", ZH: "摘要"},
	"word.evidence":    {EN: "evidence", ZH: "证据"},
	"word.against":     {EN: "against it", ZH: "反证"},
	"word.cause":       {EN: "cause", ZH: "原因"},
	"word.remedy":      {EN: "remedy", ZH: "处理建议"},
	"word.team":        {EN: "team", ZH: "团队"},
	"word.runbook":     {EN: "runbook", ZH: "处理手册"},
	"word.console":     {EN: "console", ZH: "控制台"},
	"word.risk":        {EN: "risk", ZH: "风险"},
	"word.proof":       {EN: "holder dead", ZH: "持有者已失效"},
	"word.subject":     {EN: "subject", ZH: "对象"},
	"word.request":     {EN: "request", ZH: "申请"},
	"word.state":       {EN: "state", ZH: "状态"},
	"word.act":         {EN: "act", ZH: "操作"},
	"word.requester":   {EN: "requested by", ZH: "申请人"},
	"word.actor":       {EN: "by", ZH: "操作人"},
	"word.reason":      {EN: "reason", ZH: "理由"},
	"word.decision":    {EN: "decision", ZH: "审批"},
	"word.approve":     {EN: "approved", ZH: "同意"},
	"word.deny":        {EN: "denied", ZH: "拒绝"},
	"word.outcome":     {EN: "outcome", ZH: "结果"},
	"word.expires":     {EN: "expires", ZH: "过期时间"},
	"word.findings":    {EN: "findings", ZH: "检查结果"},
	"word.and":         {EN: "and", ZH: "等"},
	"word.test":        {EN: "Test", ZH: "测试"},
	"word.alive":       {EN: "The holder is known to live and may still be writing.", ZH: "已知持有者仍存活，可能仍在写入。"},
	"word.break_glass": {EN: "One person asked and decided, past the rules of the class.", ZH: "由一人申请并自行决定，未遵循该类别的审批规则。"},
	"word.hidden":      {EN: "left out: it may name locks; the console shows it", ZH: "已省略：其中可能包含锁的名称，请在控制台查看"},

	// states of a request
	"word.pending":      {EN: "waits for a decision", ZH: "待审批"},
	"word.approved":     {EN: "approved", ZH: "已批准"},
	"word.executing":    {EN: "being executed", ZH: "执行中"},
	"word.released":     {EN: "released", ZH: "已释放"},
	"word.already_gone": {EN: "already gone", ZH: "锁已自行结束"},
	"word.changed":      {EN: "changed", ZH: "锁已变化"},
	"word.failed":       {EN: "failed", ZH: "失败"},
	"word.unknown":      {EN: "unknown", ZH: "结果未知"},
	"word.denied":       {EN: "denied", ZH: "已拒绝"},
	"word.expired":      {EN: "expired", ZH: "已过期"},
	"word.superseded":   {EN: "superseded", ZH: "已被取代"},

	// acts
	"word.release":   {EN: "release", ZH: "释放"},
	"word.take-over": {EN: "take-over", ZH: "接管"},
	"word.undo":      {EN: "undo", ZH: "撤销释放"},
	"word.lift":      {EN: "lift", ZH: "解除占位"},

	// titles of notifications about releases
	"word.release.requested":     {EN: "Release requested", ZH: "锁释放申请"},
	"word.release.reminder":      {EN: "Release still undecided", ZH: "锁释放申请仍待审批"},
	"word.release.self_approved": {EN: "Release approved by its requester", ZH: "锁释放由申请人自行批准"},
	"word.release.auto":          {EN: "Release without a person", ZH: "锁自动释放"},
	"word.release.break_glass":   {EN: "Break-glass release", ZH: "紧急释放"},
	"word.release.final":         {EN: "Release ended", ZH: "锁释放申请结束"},
	"word.release.unknown":       {EN: "Outcome of a release unknown", ZH: "锁释放结果未知"},
	"word.release.resurrected":   {EN: "Released lock is back", ZH: "已释放的锁再次出现"},
	"word.release.paused":        {EN: "Releases paused or resumed", ZH: "锁释放的暂停状态变更"},
	"word.release.breaker":       {EN: "Many locks look dead at once", ZH: "大量锁同时疑似失效"},
}
