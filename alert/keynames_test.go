package alert

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// named is a message with a name at every place that can have it, in every way in
// which the agent writes names.
func namedPayload(name, lang string) Payload {
	shown := locksteward.DisplayKey(name)
	ways := []string{name, shown, strconv.Quote(name), strconv.QuoteToASCII(name), "'" + shown + "'", url.QueryEscape(name), base64.StdEncoding.EncodeToString([]byte(name))}
	said := "before " + strings.Join(ways, " | ") + " behind"
	f := found(name, locksteward.SeverityCritical, locksteward.StatusFiring)
	f.Summary, f.Cause, f.Remedy = locksteward.Text{EN: said}, locksteward.Text{EN: said}, locksteward.Text{EN: said}
	var lines []locksteward.Text
	for _, way := range ways {
		lines = append(lines, locksteward.Text{EN: way, ZH: "锁 " + way + "：永不过期"})
	}
	f.Evidence, f.CounterEvidence, f.Subject = lines, lines, said
	p := Payload{Version: PayloadVersion, Lang: lang, Type: "findings.firing", ID: "msg_1", Timestamp: sampleTime}
	e := eventOf(f, 1, lang)
	e.Unlock = "locksteward unlock --redis redis://h " + strconv.Quote(name)
	e.RunbookURL = "https://wiki.example/" + url.PathEscape(name)
	e.EventID = name + "/1"
	p.Findings = []PayloadFinding{e}
	p.URL = "https://locks.example/locks/one?key=" + url.QueryEscape(name)
	p.Group = &Group{Key: "by key " + name, Labels: map[string]string{"key": shown, "class": "orders"}, Firing: 1}
	n := glass()
	n.Text = said
	n.Request.Evidence.Key, n.Request.Reason, n.Request.Outcome = name, said, said
	n.Request.Decisions[0].Reason = said
	p.Release = &ReleaseEvent{EventID: "r-1/x", Text: said, Request: newReleaseRequest(n.Request)}
	p.Text = said
	return p
}

var namesToHide = []string{
	"lock:order:ana@example.com", "lock:\xff\xfe\n\"<b>\x00", "锁:订单:安娜", "lock:'quoted' \"twice\" \\back", "lock:a b&c=d%20e+f",
	strings.Repeat("secret/", 1100), "lock:\u202eevil", "l0ck", "42", "\x00\x01\x02\x03", "<script>&amp;", "lock:{x}*[a-z]?",
}

// No byte of a name is left in a message, whatever the name holds.
func TestHiddenNamesAreGone(t *testing.T) {
	t.Parallel()
	patternOf := func(class, key string) string { return class + ":*" }
	for i, name := range slices.Concat(namesToHide, namesToHide) {
		lang := []string{"en", "zh"}[i/len(namesToHide)]
		for _, mode := range []string{KeyNamesTemplate, KeyNamesHash} {
			p := namedPayload(name, lang)
			p.hideKeys(mode, patternOf, []byte("salt"))
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
			// What is said about the lock is still said.
			for _, text := range []string{p.Findings[0].Summary, p.Release.Text, p.Release.Request.Reason, p.Text} {
				if !strings.Contains(text, "before "+want) || !strings.Contains(text, "behind") {
					t.Errorf("%s %.30q: the text is %q", mode, name, text)
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
	texts(v, func(path, text string) {
		// Names of two letters are in every hash, time and fingerprint.
		if len(name) > 4 || strings.HasSuffix(path, ".summary") || strings.HasSuffix(path, ".key") {
			all = append(all, text)
		}
	})
	if len(name) <= 4 {
		all = all[1:]
	}
	var out []string
	for _, form := range []string{
		name, locksteward.DisplayKey(name), strconv.Quote(name), strconv.QuoteToASCII(name), url.QueryEscape(name), url.PathEscape(name),
		base64.StdEncoding.EncodeToString([]byte(name)), fmt.Sprintf("%q", locksteward.DisplayKey(name)),
	} {
		for _, text := range all {
			if len(name) <= 4 && !slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" |'\"", r) }), form) {
				continue
			}
			if strings.Contains(text, form) {
				out = append(out, form)
				break
			}
		}
	}
	return out
}

