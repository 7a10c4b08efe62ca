package alert

import (
	"fmt"
	"strings"

	"github.com/locksteward/locksteward"
)

// words are the texts of notifications beside those of findings and requests.
// Templates reach them with the function t: docs/templates.md.
var words = map[string]locksteward.Text{
	// states and severities
	"firing":   {EN: "FIRING", ZH: "告警"},
	"resolved": {EN: "RESOLVED", ZH: "已恢复"},
	"critical": {EN: "critical", ZH: "严重"},
	"warning":  {EN: "warning", ZH: "警告"},
	"info":     {EN: "info", ZH: "提示"},
	"deadlock": {EN: "deadlock", ZH: "死锁"},
	"proven":   {EN: "proven", ZH: "已证实"},
	"presumed": {EN: "presumed", ZH: "推定"},

	// what a notification does not list, beside severities
	"over":            {EN: "over", ZH: "已恢复"},
	"notified_before": {EN: "notified before", ZH: "此前已通知"},

	// why a notification is sent
	"news":        {EN: "new", ZH: "新消息"},
	"repeat":      {EN: "Still firing.", ZH: "仍未恢复，再次提醒。"},
	"first_sweep": {EN: "First sweep of this target: this is what was there already.", ZH: "首次巡检该目标：以下问题在此之前就已存在。"},
	"digest":      {EN: "More is due than the rate limit of this service permits: several groups in one message.", ZH: "待发消息超过该服务的频率限制，已将多个分组合并为一条。"},
	"loud":        {EN: "No silence and no filter applies to this message.", ZH: "此消息不受静默和过滤规则影响。"},

	// labels
	"lock":        {EN: "lock", ZH: "锁"},
	"class":       {EN: "class", ZH: "类别"},
	"target":      {EN: "target", ZH: "目标"},
	"db":          {EN: "db", ZH: "库"},
	"library":     {EN: "library", ZH: "锁类型"},
	"rule":        {EN: "rule", ZH: "规则"},
	"severity":    {EN: "severity", ZH: "级别"},
	"group":       {EN: "group", ZH: "分组"},
	"holder":      {EN: "holder", ZH: "持有者"},
	"since":       {EN: "since", ZH: "开始于"},
	"lasted":      {EN: "lasted", ZH: "持续"},
	"summary":     {EN: "summary", ZH: "摘要"},
	"evidence":    {EN: "evidence", ZH: "证据"},
	"against":     {EN: "against it", ZH: "反证"},
	"cause":       {EN: "cause", ZH: "原因"},
	"remedy":      {EN: "remedy", ZH: "处理建议"},
	"team":        {EN: "team", ZH: "团队"},
	"runbook":     {EN: "runbook", ZH: "处理手册"},
	"console":     {EN: "console", ZH: "控制台"},
	"risk":        {EN: "risk", ZH: "风险"},
	"proof":       {EN: "holder dead", ZH: "持有者已失效"},
	"subject":     {EN: "subject", ZH: "对象"},
	"request":     {EN: "request", ZH: "申请"},
	"state":       {EN: "state", ZH: "状态"},
	"act":         {EN: "act", ZH: "操作"},
	"requester":   {EN: "requested by", ZH: "申请人"},
	"actor":       {EN: "by", ZH: "操作人"},
	"reason":      {EN: "reason", ZH: "理由"},
	"decision":    {EN: "decision", ZH: "审批"},
	"approve":     {EN: "approved", ZH: "同意"},
	"deny":        {EN: "denied", ZH: "拒绝"},
	"outcome":     {EN: "outcome", ZH: "结果"},
	"expires":     {EN: "expires", ZH: "过期时间"},
	"findings":    {EN: "findings", ZH: "检查结果"},
	"and":         {EN: "and", ZH: "等"},
	"test":        {EN: "Test", ZH: "测试"},
	"alive":       {EN: "The holder is known to live and may still be writing.", ZH: "已知持有者仍存活，可能仍在写入。"},
	"break_glass": {EN: "One person asked and decided, past the rules of the class.", ZH: "由一人申请并自行决定，未遵循该类别的审批规则。"},
	"hidden":      {EN: "left out: it may name locks; the console shows it", ZH: "已省略：其中可能包含锁的名称，请在控制台查看"},

	// states of a request
	"pending":      {EN: "waits for a decision", ZH: "待审批"},
	"approved":     {EN: "approved", ZH: "已批准"},
	"executing":    {EN: "being executed", ZH: "执行中"},
	"released":     {EN: "released", ZH: "已释放"},
	"already_gone": {EN: "already gone", ZH: "锁已自行结束"},
	"changed":      {EN: "changed", ZH: "锁已变化"},
	"failed":       {EN: "failed", ZH: "失败"},
	"unknown":      {EN: "unknown", ZH: "结果未知"},
	"denied":       {EN: "denied", ZH: "已拒绝"},
	"expired":      {EN: "expired", ZH: "已过期"},
	"superseded":   {EN: "superseded", ZH: "已被取代"},

	// acts
	"release":   {EN: "release", ZH: "释放"},
	"take-over": {EN: "take-over", ZH: "接管"},
	"undo":      {EN: "undo", ZH: "撤销释放"},
	"lift":      {EN: "lift", ZH: "解除占位"},

	// titles of notifications about releases
	"release.requested":     {EN: "Release requested", ZH: "锁释放申请"},
	"release.reminder":      {EN: "Release still undecided", ZH: "锁释放申请仍待审批"},
	"release.self_approved": {EN: "Release approved by its requester", ZH: "锁释放由申请人自行批准"},
	"release.auto":          {EN: "Release without a person", ZH: "锁自动释放"},
	"release.break_glass":   {EN: "Break-glass release", ZH: "紧急释放"},
	"release.final":         {EN: "Release ended", ZH: "锁释放申请结束"},
	"release.unknown":       {EN: "Outcome of a release unknown", ZH: "锁释放结果未知"},
	"release.resurrected":   {EN: "Released lock is back", ZH: "已释放的锁再次出现"},
	"release.paused":        {EN: "Releases paused or resumed", ZH: "锁释放的暂停状态变更"},
	"release.breaker":       {EN: "Many locks look dead at once", ZH: "大量锁同时疑似失效"},
}

