package alert

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/locksteward/locksteward"
)

// hostile are names that try to be more than a name.
var hostile = []string{
	"plain:42", "", "\x00\x01\x7f", "a\nb\r\nc\u2028d\u2029e", "\xff\xfe\x80lock", "lock:\u202egnp.exe\u2066x\u2069\u200f",
	"<!channel> <!here|x> <@U012AB3CD> <#C1|y> <https://evil.example|console>", "@all @13800000000 @everyone", "<@all> <@ana>",
	"<at id=all></at><at user_id=\"all\">x</at>", "[console](https://evil.example)", "![i](https://evil.example/p.png)", "https://evil.example/x www.evil.example",
	"**b** __b__ *i* _i_ ~~s~~ `c` ```\nblock\n```", "# head\n## head\n> quote\n- list\n+ list\n1. list\n---\n===", "<font color=\"info\">ok</font><script>alert(1)</script>",
	"&lt;!channel&gt; &#60;at id=all&#62; &amp;", "\\*\\_\\[", "|a|b|\n|-|-|\n", ":rotating_light: :tada:", "{{.Text}} ${x} %s %d", "\"},{\"text\":\"x", "</font>", "]()", ")](x",
	"Z" + strings.Repeat("\u0301", 500), strings.Repeat("锁", 3000), strings.Repeat("😀", 2500), strings.Repeat("<!channel>", 820), strings.Repeat("\u202e", 3000), strings.Repeat("`", 8192), strings.Repeat("- ", 4096),
	"\u3164\u2800\u115f", "　　wide", "\t\ttab", "RESOLVED · ttl/none", "key\u200b\u200d\ufeff",
}

// withText puts a text at every place of messages that locks and people fill.
func withText(text string) []Payload {
	f := found(text, locksteward.SeverityCritical, locksteward.StatusFiring)
	f.Summary = locksteward.Literal(text)
	f.Evidence = []locksteward.Message{locksteward.Literal(text), locksteward.Literal(text)}
	f.CounterEvidence = []locksteward.Message{locksteward.Literal(text)}
	f.Cause, f.Remedy = locksteward.Literal(text), locksteward.Literal(text)
	f.Class, f.Library, f.Subject, f.Team = text, text, text, text
	f.RunbookURL = "https://wiki.example/" + text
	p := Payload{Version: PayloadVersion, Lang: "en", Type: "findings.firing", ID: "msg_1", Status: "firing", Timestamp: sampleTime, Reason: ReasonRepeat}
	many := 12
	if len(text) > 1000 {
		many = 3 // these fill a message as well
	}
	for i := range many {
		p.Findings = append(p.Findings, eventOf(f, uint64(i+1), "en"))
		p.Findings[i].Fingerprint = fmt.Sprint(i)
	}
	p.Group = &Group{Key: text, Labels: map[string]string{"key": text, text: text}, Firing: 12}
	n := glass()
	n.Message, n.Actor, n.Target = locksteward.Literal(text), text, text
	n.Request.Evidence.Key, n.Request.Reason, n.Request.Requester, n.Request.Outcome = text, text, text, text
	n.Request.Decisions[0].Reason, n.Request.Decisions[0].By = text, text
	m, err := releaseNotification(writer{name: "ops", lang: "en"}, n, 1)
	if err != nil {
		panic(err)
	}
	test := Payload{Version: PayloadVersion, Type: typeTest, ID: "msg_1", Timestamp: sampleTime, Text: text}
	own := p
	own.Reason = "" // with a template
	return []Payload{p, decoded(m.Body), test, own}
}

// messageOf renders a message as a kind would send it.
func messageOf(kind string, p Payload, own *compiled) []byte {
	return pageOf(kind, renderer{lang: "en", own: own}.render(p))
}

func pageOf(kind string, page message) []byte {
	r := &chatReceiver{}
	switch kind {
	case "slack":
		return (&slack{r, "<!here>"}).message(page)
	case "dingtalk":
		return (&dingtalk{chatReceiver: r, mention: []string{"13900000000"}}).message(page)
	case "feishu":
		return (&feishu{chatReceiver: r, mention: []string{"ou_1"}}).message(page, sampleTime)
	default:
		return (&wecom{chatReceiver: r, users: []string{"zoe"}}).message(page)
	}
}