func FuzzHiddenNamesAreGone(f *testing.F) {
	for _, name := range namesToHide {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		// Shorter names are in the words of the message itself.
		if len(name) < 12 || len(name) > 8<<10 || strings.Contains("before behind locksteward unlock --redis redis://h https://wiki.example/ ：永不过期", name) {
			t.Skip()
		}
		p := namedPayload(name, "zh")
		p.hideKeys(KeyNamesHash, nil, []byte("salt"))
		body, err := json.Marshal(p)
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
		p := Payload{Findings: []PayloadFinding{{Finding: api.Finding{Rule: "ttl/none", Key: api.NewKey(name)}}}}
		p.hideKeys(KeyNamesHash, nil, []byte(salt))
		return p.Findings[0].Key.Key
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
		p := Payload{Findings: []PayloadFinding{eventOf(found("lock:order:ana", locksteward.SeverityWarning, locksteward.StatusFiring), 1, "en")}}
		p.hideKeys(KeyNamesTemplate, c.patternOf, nil)
		if e := p.Findings[0]; e.Key.Key != c.want || e.Summary != "lock "+c.want+" has no expiry" {
			t.Errorf("%s: got %q, %q", name, e.Key.Key, e.Summary)
		}
	}
}

// A short name is replaced where it is a name, and not inside of words.
func TestShortNamesDoNotBreakWords(t *testing.T) {
	t.Parallel()
	p := Payload{Findings: []PayloadFinding{{Finding: api.Finding{
		Rule: "ttl/none", Class: "c", Key: api.NewKey("a"), Summary: "lock a has no expiry: a crash", Evidence: []string{"PTTL of \"a\" is -1"},
	}}}}
	p.hideKeys(KeyNamesTemplate, nil, nil)
	if e := p.Findings[0]; e.Summary != "lock c has no expiry: c crash" || e.Evidence[0] != "PTTL of \"c\" is -1" {
		t.Errorf("got %q, %q", e.Summary, e.Evidence)
	}
}

// The words around a name in Chinese do not hide it.
func TestShortNamesInChinese(t *testing.T) {
	t.Parallel()
	f := found("ab", locksteward.SeverityCritical, locksteward.StatusFiring)
	f.Class = "c"
	f.Evidence = []locksteward.Text{{EN: "lock ab is held", ZH: "持有锁 ab：ab、cab，“ab”（ab）"}}
	p := Payload{Lang: "zh", Findings: []PayloadFinding{eventOf(f, 1, "zh")}}
	p.hideKeys(KeyNamesTemplate, nil, nil)
	if got := p.Findings[0].Evidence[0]; got != "持有锁 c：c、cab，“c”（c）" {
		t.Errorf("got %q", got)
	}
}

// Texts that name locks of other findings are left out.
func TestOtherNamesAreLeftOut(t *testing.T) {
	t.Parallel()
	for _, rule := range append(slices.Clone(namesOthers), "custom/mine", "later/unknown") {
		p := Payload{Lang: "en", Findings: []PayloadFinding{{Finding: api.Finding{
			Rule: rule, Class: "c", Key: api.NewKey("lock:mine"), Summary: "lock:mine waits for lock:other", Evidence: []string{"lock:other"}, CounterEvidence: []string{"lock:other"},
		}}}}
		p.hideKeys(KeyNamesTemplate, nil, nil)
		body, _ := json.Marshal(p)
		if strings.Contains(string(body), "lock:other") || p.Findings[0].Summary != rule+": c" {
			t.Errorf("got %s", body)
		}
	}
}