// translate returns a word in a language; an unknown word, such as a status of a later
// version, is returned as it is.
func translate(lang, word string) string {
	if text, ok := words[word]; ok {
		return text.In(lang)
	}
	return word
}

// moreWords are that some findings are not listed.
func moreWords(lang string, n int) string {
	if lang == "zh" {
		return fmt.Sprintf("另有 %d 项未列出", n)
	}
	return fmt.Sprintf("and %d more", n)
}

// severityWords are how many findings of a severity there are.
func severityWords(lang string, n int, severity string) string {
	if lang == "zh" {
		return fmt.Sprintf("%s %d", translate(lang, severity), n)
	}
	return fmt.Sprintf("%d %s", n, translate(lang, severity))
}

// asideWords put a list into brackets behind what it explains.
func asideWords(lang string, list []string) string {
	if lang == "zh" {
		return "（" + strings.Join(list, "，") + "）"
	}
	return " (" + strings.Join(list, ", ") + ")"
}

// firingWords are how many locks of a group fire.
func firingWords(lang string, n int) string {
	switch {
	case lang == "zh":
		return fmt.Sprintf("该分组当前共有 %d 项未恢复", n)
	case n == 1:
		return "1 finding of the group fires now"
	default:
		return fmt.Sprintf("%d findings of the group fire now", n)
	}
}

// severalWords count rules, classes or targets.
func severalWords(lang string, n int, what string) string {
	if lang == "zh" {
		return fmt.Sprintf("%d %s", n, map[string]string{"rules": "条规则", "classes": "个类别", "targets": "个目标"}[what])
	}
	return fmt.Sprintf("%d %s", n, what)
}

// testWords are the sentence of a test.
func testWords(lang, receiver, by string) string {
	if lang == "zh" {
		return "这是对接收方 " + receiver + " 的测试，由 " + by + " 发起。一切正常，无需处理。"
	}
	return "This is a test of receiver " + receiver + ", asked for by " + by + ". Nothing is wrong."
}
