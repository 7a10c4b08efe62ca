package alert

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/locksteward/locksteward"
)

func hasHan(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) }) >= 0
}

func TestEveryWordIsThereInBothLanguages(t *testing.T) {
	t.Parallel()
	for word, text := range words {
		if text.EN == "" || hasHan(text.EN) || !hasHan(text.ZH) {
			t.Errorf("%s is %+v", word, text)
		}
	}
	for _, reason := range []Reasoning{ReasonNews, ReasonRepeat, ReasonFirstSweep, ReasonDigest} {
		if _, ok := words[string(reason)]; !ok {
			t.Errorf("the reason %q has no words", reason)
		}
	}
	for _, kind := range releaseTypes {
		if _, ok := words[kind]; !ok {
			t.Errorf("%q has no words", kind)
		}
	}
	for _, s := range []locksteward.RequestState{
		locksteward.RequestPending, locksteward.RequestApproved, locksteward.RequestExecuting, locksteward.RequestReleased, locksteward.RequestAlreadyGone,
		locksteward.RequestChanged, locksteward.RequestFailed, locksteward.RequestUnknown, locksteward.RequestDenied, locksteward.RequestExpired, locksteward.RequestSuperseded,
	} {
		if _, ok := words[string(s)]; !ok {
			t.Errorf("the state %q has no words", s)
		}
	}
	for _, a := range []locksteward.Act{locksteward.ActRelease, locksteward.ActTakeOver, locksteward.ActUndo, locksteward.ActLift} {
		if _, ok := words[a.String()]; !ok {
			t.Errorf("the act %q has no words", a)
		}
	}
	for _, n := range []int{1, 2} {
		for _, text := range []string{moreWords("zh", n), firingWords("zh", n), severalWords("zh", n, "rules"), testWords("zh", "ops", "ana")} {
			if !hasHan(text) {
				t.Errorf("got %q", text)
			}
		}
		for _, text := range []string{moreWords("en", n), firingWords("en", n), severalWords("en", n, "rules"), testWords("en", "ops", "ana")} {
			if hasHan(text) {
				t.Errorf("got %q", text)
			}
		}
	}
	if translate("zh", "a word of a later version") != "a word of a later version" {
		t.Error("a word that nobody knows does not say itself")
	}
}

// Every event of a release is sent in the receiver's language, and says what it says
// in English.
func TestReleasesAreToldInChinese(t *testing.T) {
	t.Parallel()
	at := sampleTime
	with := func(state locksteward.RequestState, alter func(*locksteward.Request)) locksteward.Request {
		r := glass().Request
		r.State = state
		if alter != nil {
			alter(&r)
		}
		return r
	}
	act := func(a locksteward.Act) func(*locksteward.Request) {
		return func(r *locksteward.Request) { r.Evidence.Act = a }
	}
	for _, c := range []struct {
		kind, text string
		r          locksteward.Request
		want       string
	}{
		{"release.requested", "A release waits for a decision.", with(locksteward.RequestPending, nil), "申请等待审批"},
		{"release.reminder", "A release still waits.", with(locksteward.RequestPending, nil), "1h0m0s 后过期"},
		{"release.self_approved", "ana approved their own request.", with(locksteward.RequestApproved, nil), "ana 批准了自己的申请"},
		{"release.auto", "Released without a person: auto: ttl/none held.", with(locksteward.RequestApproved, nil), "ttl/none"},
		{"release.break_glass", "ana broke the glass.", with(locksteward.RequestApproved, nil), "ana 使用了紧急权限"},
		{"release.final", "Released: the lock was deleted and 2 waiting clients were told.", with(locksteward.RequestReleased, func(r *locksteward.Request) { r.WaitersWoken = 2 }), "通知了 2 个等待的客户端"},
		{"release.final", "Released: the lock was deleted. Its answer was lost: confirmed by the execution record.", with(locksteward.RequestReleased, nil), "由执行记录确认"},
		{"release.final", "Released: and nobody gets it for 30s.", with(locksteward.RequestReleased, func(r *locksteward.Request) { r.Evidence.Placeholder = 30 * time.Second }), "30s 内"},
		{"release.final", "Taken over", with(locksteward.RequestReleased, func(r *locksteward.Request) {
			r.Evidence.Act, r.Evidence.Placeholder = locksteward.ActTakeOver, time.Minute
		}), "已接管"},
		{"release.final", "Undone", with(locksteward.RequestReleased, act(locksteward.ActUndo)), "已撤销"},
		{"release.final", "Released", with(locksteward.RequestReleased, act(locksteward.ActLift)), "已解除"},
		{"release.final", "Not released", with(locksteward.RequestAlreadyGone, nil), "锁已自行结束"},
		{"release.final", "Not undone", with(locksteward.RequestAlreadyGone, act(locksteward.ActUndo)), "未能撤销"},
		{"release.final", "Nothing stood", with(locksteward.RequestAlreadyGone, act(locksteward.ActLift)), "占位已不存在"},
		{"release.final", "Not released", with(locksteward.RequestChanged, nil), "发生了变化"},
		{"release.final", "Not undone", with(locksteward.RequestChanged, act(locksteward.ActUndo)), "已有人持有"},
		{"release.final", "Somebody else", with(locksteward.RequestChanged, act(locksteward.ActLift)), "由他人持有"},
		{"release.final", "Not released: READONLY.", with(locksteward.RequestFailed, nil), "原文：Not released: READONLY."},
		{"release.final", "Denied by ben.", with(locksteward.RequestDenied, func(r *locksteward.Request) {
			r.Decisions = []locksteward.Decision{{By: "ben"}}
		}), "由 ben 拒绝"},
		{"release.final", "Expired", with(locksteward.RequestExpired, nil), "足够的批准"},
		{"release.final", "Expired", with(locksteward.RequestExpired, func(r *locksteward.Request) { r.ApprovedUntil = at }), "未在期限内执行"},
		{"release.final", "Superseded by request r-9.", with(locksteward.RequestSuperseded, nil), "r-9"},
		{"release.unknown", "Not known whether", with(locksteward.RequestUnknown, nil), "无法确定"},
		{"release.resurrected", "The old holder", with(locksteward.RequestReleased, nil), "原持有者再次写入"},
		{"release.resurrected", "The same owner", with(locksteward.RequestReleased, func(r *locksteward.Request) { r.Evidence.Identity = locksteward.IdentityNone }), "同一所有者"},
		{"release.paused", "ana paused all releases.", locksteward.Request{}, "ana 暂停了所有释放。"},
		{"release.paused", "ana resumed all releases.", locksteward.Request{}, "恢复了所有释放"},
		{"release.paused", "ana paused automatic releases until 2026-03-01T13:00:00Z.", locksteward.Request{}, "直至 2026-03-01T13:00:00Z"},
		{"release.paused", "ana resumed automatic releases.", locksteward.Request{}, "恢复了自动释放"},
		{"release.paused", "a sentence of a later version", locksteward.Request{}, "原文：a sentence of a later version"},
		{"release.breaker", `20 locks of target "redis" look dead at once: nothing is released without a person until it is over for 5m0s.`, locksteward.Request{}, "有 20 把锁同时疑似失效：恢复并持续 5m0s"},
		{"release.breaker", "another sentence", locksteward.Request{}, "原文：another sentence"},
	} {
		n := Notice{EventID: "e", Kind: c.kind, At: at, Actor: "ana", Target: "redis", Request: c.r, Text: c.text}
		if got := releaseSentence("zh", n); !strings.Contains(got, c.want) || !hasHan(got) {
			t.Errorf("%s, %q: got %q, want %q in it", c.kind, c.text, got, c.want)
		}
		if got := releaseSentence("en", n); got != c.text {
			t.Errorf("%s: the English sentence became %q", c.kind, got)
		}
		m, err := releaseNotification(writer{name: "ops", lang: "zh"}, n, 1)
		if err != nil || decoded(m.Body).Release.Text != releaseSentence("zh", n) {
			t.Errorf("%s: the message says %s, %v", c.kind, m.Body, err)
		}
	}
}