// What the rules whose texts stay do say of a lock, by their own fixtures, names it
// in no way that is not replaced.
func TestFixturesOfRulesShowNoName(t *testing.T) {
	t.Parallel()
	looked := 0
	for _, rule := range ownNameOnly {
		files, err := filepath.Glob(filepath.Join("..", "rules", "testdata", strings.ReplaceAll(rule, "/", "-"), "bad-*.txtar"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no fixtures: %v", rule, err)
		}
		for _, path := range files {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			input, output, _ := strings.Cut(string(raw), "-- want.yaml --\n")
			var want struct {
				Reason, ZH      string
				Evidence        []string
				CounterEvidence []string `yaml:"counter_evidence"`
				EvidenceZH      []string `yaml:"evidence_zh"`
				CounterZH       []string `yaml:"counter_evidence_zh"`
			}
			if err := yaml.Unmarshal([]byte(output), &want); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			keys := keysIn(t, input)
			if len(keys) == 0 {
				continue // about no lock
			}
			looked++
			if len(want.EvidenceZH) != len(want.Evidence) || len(want.CounterZH) != len(want.CounterEvidence) {
				t.Errorf("%s: not all evidence is in Chinese", path)
			}
			english := api.Finding{
				Rule: rule, Class: "c", Key: api.NewKey(keys[0]), Summary: want.Reason, Evidence: want.Evidence, CounterEvidence: want.CounterEvidence,
			}
			chinese := english
			chinese.Summary, chinese.Evidence, chinese.CounterEvidence = want.ZH, want.EvidenceZH, want.CounterZH
			p := Payload{Findings: []PayloadFinding{{Finding: english}, {Finding: chinese}}}
			p.hideKeys(KeyNamesTemplate, nil, nil)
			body, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range keys {
				if left := leftOf(t, key, body); len(left) > 0 {
					t.Errorf("%s: %q is left in %s", path, left, body)
				}
			}
		}
	}
	if looked < 30 {
		t.Errorf("only %d fixtures have a lock", looked)
	}
}

// keysIn are the names of locks in a fixture, its own first.
func keysIn(t *testing.T, input string) []string {
	t.Helper()
	_, text, _ := strings.Cut(input, "-- input.yaml --\n")
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	var out []string
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		for i, c := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 0 && c.Value == "key" {
				out = append(out, n.Content[i+1].Value)
			}
			walk(c)
		}
	}
	walk(&root)
	return out
}

// Every rule is known to name other locks or not: a new one is in one of the lists.
func TestEveryRuleIsKnownToNameOthersOrNot(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join("..", "docs", "rules", "*", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal(err, len(pages))
	}
	known := append(slices.Clone(ownNameOnly), namesOthers...)
	for _, page := range pages {
		rule := filepath.Base(filepath.Dir(page)) + "/" + strings.TrimSuffix(filepath.Base(page), ".md")
		if !slices.Contains(known, rule) {
			t.Errorf("rule %s is in neither list of keynames.go", rule)
		}
	}
	if len(known) != len(pages) {
		t.Errorf("%d rules are known, %d have a page", len(known), len(pages))
	}
	for _, rule := range known {
		if _, err := os.Stat(filepath.Join("..", "docs", "rules", rule+".md")); err != nil {
			t.Error(err)
		}
	}
}

func TestFullNamesStay(t *testing.T) {
	t.Parallel()
	p := namedPayload("lock:order:42", "en")
	before, _ := json.Marshal(p)
	for _, mode := range []string{"", KeyNamesFull} {
		p.hideKeys(mode, nil, []byte("salt"))
		if after, _ := json.Marshal(p); string(after) != string(before) {
			t.Errorf("mode %q: got %s", mode, after)
		}
	}
}

// The group of a message that is shared by several is not changed in place.
func TestSharedGroupsAreCopied(t *testing.T) {
	t.Parallel()
	g := &Group{Key: "k lock:order:42", Labels: map[string]string{"key": "lock:order:42"}}
	one := Payload{Group: g, Findings: []PayloadFinding{eventOf(found("lock:order:42", locksteward.SeverityWarning, locksteward.StatusFiring), 1, "en")}}
	two := one
	two.Findings = slices.Clone(one.Findings)
	one.hideKeys(KeyNamesHash, nil, nil)
	two.hideKeys(KeyNamesHash, nil, nil)
	if one.Group.Key != two.Group.Key || one.Group.Labels["key"] != two.Group.Labels["key"] || g.Labels["key"] != "lock:order:42" {
		t.Errorf("got %+v, %+v of %+v", one.Group, two.Group, g)
	}
	if !strings.HasPrefix(one.Group.Key, "group:") {
		t.Errorf("the group's key is %q", one.Group.Key)
	}
}
