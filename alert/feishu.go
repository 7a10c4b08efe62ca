package alert

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// feishuKind is a custom bot of a Feishu or Lark group: docs/receivers/feishu.md.
var feishuKind = kind{
	traits:      traits{cap: peopleCap, people: true, rates: rates{perMinute: 100, perSecond: 5, avoidPeaks: true}}, // as many as a bot may send
	problems:    Receiver.oneSecret,
	mentionable: feishuID.MatchString,
	mentions:    "all, or an id such as ou_18eac85d35a26",
	open: func(r Receiver, fs *files) (transport, error) {
		secret, secretErr := fs.signingSecret(r.Endpoint)
		chatReceiver, err := newChatReceiver(r, fs, secretErr)
		if err != nil {
			return nil, err
		}
		return &feishu{chatReceiver, secret, r.Mention}, nil
	},
}

var feishuID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

type feishu struct {
	*chatReceiver
	secret  locksteward.Secret
	mention []string
}

// feishuCodes are the codes of custom bots. Those about the bot are fixable: 19001 no
// such bot, 19007 switched off, 19021 signature or clock, 19022 address, 19024 keyword.
var feishuCodes = codeTable{
	throttled: map[int64]time.Duration{
		11232: time.Minute, // too many notifications, of all bots of the service
		11233: time.Minute,
	},
	unacceptable: []int64{
		9499,                  // the request is not understood
		11246, 200621, 230099, // the card is not
	},
}

// readFeishu reads {"code":0,"msg":"success"}, or {"StatusCode":0} as long ago.
func readFeishu(body []byte) (*verdict, bool) {
	var b struct {
		Code       *int64 `json:"code"`
		Message    string `json:"msg"`
		OldCode    *int64 `json:"StatusCode"`
		OldMessage string `json:"StatusMessage"`
	}
	if json.Unmarshal(body, &b) != nil {
		return nil, false
	}
	code, message := b.Code, b.Message
	if code == nil {
		code, message = b.OldCode, b.OldMessage
	}
	switch {
	case code == nil:
		return nil, false
	case *code == 0:
		return nil, true
	}
	v := feishuCodes.verdict(*code, message)
	// 9499 comes for too many requests as well.
	if said := strings.ToLower(message); v.disposition == unacceptable && (strings.Contains(said, "too many") || strings.Contains(said, "frequency")) {
		v.disposition, v.pause = throttled, time.Minute
	}
	return v, true
}

// send makes one attempt, signed for its own time. The error is a *DeliveryError.
func (f *feishu) send(ctx context.Context, out outgoing) error {
	if out.err != nil {
		return undecodable(f.endpoint, out.err)
	}
	a, err := f.post(ctx, f.message(f.render(out.payload), time.Now()), nil)
	return f.classify(a, err, readFeishu, f.secret)
}

// sign is HMAC-SHA256 over nothing, with the seconds, a line break and the secret as
// key: the other way round than DingTalk's.
func (f *feishu) sign(at time.Time) (timestamp, sign string) {
	timestamp = strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(timestamp+"\n"+f.secret.Reveal()))
	return timestamp, base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// feishuBody is how long a request may be: 20 KB, less some room.
const feishuBody = 19_000

// feishuColours are the templates of a card's header.
var feishuColours = [...]string{levelNeutral: "blue", levelResolved: "green", levelWarning: "orange", levelCritical: "red"}

// message is a card. Texts from locks and people are of type plain_text, which has no
// markup and no mentions, or escaped.
func (f *feishu) message(page message, at time.Time) []byte {
	return fit(page, func(page message) ([]byte, bool) {
		m := map[string]any{
			"msg_type": "interactive",
			"card": map[string]any{
				"config": map[string]any{"wide_screen_mode": true, "enable_forward": true},
				"header": map[string]any{
					"title": feishuText("plain_text", page.title), "template": feishuColours[page.level],
				},
				"elements": f.elements(page),
			},
		}
		if f.secret != "" {
			m["timestamp"], m["sign"] = f.sign(at)
		}
		body := plainJSON(m)
		return body, len(body) <= feishuBody
	})
}

func (f *feishu) elements(page message) []any {
	out := []any{}
	plain := func(text string) {
		if text != "" {
			out = append(out, feishuDiv("plain_text", text))
		}
	}
	if page.urgent && len(f.mention) > 0 {
		out = append(out, feishuDiv("lark_md", "<at id="+strings.Join(f.mention, "></at><at id=")+"></at>"))
	}
	if page.text != "" {
		plain(page.text)
	} else {
		plain(plainLines(page.lead))
		for _, p := range page.parts {
			out = append(out, map[string]any{"tag": "hr"},
				feishuDiv("lark_md", "**"+forFeishu(p.level.sign()+" "+p.head)+"**"+feishuLinks(p.links)))
			plain(plainLines(p.lines))
		}
	}
	if page.more.n > 0 {
		plain(page.more.words(page.lang))
	}
	var buttons []any
	for _, l := range page.links {
		buttons = append(buttons, map[string]any{"tag": "button", "type": "default", "text": feishuText("plain_text", l.text), "url": l.url})
	}
	if len(buttons) > 0 {
		out = append(out, map[string]any{"tag": "action", "actions": buttons})
	}
	return append(out, map[string]any{"tag": "note", "elements": []any{feishuText("plain_text", "Locksteward")}})
}

func feishuLinks(list []link) string {
	var b strings.Builder
	for _, l := range list {
		b.WriteString("  [" + forFeishu(l.text) + "](" + l.url + ")")
	}
	return b.String()
}

func feishuText(tag, text string) map[string]any { return map[string]any{"tag": tag, "content": text} }

func feishuDiv(tag, text string) map[string]any {
	return map[string]any{"tag": "div", "text": feishuText(tag, text)}
}
