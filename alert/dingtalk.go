package alert

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// DingTalk is a custom robot of a DingTalk group: docs/receivers/dingtalk.md.
type DingTalk struct {
	Endpoint `yaml:",inline"`
	// SecretFile holds the robot's signing secret (SEC…), or Secret does, from the
	// environment. None: not signed.
	SecretFile string             `yaml:"secret_file"`
	Secret     locksteward.Secret `yaml:"secret" from:"env"`
	// AtMobiles are the telephone numbers of members who are mentioned when somebody is
	// needed, AtAll mentions all.
	AtMobiles []string `yaml:"at_mobiles"`
	AtAll     bool     `yaml:"at_all"`
}

func (d DingTalk) filled() kind {
	d.Endpoint = d.Endpoint.withDefaults()
	return d
}

var mobilePattern = regexp.MustCompile(`^\+?[0-9][0-9-]{4,19}$`)

func (d DingTalk) problems() []error {
	errs := append(d.Endpoint.problems(), given(d.Secret, "secret", d.SecretFile)...)
	for i, m := range d.AtMobiles {
		if !mobilePattern.MatchString(m) {
			errs = append(errs, fmt.Errorf("at_mobiles[%d]: must be a telephone number such as 13800000000 or +86-13800000000, got %q", i, m))
		}
	}
	return errs
}

func (d DingTalk) open(r Receiver, fs *files) (transport, error) {
	secret, secretErr := fs.secretOr(d.Secret, "secret_file", d.SecretFile)
	chatReceiver, err := newChatReceiver(d.Endpoint, r, fs, secretErr)
	if err != nil {
		return nil, err
	}
	return &dingtalk{chatReceiver, secret, d.AtMobiles, d.AtAll}, nil
}

// traits: a robot that sends more than 20 notifications a minute is muted for about ten.
func (d DingTalk) traits() traits {
	return traits{Patience: d.Patience, cap: peopleCap, people: true, rates: rates{perMinute: 20}}
}

type dingtalk struct {
	*chatReceiver
	secret  locksteward.Secret
	mobiles []string
	all     bool
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
	if page.urgent && d.all {
		at["isAtAll"] = true
	} else if page.urgent && len(d.mobiles) > 0 {
		at["atMobiles"] = d.mobiles
		calls = "@" + strings.Join(d.mobiles, " @") // without it no one is mentioned
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
