package alert

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// hiding is a receiver with key_names.
func hiding(mode, lang string) writer {
	return writer{name: "ops", lang: lang, keyNames: mode, traits: person(), hooks: Hooks{
		Salt:    []byte("salt"),
		Pattern: func(class, key string) string { return class + ":*" },
	}}
}

// namedPayload is a message about a lock and a release of it, with the name of the lock
// in every text that the agent writes, as a receiver gets it.
func namedPayload(to writer, name string) Payload {
	both := locksteward.NewMessage("server.event-failover-from", locksteward.LockName(name), locksteward.LockName(name))
	f := found(name, locksteward.SeverityCritical, locksteward.StatusFiring)
	f.Summary, f.Cause, f.Remedy = both, both, both
	f.Evidence, f.CounterEvidence = []locksteward.Message{both, both}, []locksteward.Message{both}
	p := Payload{Version: PayloadVersion, Lang: to.lang, Type: "findings.firing", ID: "msg_1", Timestamp: sampleTime}
	p.Findings = []PayloadFinding{to.event(locksteward.FindingEvent{ID: "e1", Number: 1, At: sampleTime, Finding: f})}
	p.Group = &Group{Key: "by key " + name, Labels: map[string]string{"key": locksteward.DisplayKey(name), "class": "orders"}, Firing: 1}
	n := glass()
	n.Request.State = locksteward.RequestFailed
	n.Request.Evidence.Key, n.Request.Reason, n.Request.Outcome = name, "because of "+name, "Not released: read "+strconv.Quote(name)
	n.Request.Decisions[0].Reason = name
	p.Release = &ReleaseEvent{EventID: "r-1/x", Text: n.Request.Outcome, Request: newReleaseRequest(n.Request)}
	to.complete(&p)
	return p
}

var namesToHide = []string{
	"lock:order:ana@example.com", "lock:\xff\xfe\n\"<b>\x00", "锁:订单:安娜", "lock:'quoted' \"twice\" \\back", "lock:a b&c=d%20e+f",
	strings.Repeat("secret/", 1100), "lock:\u202eevil", "lock:\ue000mark\ue001", "\x00\x01\x02\x03", "<script>&amp;", "lock:{x}*[a-z]?",
}

// No byte of a name is left in a message, whatever the name holds, and what is said
// about the lock is still said.
func TestHiddenNamesAreGone(t *testing.T) {
	t.Parallel()
	for _, name := range namesToHide {
		for _, lang := range []string{"en", "zh"} {
			for _, mode := range []string{KeyNamesTemplate, KeyNamesHash} {
				p := namedPayload(hiding(mode, lang), name)
				body, err := json.Marshal(p)
				if err != nil {
					t.Fatal(err)
				}
				for _, left := range leftOf(t, name, body) {
					t.Errorf("%s %.30q: %q is left in %.400s", mode, name, left, body)
				}
				want := "orders:*"
				if mode == KeyNamesHash {
					want = p.Findings[0].Key.Key
					if !strings.HasPrefix(want, "key:") || len(want) != len("key:")+12 {
						t.Errorf("hash %.30q: the key is %q", name, want)
					}
				}
				if p.Findings[0].Key.Key != want || p.Findings[0].KeyB64 != "" || p.Release.Request.Key.Key != want || p.Group.Labels["key"] != want {
					t.Errorf("%s %.30q: got %+v, %+v", mode, name, p.Findings[0].Key, p.Group)
				}
				for _, text := range []string{p.Findings[0].Summary, p.Findings[0].Evidence[1], p.Findings[0].CounterEvidence[0], p.Findings[0].Remedy} {
					said := "a failover made " + want + " the master in place of " + want
					if lang == "zh" {
						said = "故障切换使 " + want + " 取代 " + want + " 成为主节点"
					}
					if text != said {
						t.Errorf("%s %.30q: the text is %q", mode, name, text)
					}
				}
				for _, text := range []string{p.Release.Text, p.Release.Request.Reason, p.Release.Request.Outcome, p.Release.Request.Decisions[0].Reason} {
					if text != translate(lang, "hidden") {
						t.Errorf("%s %.30q: the text is %q", mode, name, text)
					}
				}
			}
		}
	}
}

// leftOf are the forms of a name that a message holds, in its bytes or decoded.
func leftOf(t *testing.T, name string, body []byte) []string {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	all := []string{string(body)}
	texts(v, func(_, text string) { all = append(all, text) })
	var out []string
	for _, form := range []string{
		name, locksteward.DisplayKey(name), strconv.Quote(name), strconv.QuoteToASCII(name), url.QueryEscape(name), url.PathEscape(name),
		base64.StdEncoding.EncodeToString([]byte(name)), fmt.Sprintf("%q", locksteward.DisplayKey(name)),
	} {
		if slices.ContainsFunc(all, func(text string) bool { return strings.Contains(text, form) }) {
			out = append(out, form)
		}
	}
	return out
}

func FuzzHiddenNamesAreGone(f *testing.F) {
	for _, name := range namesToHide {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		full, err := json.Marshal(namedPayload(writer{lang: "zh", traits: person()}, "x"))
		if err != nil {
			t.Fatal(err)
		}
		// Shorter names are in the words of the message itself.
		if len(name) < 12 || len(name) > 8<<10 || len(leftOf(t, name, full)) > 0 {
			t.Skip()
		}
		body, err := json.Marshal(namedPayload(hiding(KeyNamesHash, "zh"), name))
		if err != nil {
			t.Fatal(err)
		}
		if left := leftOf(t, name, body); len(left) > 0 {
			t.Errorf("%q is left in %s", left, body)
		}
	})
}