func TestHostileTextsDoNothing(t *testing.T) {
	t.Parallel()
	own, err := (&Template{Title: "{{.Type}}", Text: "{{range .Findings}}{{.Key.Key}}\n{{.Summary}}\n{{end}}{{.Text}}"}).compile("en")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range hostile {
		for i, p := range withText(text) {
			look := renderer{lang: "en"}
			if i == 3 {
				look.own = own
			}
			page := look.render(p)
			for _, kind := range peopleKinds {
				for _, problem := range problemsOf(kind, pageOf(kind, page)) {
					t.Errorf("%s, message %d, %.40q: %s", kind, i, text, problem)
				}
			}
		}
	}
}

func FuzzHostileTexts(f *testing.F) {
	for _, text := range hostile {
		if len(text) < 1000 { // TestHostileTextsDoNothing has the others
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 16<<10 {
			t.Skip()
		}
		for i, p := range withText(text)[:3] {
			p.Findings = p.Findings[:min(len(p.Findings), 3)]
			page := renderer{lang: "en"}.render(p)
			for _, kind := range peopleKinds {
				for _, problem := range problemsOf(kind, pageOf(kind, page)) {
					t.Errorf("%s, message %d: %s", kind, i, problem)
				}
			}
		}
	})
}

// problemsOf is what is wrong with a message, by what the service marks up.
func problemsOf(kind string, body []byte) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if !utf8.Valid(body) {
		bad("is not UTF-8")
	}
	var m map[string]any
	if err := json.Unmarshal(body, &m); err != nil {
		return append(problems, err.Error())
	}
	texts(m, func(path, text string) {
		if i := strings.IndexFunc(text, unprintable); i >= 0 {
			bad("%s holds %q", path, text[i:min(len(text), i+4)])
		}
	})
	switch kind {
	case "slack":
		slackProblems(m, bad)
	case "dingtalk":
		dingtalkProblems(m, len(body), bad)
	case "feishu":
		feishuProblems(m, len(body), bad)
	case "wecom":
		wecomProblems(m, bad)
	}
	return problems
}

// unprintable is what must be in no message: controls, and what turns text round.
func unprintable(r rune) bool {
	return r != '\n' && r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 ||
		r >= 0x200c && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2060 && r <= 0x2069 || r == 0xfeff
}

// texts calls visit with every text of a message and its path.
func texts(v any, visit func(path, text string)) {
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case string:
			visit(path, v)
		case []any:
			for _, one := range v {
				walk(path+"[]", one)
			}
		case map[string]any:
			for name, one := range v {
				walk(path+"."+name, one)
			}
		}
	}
	walk("", v)
}

// ourManual is the page to which a release leads whose class names none.
const ourManual = `github\.com/locksteward/locksteward/blob/main/docs/release\.md`

var (
	slackToken  = regexp.MustCompile(`<[^>]*>`)
	slackOurs   = regexp.MustCompile(`^<(!here|https://((wiki|locks)\.example/[^|<>]*|` + ourManual + `)\|[a-z]+)>$`)
	markLink    = regexp.MustCompile(`\]\(([^)]*)\)`)
	markOurs    = regexp.MustCompile(`^https://((wiki|locks)\.example/[^\s()<>\[\]]*|` + ourManual + `)$`)
	bareURL     = regexp.MustCompile(`(?i)[a-z]+://|www\.`)
	wecomTag    = regexp.MustCompile(`<[^>]*>`)
	lineOfBlock = regexp.MustCompile(`^(#|-|\+|=|\d+\.|\||>|\*{3}|_{3})`)
)

