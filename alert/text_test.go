package alert

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
)

func hasHan(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) }) >= 0
}

func TestEveryWordIsThereInBothLanguages(t *testing.T) {
	t.Parallel()
	words := map[string]bool{}
	for id := range catalogue.IDs() {
		word, ok := strings.CutPrefix(id, "word.")
		if !ok {
			continue
		}
		words[word] = true
		if hasHan(translate("en", word)) || !hasHan(translate("zh", word)) {
			t.Errorf("%s is %q, %q", word, translate("en", word), translate("zh", word))
		}
	}
	for _, reason := range []Reasoning{ReasonNews, ReasonRepeat, ReasonFirstSweep, ReasonDigest} {
		if !words[string(reason)] {
			t.Errorf("the reason %q has no words", reason)
		}
	}
	for _, kind := range releaseTypes {
		if !words[kind] {
			t.Errorf("%q has no words", kind)
		}
	}
	for _, s := range []locksteward.RequestState{
		locksteward.RequestPending, locksteward.RequestApproved, locksteward.RequestExecuting, locksteward.RequestReleased, locksteward.RequestAlreadyGone,
		locksteward.RequestChanged, locksteward.RequestFailed, locksteward.RequestUnknown, locksteward.RequestDenied, locksteward.RequestExpired, locksteward.RequestSuperseded,
	} {
		if !words[string(s)] {
			t.Errorf("the state %q has no words", s)
		}
	}
	for _, a := range []locksteward.Act{locksteward.ActRelease, locksteward.ActTakeOver, locksteward.ActUndo, locksteward.ActLift} {
		if !words[a.String()] {
			t.Errorf("the act %q has no words", a)
		}
	}
	if translate("zh", "a word of a later version") != "a word of a later version" {
		t.Error("a word that nobody knows does not say itself")
	}
}

// Every event of a release is sent in the receiver's language, and says what it says
// in English.
func TestReleasesAreReportedInChinese(t *testing.T) {
	t.Parallel()
	message, act := locksteward.NewMessage, locksteward.NewMessage("word.release")
	for _, c := range []struct {
		kind       string
		m          locksteward.Message
		text, want string // in English, and in the Chinese
	}{
		{"release.requested", message("release.requested", act), "A release waits for a decision.", "有一个释放申请等待审批"},
		{"release.reminder", message("release.reminder", act, "1h0m0s"), "A release still waits for a decision and expires in 1h0m0s.", "1h0m0s 后过期"},
		{"release.self_approved", message("release.self-approved", "ana"), "ana approved their own request.", "ana 批准了自己的申请"},
		{
			"release.auto", message("release.alone", act, "auto: ttl/none held", message("release.alone-rules", message("names", "ttl/none", "wait/cycle"))),
			"Released without a person: auto: ttl/none held.", "按类别策略执行释放（依据：ttl/none、wait/cycle）。",
		},
		{"release.auto", message("release.alone", act, "auto", locksteward.Message{}), "Released without a person: auto.", "按类别策略执行释放。"},
		{"release.break_glass", message("release.glass-broken", "ana", act), "ana broke the glass: a lock is released without another person.", "ana 使用了紧急权限"},
		{"release.final", message("release.done", message("release.woken", 2)), "Released: the hold was ended and 2 waiting clients were notified.", "通知了 2 个等待的客户端"},
		{"release.final", message("release.done", message("release.woken", 1)), "Released: the hold was ended and 1 waiting client was notified.", "通知了 1 个等待的客户端"},
		{
			"release.final", message("release.recorded", message("release.done", locksteward.Message{})),
			"Released: the hold was ended. Its answer was lost: confirmed by the execution record.", "该持有已结束。服务器的应答已丢失，由执行记录确认",
		},
		{"release.final", message("release.done-delay", "30s"), "Released: the hold was ended, and nobody gets it for 30s.", "30s 内"},
		{"release.final", message("release.taken-over", "1m0s"), "Taken over: nobody gets the lock for 1m0s, or until that is ended.", "已接管：1m0s 内"},
		{"release.final", message("release.failed", "READONLY"), "Not released: READONLY. Nothing was touched.", "原文：Not released: READONLY."},
		{"release.final", message("release.denied", "ben"), "Denied by ben. Nothing was touched.", "由 ben 拒绝"},
		{
			"release.final", message("release.superseded-changed", "r-9"),
			"Superseded by request r-9: the lock changed since this one. Nothing was touched.", "r-9",
		},
		{
			"release.unknown", message("release.unknown", "the server has no record of it"),
			"Not known whether the lock was released: the server has no record of it. It is not tried again; look at the lock before you request another release.", "无法确定",
		},
		{"release.paused", message("release.paused-all", "ana", locksteward.Message{}), "ana paused all releases.", "ana 暂停了所有释放。"},
		{"release.paused", message("release.resumed-all", "ana"), "ana resumed all releases.", "恢复了所有释放"},
		{
			"release.paused", message("release.paused-automatic", "ana", message("release.paused-until", time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC))),
			"ana paused automatic releases until 2026-03-01T13:00:00Z.", "自动释放，直至 2026-03-01T13:00:00Z",
		},
		{"release.paused", message("release.resumed-automatic", "ana"), "ana resumed automatic releases.", "恢复了自动释放"},
		{
			"release.breaker", message("release.breaker", 20, "redis", "5m0s"),
			`20 locks of target "redis" look dead at once: nothing is released without a person until it is over for 5m0s.`,
			"目标 redis 有 20 把锁同时疑似失效：恢复并持续 5m0s",
		},
	} {
		n := Notice{EventID: "e", Kind: c.kind, At: sampleTime, Actor: "ana", Target: "redis", Message: c.m}
		for lang, want := range map[string]string{"en": c.text, "zh": c.want} {
			m, err := releaseNotification(writer{name: "ops", lang: lang}, n, 1)
			if err != nil {
				t.Fatal(err)
			}
			got := decoded(m.Body).Release.Text
			if lang == "en" && got != want || !strings.Contains(got, want) || hasHan(got) != (lang == "zh") {
				t.Errorf("%s, %s: got %q, want %q", c.m.ID, lang, got, want)
			}
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
func TestOnlyTheLastStateIsReported(t *testing.T) {
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
