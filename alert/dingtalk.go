package alert

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// dingtalkKind is a custom robot of a DingTalk group: docs/receivers/dingtalk.md.
var dingtalkKind = kind{
	traits:      traits{cap: peopleCap, people: true, rates: rates{perMinute: 20}}, // who sends more is muted for about ten minutes
	problems:    Receiver.oneSecret,
	mentionable: func(m string) bool { return m == "all" || mobilePattern.MatchString(m) },
	mentions:    "all, or a telephone number such as 13800000000 or +86-13800000000",
	open: func(r Receiver, fs *files) (transport, error) {
		secret, secretErr := fs.signingSecret(r.Endpoint)
		chatReceiver, err := newChatReceiver(r, fs, secretErr)
		if err != nil {
			return nil, err
		}
		return &dingtalk{chatReceiver, secret, r.Mention}, nil
	},
}

var mobilePattern = regexp.MustCompile(`^\+?[0-9][0-9-]{4,19}$`)

type dingtalk struct {
	*chatReceiver
	secret  locksteward.Secret
	mention []string // telephone numbers, or all
}

// dingtalkMute is how long a robot that sent too much is muted.
const dingtalkMute = 10 * time.Minute

// dingtalkCodes are the codes of robots. 310000 is about the robot's security
// settings (signature, keyword, address): fixable, as is every code not listed.
var dingtalkCodes = codeTable{
	throttled: map[int64]time.Duration{
		130101: dingtalkMute, // more than 20 notifications a minute
		410100: dingtalkMute, // too fast
		90030:  time.Hour,    // the quota of calls is used up
		-1:     time.Minute,  // the system is busy
	},
	unacceptable: []int64{
		40035,                          // a parameter is wrong
		400105,                         // no such type of notification
		460101,                         // too long
		430101, 430102, 430103, 430104, // a link or a text that the service does not let pass
	},
}

// send makes one attempt, signed for its own time. The error is a *DeliveryError.
func (d *dingtalk) send(ctx context.Context, out outgoing) error {
	if out.err != nil {
		return undecodable(d.endpoint, out.err)
	}
	a, err := d.postTo(ctx, d.signed(time.Now()), d.message(d.render(out.payload)), nil)
	return d.classify(a, err, dingtalkCodes.errcode, d.secret)
}

// signed is the URL with the signature of a time: HMAC-SHA256 with the secret as
// key over the milliseconds, a line break and the secret.
func (d *dingtalk) signed(at time.Time) *url.URL {
	if d.secret == "" {
		return d.url
	}
	ms := strconv.FormatInt(at.UnixMilli(), 10)
	mac := hmac.New(sha256.New, []byte(d.secret.Reveal()))
	mac.Write([]byte(ms + "\n" + d.secret.Reveal()))
	u := *d.url
	q := u.Query()
	q.Set("timestamp", ms)
	q.Set("sign", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	u.RawQuery = q.Encode()
	return &u
}

// dingtalkBody is how long a request may be: 20,000 bytes, less some room.
const dingtalkBody = 19_000

func (d *dingtalk) message(page message) []byte {
	at := map[string]any{"isAtAll": false}
	calls := ""
	switch {
	case !page.urgent || len(d.mention) == 0:
	case slices.Contains(d.mention, "all"):
		at["isAtAll"] = true
	default:
		at["atMobiles"] = d.mention
		calls = "@" + strings.Join(d.mention, " @") // without it no one is mentioned
	}
	return fit(page, func(page message) ([]byte, bool) {
		title := page.level.sign() + " " + forMarkdown(page.title)
		text := markdown{heading: "### " + title, lineEnd: "  \n", quote: "> "}.write(page)
		// A robot can require a certain word in each message.
		text += "\n\nLocksteward"
		if calls != "" {
			text += "\n\n" + calls
		}
		body := plainJSON(map[string]any{
			"msgtype": "markdown", "at": at, "markdown": map[string]any{"title": title, "text": text},
		})
		return body, len(body) <= dingtalkBody
	})
}