// The Chinese goldens have no English left but names and times.
func TestChineseMessagesAreChinese(t *testing.T) {
	t.Parallel()
	word := regexp.MustCompile(`[A-Za-z]{4,}`)
	for name, p := range shownSamples("zh") {
		// Names and what comes from outside stand in English anywhere.
		known := fmt.Sprint("redis cache orders redsync checkout platform release ttl none lock order Locksteward PTTL ",
			"SETNX EXPIRE server failover token checkout is down server ops agent")
		s := renderer{lang: "zh"}.render(p)
		for _, l := range append([]line{{"", s.title}}, allLines(s)...) {
			for _, w := range word.FindAllString(l.label+l.text, -1) {
				if !strings.Contains(known, w) {
					t.Errorf("%s: %q in %q", name, w, l.label+l.text)
				}
			}
		}
	}
}

func allLines(s message) []line {
	out := s.lead
	for _, p := range s.parts {
		out = append(append(out, line{"", p.head}), p.lines...)
	}
	return out
}

// The tone is the worst of what fires; what is over is green, the rest blue.
func TestTonesFollowTheState(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]level{
		"firing": levelCritical, "resolved": levelResolved, "mixed": levelCritical, "repeat": levelWarning, "digest": levelCritical, "first_sweep": levelCritical,
		"requested": levelNeutral, "break_glass": levelNeutral, "breaker": levelNeutral, "test": levelNeutral,
	} {
		s := renderer{lang: "en"}.render(shownSamples("en")[name])
		if s.level != want {
			t.Errorf("%s: the tone is %d, want %d", name, s.level, want)
		}
		urgent := name == "requested" || name == "break_glass" || want == levelCritical
		if s.urgent != urgent {
			t.Errorf("%s: urgent is %v", name, s.urgent)
		}
	}
}

// A finding that fired and ended in one message is sent as it is now.
func TestOnlyTheLastStateIsTold(t *testing.T) {
	t.Parallel()
	p := Payload{Type: "findings.firing", Timestamp: sampleTime, Findings: []PayloadFinding{
		eventOf(found("a", locksteward.SeverityCritical, locksteward.StatusFiring), 1, "en"),
		eventOf(found("b", locksteward.SeverityCritical, locksteward.StatusFiring), 2, "en"),
		eventOf(found("a", locksteward.SeverityCritical, locksteward.StatusResolved), 3, "en"),
	}}
	s := renderer{lang: "en"}.render(p)
	if len(s.parts) != 2 || s.parts[0].level != levelResolved || s.parts[1].level != levelCritical || !strings.HasPrefix(s.title, "FIRING 1 (1 critical), RESOLVED 1 · ") {
		t.Errorf("got %q, %+v", s.title, s.parts)
	}
}