func slackProblems(m map[string]any, bad func(string, ...any)) {
	blocks := 0
	total := 0
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			kind, _ := v["type"].(string)
			text, isText := v["text"].(string)
			if !isText || kind == "" {
				if kind != "" {
					blocks++
				}
				for _, one := range v {
					walk(one)
				}
				return
			}
			n := len(utf16.Encode([]rune(text)))
			if total += n; n == 0 || n > 3000 {
				bad("a text of %d characters", n)
			}
			if kind == "mrkdwn" {
				slackMarkup(text, bad)
			} else if kind != "plain_text" || v["emoji"] != false {
				bad("a text of type %s", kind)
			}
		}
	}
	top, _ := m["blocks"].([]any)
	walk(top)
	walk(m["attachments"])
	header := top[0].(map[string]any)["text"].(map[string]any)["text"].(string)
	if len(utf16.Encode([]rune(header))) > 150 {
		bad("a header of %d characters", len(header))
	}
	if blocks > 50 || total > 13_000 {
		bad("%d blocks, %d characters", blocks, total)
	}
	fallback, _ := m["text"].(string)
	slackMarkup(fallback, bad)
	if strings.Contains(fallback, "\n") || fallback == "" {
		bad("the fallback is %q", fallback)
	}
}

func slackMarkup(text string, bad func(string, ...any)) {
	for _, token := range slackToken.FindAllString(text, -1) {
		if !slackOurs.MatchString(token) {
			bad("mrkdwn %q", token)
		}
	}
	if strings.ContainsAny(slackToken.ReplaceAllString(text, ""), "<>`") {
		bad("mrkdwn %q", text)
	}
}

func dingtalkProblems(m map[string]any, size int, bad func(string, ...any)) {
	if size > 20_000 {
		bad("%d bytes", size)
	}
	text := m["markdown"].(map[string]any)["text"].(string)
	if m["at"].(map[string]any)["isAtAll"] != false {
		bad("calls all")
	}
	text, calls, _ := strings.Cut(text, "\n\nLocksteward")
	if calls != "" && calls != "\n\n@13900000000" {
		bad("calls %q", calls)
	}
	markdownProblems(text, bad)
	if strings.ContainsAny(text, "<@") {
		bad("holds a tag or a call: %.200q", text)
	}
}

func wecomProblems(m map[string]any, bad func(string, ...any)) {
	text := m["markdown"].(map[string]any)["content"].(string)
	if len(text) > 4096 {
		bad("%d bytes", len(text))
	}
	text = strings.TrimSuffix(text, "\n\n<@zoe>")
	for _, tag := range wecomTag.FindAllString(text, -1) {
		if !slices.Contains([]string{`<font color="warning">`, `<font color="info">`, `<font color="comment">`, `</font>`}, tag) {
			bad("tag %q", tag)
		}
	}
	if n := strings.Count(text, "<font"); n != 1 || strings.Count(text, "</font>") != 1 {
		bad("%d colours", n)
	}
	rest := wecomTag.ReplaceAllString(text, "")
	markdownProblems(rest, bad)
	if strings.ContainsAny(rest, "<@") {
		bad("holds a tag or a call: %.200q", rest)
	}
}

// markdownProblems are those of text for a Markdown without escapes: all marks in it
// must be our own.
func markdownProblems(text string, bad func(string, ...any)) {
	for _, found := range markLink.FindAllStringSubmatch(text, -1) {
		if !markOurs.MatchString(found[1]) {
			bad("links to %q", found[1])
		}
	}
	rest := markLink.ReplaceAllString(text, "]")
	if found := bareURL.FindString(rest); found != "" {
		bad("holds %q: %.200q", found, rest)
	}
	for i, line := range strings.Split(rest, "\n") {
		line = strings.TrimPrefix(line, "> ")
		line = strings.TrimSuffix(strings.TrimSpace(line), "**")
		line = strings.TrimPrefix(line, "**")
		if i == 0 {
			line = strings.TrimPrefix(line, "### ")
		}
		if found := lineOfBlock.FindString(line); found != "" || strings.ContainsAny(line, "*`~!\\|#") {
			bad("line %d is %.100q", i, line)
		}
	}
}

func feishuProblems(m map[string]any, size int, bad func(string, ...any)) {
	if size > 20_000 {
		bad("%d bytes", size)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			content, ok := v["content"].(string)
			if !ok {
				for _, one := range v {
					walk(one)
				}
				return
			}
			switch v["tag"] {
			case "plain_text":
				if content == "" {
					bad("an empty text")
				}
			case "lark_md":
				feishuMarkup(content, bad)
			default:
				bad("a text of tag %v", v["tag"])
			}
		}
	}
	walk(m)
}