func TestHashesOfNames(t *testing.T) {
	t.Parallel()
	shown := func(name, salt string) string {
		return writer{keyNames: KeyNamesHash, hooks: Hooks{Salt: []byte(salt)}}.finding(locksteward.Finding{Rule: "ttl/none", Key: name}).Key.Key
	}
	if first, again := shown("a-name", "s"), shown("a-name", "s"); first != again || shown("a-name", "s") == shown("b-name", "s") || shown("a-name", "s") == shown("a-name", "other") {
		t.Errorf("got %s, %s, %s", shown("a-name", "s"), shown("b-name", "s"), shown("a-name", "other"))
	}
	if shown("", "s") != "" {
		t.Errorf("a finding about no lock got the key %q", shown("", "s"))
	}
}

func TestTemplatesOfNames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		patternOf func(class, key string) string
		want      string
	}{
		"pattern":          {func(class, key string) string { return "lock:order:*" }, "lock:order:*"},
		"none that fits":   {func(class, key string) string { return "" }, "orders"},
		"the name itself":  {func(class, key string) string { return key }, "orders"},
		"nobody knows one": {nil, "orders"},
	} {
		to := writer{lang: "en", keyNames: KeyNamesTemplate, hooks: Hooks{Pattern: c.patternOf}}
		f := found("lock:order:ana", locksteward.SeverityWarning, locksteward.StatusFiring)
		f.Summary = locksteward.NewMessage("custom.summary-of-its-own", "no expiry", locksteward.LockName(f.Key))
		if e := to.finding(f); e.Key.Key != c.want || e.Summary != "no expiry: "+c.want {
			t.Errorf("%s: got %q, %q", name, e.Key.Key, e.Summary)
		}
	}
}

// A text keeps the words in which a short name occurs, and names of other locks have
// placeholders of their own.
func TestNamesOfOtherLocks(t *testing.T) {
	t.Parallel()
	to := writer{lang: "en", keyNames: KeyNamesTemplate, hooks: Hooks{Pattern: func(_, key string) string {
		if strings.HasPrefix(key, "lock:") {
			return "lock:*"
		}
		return ""
	}}}
	f := locksteward.Finding{Rule: "wait/cycle", Class: "c", Key: "a", Evidence: []locksteward.Message{locksteward.NewMessage("fact", "a crash",
		locksteward.NewMessage("names", locksteward.LockName("a"), locksteward.LockName("lock:b"), locksteward.LockName("d")))}}
	if got := to.finding(f).Evidence[0]; got != "a crash is c, lock:*, lock" {
		t.Errorf("got %q", got)
	}
}

// Custom rules quote what their expressions read, which may be any name.
func TestEvidenceOfCustomRulesIsLeftOut(t *testing.T) {
	t.Parallel()
	line := []locksteward.Message{locksteward.Literal("lock.key is lock:mine")}
	f := locksteward.Finding{Rule: "custom/mine", Class: "c", Key: "lock:mine", Evidence: line, CounterEvidence: line, Summary: locksteward.NewMessage("custom.summary-of-its-own", "old", locksteward.LockName("lock:mine"))}
	for _, mode := range []string{KeyNamesTemplate, KeyNamesHash} {
		e := writer{lang: "en", keyNames: mode}.finding(f)
		if len(e.Evidence) != 1 || e.Evidence[0] != translate("en", "hidden") || len(e.CounterEvidence) != 0 || e.Summary != "old: "+e.Key.Key {
			t.Errorf("%s: got %+v", mode, e)
		}
	}
	if e := (writer{lang: "en", keyNames: KeyNamesFull}).finding(f); e.Evidence[0] != "lock.key is lock:mine" {
		t.Errorf("got %q", e.Evidence)
	}
}

func TestFullNamesStay(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", KeyNamesFull} {
		p := namedPayload(hiding(mode, "en"), "lock:order:42")
		if e := p.Findings[0]; e.Key != api.NewKey("lock:order:42") || e.Summary != "a failover made lock:order:42 the master in place of lock:order:42" {
			t.Errorf("mode %q: got %+v, %q", mode, e.Key, e.Summary)
		}
		if p.Release.Request.Reason != "because of lock:order:42" || p.Group.Key != "by key lock:order:42" {
			t.Errorf("mode %q: got %+v, %+v", mode, p.Release.Request, p.Group)
		}
	}
}

// The group of a message that is shared by several is not changed in place.
func TestSharedGroupsAreCopied(t *testing.T) {
	t.Parallel()
	g := &Group{Key: "k lock:order:42", Labels: map[string]string{"key": "lock:order:42"}}
	one, two := Payload{Group: g}, Payload{Group: g}
	hiding(KeyNamesHash, "en").complete(&one)
	hiding(KeyNamesHash, "en").complete(&two)
	if one.Group.Key != two.Group.Key || one.Group.Labels["key"] != two.Group.Labels["key"] || g.Labels["key"] != "lock:order:42" {
		t.Errorf("got %+v, %+v of %+v", one.Group, two.Group, g)
	}
	if !strings.HasPrefix(one.Group.Key, "group:") {
		t.Errorf("the group's key is %q", one.Group.Key)
	}
}
