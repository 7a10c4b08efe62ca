package alert_test

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
)

func matched() locksteward.Finding {
	return locksteward.Finding{
		Rule: "ttl/none", Severity: locksteward.SeverityCritical, Status: locksteward.StatusFiring, Target: "main", DB: 3, Class: "orders",
		Key: "lock:\xff\n=~1", Team: "checkout", Risk: locksteward.RiskDeadlock, Library: "redisson", Subject: "c1", Proof: locksteward.Proven,
	}
}

func TestMatcher(t *testing.T) {
	t.Parallel()
	f := matched()
	for text, want := range map[string]bool{
		"target=main": true, "target=mai": false, "target!=main": false, "target!=other": true, " target =main": true, "target= main": false,
		"db=3": true, "db=~[0-9]": true, "db!~[0-9]": false, "class=~ord.*": true, "class=~rd": false, "class!~rd": true,
		"rule=ttl/none": true, "rule=~ttl/.*|hold/.*": true, "severity=critical": true, "severity=~critical|warning": true,
		`key=lock:\xff\n=~1`: true, "key=lock:": false, "key=~lock:.*": true, `key=~lock:\\xff\\n.*`: true, `key="a"`: false,
		"team=": false, "team!=": true, "team=checkout": true, "status=firing": true, "risk=deadlock": true, "library=redisson": true,
		"subject=c1": true, "proof=proven": true, "fingerprint=" + f.Fingerprint(): true, "fingerprint=x": false,
	} {
		m, err := alert.ParseMatcher(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := m.Match(f); got != want {
			t.Errorf("%s: %t", text, got)
		}
		again, err := alert.ParseMatcher(m.String())
		if err != nil || again.String() != m.String() || again.Match(f) != want {
			t.Errorf("%s is written as %s: %v", text, m, err)
		}
	}
	all, err := alert.ParseMatchers([]string{"team=checkout", "severity=critical"})
	if err != nil || !all.Match(f) {
		t.Errorf("%v, %v", all, err)
	}
	if all, err = alert.ParseMatchers([]string{"team=checkout", "severity=warning"}); err != nil || all.Match(f) {
		t.Errorf("%v, %v", all, err)
	}
	if !(alert.Matchers{}).Match(f) {
		t.Error("no condition does not hold")
	}
}

func TestMatcherRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                          `matcher "": has no operator: write label=value`,
		"team":                      "has no operator",
		"=x":                        `"" is no label; write one of target, db,`,
		"sevrity=critical":          `"sevrity" is no label, did you mean severity?; write one of`,
		"host=h1":                   `"host" is no label`,
		"team!x":                    "! is no operator",
		"team=~a(":                  "missing closing ): `a(`; it is a regular expression (RE2) because of =~: write = for the text itself",
		"team!~*":                   "because of !~: write ! for",
		`team="checkout"`:           "has quotes, which would be part of it: write team=checkout",
		strings.Repeat("x", 20<<10): "is longer than 16384 bytes",
	} {
		want = strings.Replace(want, "write ! for", "write != for", 1)
		if _, err := alert.ParseMatcher(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "(?:") {
			t.Errorf("%.30q: got %v\nwant %s", text, err, want)
		}
	}
	_, err := alert.ParseMatchers([]string{"team", "db=1", "class"})
	if err == nil || strings.Count(err.Error(), "has no operator") != 2 {
		t.Errorf("not all is sent: %v", err)
	}
	for _, texts := range [][]string{nil, {"team=~.*"}, {"team!=x", "key=~.*|x"}, {"team="}} {
		if _, err := alert.ParseSilence(texts); err == nil || !strings.Contains(err.Error(), "would silence everything") {
			t.Errorf("%q: %v", texts, err)
		}
	}
	if _, err := alert.ParseSilence([]string{"team=~.*", "class=orders"}); err != nil {
		t.Error(err)
	}
	if _, err := alert.ParseSilence([]string{"team"}); err == nil {
		t.Error("a bad matcher was taken")
	}
}

func TestSilencedBy(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	silence := func(id, matcher string, from, until time.Duration) alert.Silence {
		m, err := alert.ParseSilence([]string{matcher})
		if err != nil {
			t.Fatal(err)
		}
		return alert.Silence{ID: id, Matchers: m, StartsAt: now.Add(from), EndsAt: now.Add(until)}
	}
	list := []alert.Silence{
		silence("over", "team=checkout", -time.Hour, 0), silence("later", "team=checkout", 1, time.Hour),
		silence("short", "team=checkout", 0, time.Minute), silence("long", "class=orders", -1, 2*time.Minute), silence("other", "team=other", -1, time.Hour),
	}
	if id, until, ok := alert.SilencedBy(list, matched(), now); !ok || id != "long" || !until.Equal(now.Add(2*time.Minute)) {
		t.Errorf("%q, %s, %t", id, until, ok)
	}
	if id, _, ok := alert.SilencedBy(list[:3], matched(), now); !ok || id != "short" {
		t.Errorf("%q, %t", id, ok)
	}
	if id, _, ok := alert.SilencedBy(list[:2], matched(), now); ok {
		t.Errorf("silenced by %q", id)
	}
}
