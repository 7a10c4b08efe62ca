package alert

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"gopkg.in/yaml.v3"
)

func TestChatReceiversDecode(t *testing.T) {
	t.Parallel()
	c := decode(t, `receivers:
  - {name: a, kind: slack, url: "https://hooks.slack.com/services/s3cr3t", mention: [here, U012AB3CD, S012AB3CD], timeout: 3s, lang: zh}
  - {name: b, kind: dingtalk, url_file: /f, secret_files: [/s], mention: ["13800000000", "+86-13800000000"]}
  - {name: c, kind: feishu, url_file: /f, secret_files: [/s], mention: [all, ou_18eac85d35a26]}
  - {name: d, kind: wecom, url_file: /f, mention: [zhang.san, li@corp], template: {title: "{{.Type}}", text: "{{.Text}}"}}
`)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{60, 20, 100, 20} {
		r := c.withDefaults().Receivers[i]
		if m := kinds[r.Kind].traits; m.perMinute != want || !m.people || m.cap != 10 || r.MaxAttempts != DefaultMaxAttempts {
			t.Errorf("receivers[%d]: the traits are %+v", i, m)
		}
	}
	if got := slackMentions(c.Receivers[0].Mention); got != "<!here> <@U012AB3CD> <!subteam^S012AB3CD>" {
		t.Errorf("mentions %s", got)
	}
	if text, _ := yaml.Marshal(c); strings.Contains(string(text), "s3cr3t") {
		t.Errorf("a URL is printed:\n%s", text)
	}
}

func TestChatReceiversReportAllProblems(t *testing.T) {
	t.Parallel()
	err := decode(t, `receivers:
  - {name: a, kind: slack, mention: [all, "<!here>", U1]}
  - {name: b, kind: dingtalk, url: "https://h/s3cr3t", url_file: /f, mention: ["call me", "1"], timeout: 1h}
  - {name: c, kind: feishu, url: "http://h/s3cr3t", mention: ["a b", "<at>"]}
  - {name: d, kind: wecom, url: "https://h/s3cr3t", mention: ["@all", ""]}
  - {name: e, kind: slak, url: "https://h/s3cr3t"}
  - {name: f, kind: wecom, url: "https://h/s3cr3t", mention: [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u]}
`).Validate()
	for _, want := range []string{
		"receivers[0].url_file: is missing", `receivers[0].mention[0]: must be here, channel, everyone, or an id`,
		"receivers[0].mention[1]: ", "receivers[0].mention[2]: ",
		`receivers[1].url_file: "/f" is given beside url`, "receivers[1].mention[0]: must be all, or a telephone number", "receivers[1].mention[1]: ",
		"receivers[1].timeout: must be 100ms to 1m",
		"receivers[2].url: http://h must be https", "receivers[2].mention[0]: must be all, or an id", "receivers[2].mention[1]: ",
		"receivers[3].mention[0]: must be the id of a member", "receivers[3].mention[1]: ",
		`receivers[4].kind: must be webhook, alertmanager, pagerduty, email, slack, dingtalk, feishu or wecom, got "slak"`, "receivers[5].mention: must be at most 20, got 21",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("the error shows a URL:\n%v", err)
	}
}

func TestChatReceiversReportAllFiles(t *testing.T) {
	t.Parallel()
	c := decode(t, `receivers:
  - {name: a, kind: dingtalk, url_file: /nowhere/url, secret_files: [/nowhere/secret], ca_file: /nowhere/ca}
  - {name: b, kind: feishu, url_file: `+file(t, "s3cr3t")+`, secret_files: [`+file(t, " \n")+`]}
  - {name: c, kind: slack, url: "https://h/x", ca_file: /nowhere/ca}
`)
	_, err := New(zap.NewNop(), c, &box{}, Hooks{})
	for _, want := range []string{
		"receivers[0].url_file: ", "receivers[0].secret_files[0]: ", "receivers[0].ca_file: ",
		"receivers[1].url_file: is not a URL", "receivers[1].secret_files[0]: ", "is empty", "receivers[2].ca_file: ",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("the error shows a secret:\n%v", err)
	}
}

// Who is configured is called when somebody is needed, and not otherwise.
func TestPeopleAreCalledWhenNeeded(t *testing.T) {
	t.Parallel()
	calls := map[string]string{"slack": "<!here>", "dingtalk": "@13900000000", "feishu": "<at id=ou_1></at>", "wecom": "<@zoe>"}
	for name, p := range shownSamples("en") {
		s := renderer{lang: "en"}.render(p)
		for kind, call := range calls {
			if got := strings.Contains(string(pageOf(kind, s)), call); got != s.urgent {
				t.Errorf("%s %s: called %v, want %v", kind, name, got, s.urgent)
			}
		}
	}
	all := string((&dingtalk{chatReceiver: &chatReceiver{}, mention: []string{"1", "all"}}).message(renderer{}.render(shownSamples("en")["firing"])))
	if !strings.Contains(all, `"isAtAll":true`) || strings.Contains(all, "atMobiles") {
		t.Errorf("got %s", all)
	}
	if quiet := string((&dingtalk{chatReceiver: &chatReceiver{}, mention: []string{"all"}}).message(renderer{}.render(shownSamples("en")["resolved"]))); strings.Contains(quiet, `"isAtAll":true`) {
		t.Errorf("got %s", quiet)
	}
}

// An attempt hours after the message was written is signed for its own time.
func TestAttemptsAreSignedForTheirOwnTime(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"dingtalk", "feishu"} {
		s := startService(t, kind)
		out := openKind(t, receiver(t, kind, s.url, "en"))
		p := shownSamples("en")["firing"]
		p.Timestamp = time.Now().Add(-5 * time.Hour)
		for range 3 {
			if err := out.send(t.Context(), newOutgoing(p.ID, encoded(t, p))); err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			<-s.got
		}
	}
}

// A throttled robot is left alone for as long as the service says: also by what
// comes after.
func TestThrottledRobotsAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := startService(t, "dingtalk")
	s.answer = func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, `{"errcode":130101,"errmsg":"send too fast"}`)
	}
	err := openKind(t, receiver(t, "dingtalk", s.url, "en")).send(t.Context(), newOutgoing("msg_1", encoded(t, shownSamples("en")["firing"])))
	e, ok := errors.AsType[*DeliveryError](err)
	if !ok {
		t.Fatal(err)
	}
	var c circuit
	now := time.Now()
	c.fail(now, failure{id: "msg_1", retryAfter: e.RetryAfter})
	if n, wait := c.allow(now.Add(time.Second), 4); n != 0 || wait < 9*time.Minute {
		t.Errorf("%d messages are let through, in %s", n, wait)
	}
}