func feishuMarkup(text string, bad func(string, ...any)) {
	rest := strings.ReplaceAll(text, "<at id=ou_1></at>", "")
	for _, found := range markLink.FindAllStringSubmatch(rest, -1) {
		if !markOurs.MatchString(found[1]) {
			bad("links to %q", found[1])
		}
	}
	rest = markLink.ReplaceAllString(rest, "]")
	rest = strings.TrimPrefix(rest, "**")
	if strings.ContainsAny(strings.Replace(rest, "**", "", 1), "<>*`~\\") {
		bad("lark_md %.200q", text)
	}
}

// What is notified of a lock is sent: names of usual letters stay as they are.
func TestUsualNamesCanBeCopied(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"lock:order:42", "{tenant-7}:lock.order_items/a", "锁:订单:42", "user_profile:u_1:x-y"} {
		f := found(key, locksteward.SeverityCritical, locksteward.StatusFiring)
		p := Payload{Version: PayloadVersion, Lang: "en", Type: "findings.firing", Timestamp: sampleTime, Findings: []PayloadFinding{eventOf(f, 1, "en")}}
		for _, kind := range peopleKinds {
			if body := string(messageOf(kind, p, nil)); !strings.Contains(body, "lock: "+key) {
				t.Errorf("%s: %q is not in %s", kind, key, body)
			}
		}
	}
}

// A message that is too long loses text and findings and says how many.
func TestLongMessagesAreCutAndSaySo(t *testing.T) {
	t.Parallel()
	counted := regexp.MustCompile(`and (\d+) more`)
	for _, name := range []string{"lock:order:42", strings.Repeat("锁", 2700), strings.Repeat("<", 8192)} {
		p := withText(name)[0]
		p.Omitted, p.URL = 30, "https://locks.example/findings"
		for _, kind := range peopleKinds {
			body := string(messageOf(kind, p, nil))
			m := counted.FindStringSubmatch(body)
			if m == nil {
				t.Errorf("%s: %.20q: nothing says what is left out", kind, name)
				continue
			}
			// Every finding is sent or counted.
			if left, reported := m[1], strings.Count(body, "FIRING critical"); left != fmt.Sprint(len(p.Findings)+30-reported) {
				t.Errorf("%s: %.20q: %d are sent and %s left out", kind, name, reported, left)
			}
			if !strings.Contains(body, "https://locks.example/findings") {
				t.Errorf("%s: %.20q: no link", kind, name)
			}
		}
	}
}

func TestCutsAreAtRunes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "abc", "锁锁锁", "a😀b😀", "\u0301\u0301"} {
		for n := 1; n < 8; n++ {
			if got := cut(text, n); utf8.RuneCountInString(got) > n || !utf8.ValidString(got) {
				t.Errorf("cut(%q, %d) is %q", text, n, got)
			}
			if got := cutBytes(text, n+3); len(got) > n+3 || !utf8.ValidString(got) {
				t.Errorf("cutBytes(%q, %d) is %q", text, n+3, got)
			}
			if joined := strings.Join(pieces(text, n+1), ""); joined != text {
				t.Errorf("pieces(%q, %d) are %q", text, n+1, joined)
			}
		}
	}
}

func TestOnlyWebLinksAreLinks(t *testing.T) {
	t.Parallel()
	for link, want := range map[string]string{
		"https://wiki/locks?a=b#c": "https://wiki/locks?a=b#c", " http://h/x ": "http://h/x", "https://h/a b|c>d)e": "https://h/a%20b%7Cc%3Ed%29e",
		"https://h/锁": "https://h/%E9%94%81", "javascript:alert(1)": "", "//h/x": "", "https://": "", "https://u:p@h/": "", "data:text/html,x": "", "https://[::1]/": "",
		"": "", "https://h/" + strings.Repeat("x", 2000): "", "https://h/\x00": "",
	} {
		if got := safeLink(link); got != want {
			t.Errorf("%q: got %q, want %q", link, got, want)
		}
	}
}
