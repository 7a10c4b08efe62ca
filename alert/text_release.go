package alert

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// Package release describes events in English, as in the audit trail. This file does it in
// Chinese, from the kind of the event and its request.

// releaseSentence is the sentence of a notice in a language.
func releaseSentence(lang string, n Notice) string {
	if lang != "zh" {
		return n.Text
	}
	r := n.Request
	switch n.Kind {
	case "release.requested":
		return "有一个" + actZH(r.Evidence.Act) + "申请等待审批。"
	case "release.reminder":
		left := ""
		if !r.ExpiresAt.IsZero() && r.ExpiresAt.After(n.At) {
			left = "，" + r.ExpiresAt.Sub(n.At).Round(time.Second).String() + " 后过期"
		}
		return "有一个" + actZH(r.Evidence.Act) + "申请仍未审批" + left + "。"
	case "release.self_approved":
		return n.Actor + " 批准了自己的申请。"
	case "release.auto":
		return "未经人工审批，按类别策略执行" + actZH(r.Evidence.Act) + autoBecause(r) + "。"
	case "release.break_glass":
		return n.Actor + " 使用了紧急权限：未经他人批准即" + actZH(r.Evidence.Act) + "一把锁。"
	case "release.final", "release.unknown":
		return outcomeZH(r, n.Text)
	case "release.resurrected":
		if r.Evidence.Identity == locksteward.IdentityStrong {
			return "释放之后，原持有者再次写入了这把锁：其客户端库会重建缺失的 key。请先停止该进程，再重新申请。"
		}
		return "释放之后，同一所有者再次持有这把锁：可能是重新加锁，也可能是其客户端库重建了缺失的 key。若确认无人使用，请停止该进程后重新申请。"
	case "release.paused":
		return pausedZH(n)
	case "release.breaker":
		return breakerZH(n)
	default:
		return n.Text
	}
}

func actZH(a locksteward.Act) string { return translate("zh", a.String()) }

// autoBecause are the rules by which the agent decided.
func autoBecause(r locksteward.Request) string {
	if len(r.Evidence.Findings) == 0 {
		return ""
	}
	return "（依据：" + strings.Join(r.Evidence.Findings, "、") + "）"
}

// outcomeZH is the outcome of a request.
func outcomeZH(r locksteward.Request, english string) string {
	const untouched = "未做任何改动。"
	switch r.State {
	case locksteward.RequestReleased:
		return doneZH(r) + recordedZH(english)
	case locksteward.RequestAlreadyGone:
		switch r.Evidence.Act {
		case locksteward.ActUndo:
			return "未能撤销：保留的锁已不存在，其自身期限或可撤销期限已过。" + untouched
		case locksteward.ActLift:
			return "占位已不存在。" + untouched
		default:
			return "未释放：锁已自行结束。" + untouched
		}
	case locksteward.RequestChanged:
		switch r.Evidence.Act {
		case locksteward.ActUndo:
			return "未能撤销：已有人持有这把锁。" + untouched
		case locksteward.ActLift:
			return "锁已由他人持有。" + untouched
		default:
			return "未释放：锁在申请之后发生了变化。" + untouched
		}
	case locksteward.RequestFailed:
		return "未释放：执行失败。" + untouched + original(english)
	case locksteward.RequestUnknown:
		return "无法确定锁是否已释放，不会重试。再次申请之前，请先查看这把锁。" + original(english)
	case locksteward.RequestDenied:
		by := ""
		for _, d := range r.Decisions {
			if !d.Approve {
				by = "，由 " + d.By + " 拒绝"
			}
		}
		return "申请已被拒绝" + by + "。" + untouched
	case locksteward.RequestExpired:
		if !r.ApprovedUntil.IsZero() {
			return "已过期：申请已批准，但未在期限内执行。" + untouched
		}
		return "已过期：未在期限内获得足够的批准。" + untouched
	case locksteward.RequestSuperseded:
		return "申请已被取代。" + untouched + original(english)
	default:
		return english
	}
}

func doneZH(r locksteward.Request) string {
	e := r.Evidence
	woken := ""
	if r.WaitersWoken > 0 {
		woken = fmt.Sprintf("，并通知了 %d 个等待的客户端", r.WaitersWoken)
	}
	switch {
	case e.Act == locksteward.ActUndo:
		return "已撤销：锁已恢复，过期时间与原来相同；其客户端库另存的数据未恢复。"
	case e.Act == locksteward.ActLift:
		return "已解除：占位已删除" + woken + "。"
	case e.Act == locksteward.ActTakeOver:
		return fmt.Sprintf("已接管：%s 内任何人都无法获得这把锁，除非提前解除。", e.Placeholder)
	case e.Placeholder > 0:
		return fmt.Sprintf("已释放：锁已删除，%s 内任何人都无法获得。", e.Placeholder)
	default:
		return "已释放：锁已删除" + woken + "。"
	}
}

// recordedZH is that the answer was lost, where the English sentence has it.
func recordedZH(english string) string {
	if !strings.HasSuffix(english, recordedText) {
		return ""
	}
	return "服务器的应答已丢失，由执行记录确认。"
}

// recordedText ends the sentence of an outcome from the record of the execution.
const recordedText = "confirmed by the execution record."

// original adds an English sentence with details that the Chinese one lacks.
func original(english string) string {
	if english == "" {
		return ""
	}
	return "（原文：" + english + "）"
}

// The sentences of package release that are about no request.
var (
	pausedText  = regexp.MustCompile(`^(.+) paused (all|automatic) releases(?: until (\S+))?\.$`)
	resumedText = regexp.MustCompile(`^(.+) resumed (all|automatic) releases\.$`)
	breakerText = regexp.MustCompile(`^(\d+) locks .*is over for (\S+)\.$`)
)

// scopesZH are the scopes of a pause.
var scopesZH = map[string]string{"all": "所有释放", "automatic": "自动释放"}

func pausedZH(n Notice) string {
	if m := pausedText.FindStringSubmatch(n.Text); m != nil {
		text := m[1] + " 暂停了" + scopesZH[m[2]]
		if m[3] != "" {
			text += "，直至 " + m[3]
		}
		return text + "。"
	}
	if m := resumedText.FindStringSubmatch(n.Text); m != nil {
		return m[1] + " 恢复了" + scopesZH[m[2]] + "。"
	}
	return "释放的暂停状态发生了变更。" + original(n.Text)
}

func breakerZH(n Notice) string {
	m := breakerText.FindStringSubmatch(n.Text)
	if m == nil {
		return "大量锁同时疑似失效：在恢复之前不会自动释放任何锁。" + original(n.Text)
	}
	return fmt.Sprintf("目标 %s 有 %s 把锁同时疑似失效：恢复并持续 %s 之前，不会自动释放任何锁。", n.Target, m[1], m[2])
}
