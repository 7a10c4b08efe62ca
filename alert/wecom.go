package alert

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// wecomKind is a robot of a WeCom group: docs/receivers/wecom.md. Its URL is the only secret.
var wecomKind = kind{
	traits: traits{cap: peopleCap, people: true, rates: rates{perMinute: 20}}, // more are refused
	problems: func(r Receiver) []error {
		if n := len(r.Mention); n > wecomUsers {
			return []error{fmt.Errorf("mention: must be at most %d, got %d: a message has room for no more", wecomUsers, n)}
		}
		return nil
	},
	// Markdown of WeCom can mention neither telephone numbers nor all.
	mentionable: func(m string) bool { return m != "all" && wecomUser.MatchString(m) },
	mentions:    "the id of a member (1 to 64 letters, digits or . _ - @; WeCom cannot mention all)",
	open: func(r Receiver, fs *files) (transport, error) {
		chatReceiver, err := newChatReceiver(r, fs)
		if err != nil {
			return nil, err
		}
		return &wecom{chatReceiver, r.Mention}, nil
	},
}

var wecomUser = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// wecomUsers bounds the mentions of a notification.
const wecomUsers = 20

type wecom struct {
	*chatReceiver
	users []string
}

// wecomCodes are the codes of group robots; 93000 is a key that does not exist, and
// fixable as every code not listed.
var wecomCodes = codeTable{
	throttled: map[int64]time.Duration{
		45009: time.Minute, // more than 20 notifications a minute
		45033: time.Minute, // too many at once
		-1:    time.Minute, // the system is busy
	},
	unacceptable: []int64{
		40008, // no such type of notification
		40058, // a parameter is wrong, or the text is too long
		44004, // no text
		45002, // the text is too long
	},
}

// send makes one attempt. The error is a *DeliveryError.
func (w *wecom) send(ctx context.Context, out outgoing) error {
	if out.err != nil {
		return undecodable(w.endpoint, out.err)
	}
	a, err := w.post(ctx, w.message(w.render(out.payload)), nil)
	return w.classify(a, err, wecomCodes.errcode)
}

// wecomContent is how long the text of a notification may be, in bytes.
const wecomContent = 4096

// wecomColours are of the three that the service has.
var wecomColours = [...]string{levelNeutral: "comment", levelResolved: "info", levelWarning: "warning", levelCritical: "warning"}

func (w *wecom) message(page message) []byte {
	calls := ""
	if page.urgent && len(w.users) > 0 {
		calls = "\n\n<@" + strings.Join(w.users, "><@") + ">"
	}
	return fit(page, func(page message) ([]byte, bool) {
		title := page.level.sign() + ` <font color="` + wecomColours[page.level] + `">` + forMarkdown(page.title) + "</font>"
		content := markdown{heading: "### " + title, lineEnd: "\n", quote: "> "}.write(page) + calls
		body := plainJSON(map[string]any{"msgtype": "markdown", "markdown": map[string]any{"content": content}})
		return body, len(content) <= wecomContent
	})
}
