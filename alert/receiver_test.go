package alert

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A key that a kind does not take is refused, with the kinds that take it; one that is empty
// is none.
func TestKeysOfOtherKinds(t *testing.T) {
	t.Parallel()
	err := decode(t, `receivers:
  - {name: a, kind: webhook, url: "https://h", mention: [here], template: {title: x}, token: "s3cr3t", secrets: [], urls: []}
  - {name: b, kind: email, server: h, from: a@b, to: [c@d], url: "https://h/s3cr3t", secret_files: [/f]}
  - {name: c, kind: slack, url: "https://h", resend: 1m, routing_key_file: /k, username: ann}
`).Validate()
	if err == nil {
		t.Fatal("valid")
	}
	want := []string{
		"receivers[0].template: is a key of kind pagerduty, email, slack, dingtalk, feishu or wecom, and not of webhook: leave it out, or write another kind",
		"receivers[0].token: is a key of kind alertmanager, and not of webhook: leave it out, or write another kind",
		"receivers[0].mention: is a key of kind slack, dingtalk, feishu or wecom, and not of webhook: leave it out, or write another kind",
		"receivers[1].url: is a key of kind webhook, alertmanager, pagerduty, slack, dingtalk, feishu or wecom, and not of email: leave it out, or write another kind",
		"receivers[1].secret_files: is a key of kind webhook, dingtalk or feishu, and not of email: leave it out, or write another kind",
		"receivers[2].username: is a key of kind alertmanager or email, and not of slack: leave it out, or write another kind",
		"receivers[2].resend: is a key of kind alertmanager, and not of slack: leave it out, or write another kind",
		"receivers[2].routing_key_file: is a key of kind pagerduty, and not of slack: leave it out, or write another kind",
	}
	if got := err.Error(); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// Every kind has a name and is made as it says; a tag names kinds that there are.
func TestKindsAreKnown(t *testing.T) {
	t.Parallel()
	if len(kinds) != len(kindNames) {
		t.Errorf("%d kinds have %d names", len(kinds), len(kindNames))
	}
	for _, name := range kindNames {
		k := kinds[name]
		if k.open == nil || k.cap == 0 {
			t.Errorf("%s is no kind: %+v", name, k.traits)
		}
		if mentions := (Receiver{Kind: name}).Takes("mention"); mentions != (k.mentionable != nil) || mentions != (k.mentions != "") {
			t.Errorf("%s takes mention: %t, and checks it: %t", name, mentions, k.mentionable != nil)
		}
		if people := (Receiver{Kind: name}).Takes("template"); people != k.people {
			t.Errorf("%s takes a template: %t, and people read it: %t", name, people, k.people)
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Receiver]()) {
		for name := range strings.FieldsSeq(f.Tag.Get("kinds")) {
			if !slices.Contains(kindNames, name) {
				t.Errorf("%s is for %s, which is no kind", f.Name, name)
			}
		}
	}
}
