package alert

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
)

// slackKind is an incoming webhook of Slack: docs/receivers/slack.md. Its URL is the only
// secret.
var slackKind = kind{
	traits:      traits{cap: peopleCap, people: true, rates: rates{perMinute: 60, perSecond: 1}}, // Slack takes about one a second
	mentionable: func(m string) bool { return slices.Contains(slackAll, m) || slackID.MatchString(m) },
	mentions:    "here, channel, everyone, or an id such as U012AB3CD or S012AB3CD",
	open: func(r Receiver, fs *files) (transport, error) {
		chatReceiver, err := newChatReceiver(r, fs)
		if err != nil {
			return nil, err
		}
		return &slack{chatReceiver, slackMentions(r.Mention)}, nil
	},
}

var slackID = regexp.MustCompile(`^[UWS][A-Z0-9]{2,20}$`)

var slackAll = []string{"here", "channel", "everyone"}

// slackMentions are mentions in mrkdwn.
func slackMentions(mention []string) string {
	var out []string
	for _, m := range mention {
		switch {
		case slices.Contains(slackAll, m):
			out = append(out, "<!"+m+">")
		case m[0] == 'S':
			out = append(out, "<!subteam^"+m+">")
		default:
			out = append(out, "<@"+m+">")
		}
	}
	return strings.Join(out, " ")
}

type slack struct {
	*chatReceiver
	mentions string
}

// send makes one attempt. The error is a *DeliveryError.
func (s *slack) send(ctx context.Context, out outgoing) error {
	if out.err != nil {
		return undecodable(s.endpoint, out.err)
	}
	a, err := s.post(ctx, s.message(s.render(out.payload)), nil)
	return s.classify(a, err, readSlack)
}

// readSlack reads an answer of Slack: "ok", or a word for the error. The status shows
// whether another attempt helps.
func readSlack(body []byte) (*verdict, bool) {
	text := strings.TrimSpace(string(body))
	switch {
	case text == "ok":
		return nil, true
	case slackWord.MatchString(text):
		v := verdict{code: text}
		if slices.Contains(slackUnacceptable, text) {
			v.disposition = unacceptable
		}
		return &v, true
	default:
		return nil, false
	}
}

var slackWord = regexp.MustCompile(`^[A-Za-z][A-Za-z_ ]{1,60}$`)

// slackUnacceptable are the answers about the notification itself.
var slackUnacceptable = []string{"invalid_payload", "invalid_blocks", "invalid_attachments", "too_many_attachments", "no_text", "msg_too_long", "msg_blocks_too_long"}

// Bounds of Block Kit. All blocks together may have about 13,000 characters, which
// is not documented: the error is msg_blocks_too_long.
const (
	slackHeader  = 150
	slackSection = 3000
	slackBlocks  = 50
	slackTotal   = 11_000
)

// message is the body of a request. Texts from locks and people are of type plain_text,
// which has no markup, mentions or links.
func (s *slack) message(page message) []byte {
	return fit(page, func(page message) ([]byte, bool) {
		b := slackBuilder{fits: true}
		top := []any{b.text("header", "plain_text", cutUTF16(page.level.sign()+" "+page.title, slackHeader), slackHeader)}
		fallback := page.level.sign() + " " + forSlack(page.title)
		if page.urgent && s.mentions != "" {
			top = append(top, b.text("section", "mrkdwn", s.mentions, slackSection))
		}
		body := b.page(page)
		m := map[string]any{
			"text": fallback, "blocks": top, "unfurl_links": false, "unfurl_media": false,
		}
		if len(body) > 0 {
			m["attachments"] = []any{map[string]any{"color": slackColours[page.level], "fallback": fallback, "blocks": body}}
		}
		return plainJSON(m), b.fits && b.total <= slackTotal && len(body)+len(top) <= slackBlocks
	})
}

var slackColours = [...]string{levelNeutral: "#1d9bd1", levelResolved: "#2eb67d", levelWarning: "#f2a600", levelCritical: "#d7263d"}

type slackBuilder struct {
	fits  bool
	total int
}

// text is a block of one text.
func (b *slackBuilder) text(block, kind, text string, limit int) any {
	n := len(utf16.Encode([]rune(text)))
	b.total += n
	b.fits = b.fits && n <= limit && n > 0
	inner := map[string]any{"type": kind, "text": text}
	if kind == "plain_text" {
		inner["emoji"] = false
	} else {
		inner["verbatim"] = true
	}
	if block == "context" {
		return map[string]any{"type": block, "elements": []any{inner}}
	}
	return map[string]any{"type": block, "text": inner}
}

func (b *slackBuilder) page(page message) []any {
	var out []any
	plain := func(text string) {
		if text = strings.TrimSpace(text); text != "" {
			out = append(out, b.text("section", "plain_text", text, slackSection))
		}
	}
	marked := func(parts ...string) {
		if text := strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "   "); text != "" {
			out = append(out, b.text("section", "mrkdwn", text, slackSection))
		}
	}
	if page.text != "" {
		for _, piece := range pieces(page.text, slackSection-100) {
			plain(piece)
		}
	} else {
		plain(plainLines(page.lead))
		for _, p := range page.parts {
			marked("*"+forSlack(p.level.sign()+" "+p.head)+"*", slackLinks(p.links))
			plain(plainLines(p.lines))
		}
	}
	if page.more.n > 0 {
		marked("_"+forSlack(page.more.words(page.lang))+"_", slackLinks(page.links))
	} else {
		marked(slackLinks(page.links))
	}
	return out
}

func slackLinks(list []link) string {
	var out []string
	for _, l := range list {
		out = append(out, "<"+entities.Replace(l.url)+"|"+forSlack(l.text)+">")
	}
	return strings.Join(out, "  ")
}
