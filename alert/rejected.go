package alert

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// Many services answer every notification with 200 and put the result into the body. This
// file reads such answers.

// maxDetail bounds a service's own error text, in characters.
const maxDetail = 200

// serviceMessage is the service's own error about an attempt that failed.
func (e *DeliveryError) serviceMessage() string {
	out := ""
	if e.Code != "" {
		out += ", code " + e.Code
	}
	if e.Detail != "" {
		out += ": " + e.Detail
	}
	return out
}

// disposition is what a service's error code means for a notification.
type disposition int

const (
	// fixable is about a secret, a robot or a group: somebody can fix it.
	fixable disposition = iota
	// throttled: the service accepts no more for a time.
	throttled
	// unacceptable is about the notification itself: it would be refused again.
	unacceptable
)

// verdict is an error in the body of an answer.
type verdict struct {
	code, message string
	disposition
	pause time.Duration // of throttled
}

// errNotTheService is the failure of an answer without a code.
var errNotTheService = errors.New("the answer is not one of this service: a proxy may have given it")

// rejected is the failure of an attempt that was answered with a verdict; secrets
// are not shown.
func (p *poster) rejected(a answer, v verdict, secrets ...locksteward.Secret) *DeliveryError {
	return &DeliveryError{
		Reason: ReasonRejected, Status: a.status, Retryable: v.disposition != unacceptable, RetryAfter: p.pause(a, v), Endpoint: p.endpoint,
		Code: p.redacted(v.code, secrets...), Detail: p.redacted(v.message, secrets...),
	}
}

// pause is how long the service asks to wait.
func (p *poster) pause(a answer, v verdict) time.Duration {
	if v.disposition != throttled {
		return 0
	}
	return max(v.pause, retryAfter(a.header.Get("Retry-After"), time.Now()))
}

// unexpectedAnswer is the failure of an attempt whose answer is not the service's.
func (p *poster) unexpectedAnswer(a answer) *DeliveryError {
	e := p.rejected(a, verdict{})
	e.Err = errNotTheService
	e.Detail = errNotTheService.Error()
	if kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";"); kind != "" {
		e.Detail += " (" + p.redacted(kind) + ")"
	}
	return e
}

// redacted is a service's own text for people: one line, bounded, and without the parts of
// the URL and the secrets that it may repeat.
func (p *poster) redacted(text string, secrets ...locksteward.Secret) string {
	hide := secretParts(p.url)
	for _, s := range secrets {
		hide = append(hide, s.Reveal())
	}
	// The longest first: one may be a part of another.
	slices.SortFunc(hide, func(a, b string) int { return len(b) - len(a) })
	for _, h := range hide {
		if h != "" {
			text = strings.ReplaceAll(text, h, locksteward.SecretMask)
		}
	}
	return cut(tidy(text), maxDetail)
}

// secretParts are the parts of a URL that can be a token.
func secretParts(u *url.URL) []string {
	out := []string{u.String()}
	if u.User != nil {
		out = append(out, u.User.String())
		if password, ok := u.User.Password(); ok {
			// As the header has it, too.
			out = append(out, password, base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
		}
	}
	parts := strings.Split(u.EscapedPath(), "/")
	parts = append(parts, strings.Split(u.Path, "/")...)
	for _, values := range u.Query() {
		for _, v := range values {
			parts = append(parts, v, url.QueryEscape(v))
		}
	}
	for _, part := range parts {
		// A short one is a word such as "send": no token, and found in every sentence.
		if len(part) >= 8 {
			out = append(out, part)
		}
	}
	return out
}

// classify classifies an answer by its status and its body: read returns the error in a
// body, nil for success; false if the body is not the service's. err is that of the post.
func (p *poster) classify(a answer, err error, read func([]byte) (*verdict, bool), secrets ...locksteward.Secret) error {
	failed, isStatus := errors.AsType[*DeliveryError](err)
	if err != nil && (!isStatus || failed.Status == 0) {
		return err
	}
	v, ok := read(a.body)
	switch {
	case err == nil && !ok:
		return p.unexpectedAnswer(a)
	case err == nil && v == nil:
		return nil
	case err == nil:
		return p.rejected(a, *v, secrets...)
	case !ok || v == nil || a.status == http.StatusTooManyRequests || a.status >= http.StatusInternalServerError:
		// The status decides: what the body adds is for people.
		if v != nil {
			failed.Code, failed.Detail = p.redacted(v.code, secrets...), p.redacted(v.message, secrets...)
		}
		return failed
	default:
		// A code says more than the status that it comes with.
		e := p.rejected(a, *v, secrets...)
		e.Reason = failed.Reason
		return e
	}
}

// codeTable is what the codes of a service mean. Those that are not listed are fixable:
// nothing is given up for an unknown code.
type codeTable struct {
	// throttled are codes with how long the service asks to wait.
	throttled    map[int64]time.Duration
	unacceptable []int64
}

func (f codeTable) verdict(code int64, message string) *verdict {
	v := verdict{code: fmt.Sprint(code), message: message}
	if pause, ok := f.throttled[code]; ok {
		v.disposition, v.pause = throttled, pause
	} else if slices.Contains(f.unacceptable, code) {
		v.disposition = unacceptable
	}
	return &v
}

// errcode reads {"errcode":0,"errmsg":"ok"}, as DingTalk and WeCom answer.
func (f codeTable) errcode(body []byte) (*verdict, bool) {
	var b struct {
		Code    *int64 `json:"errcode"`
		Message string `json:"errmsg"`
	}
	if json.Unmarshal(body, &b) != nil || b.Code == nil {
		return nil, false
	}
	if *b.Code == 0 {
		return nil, true
	}
	return f.verdict(*b.Code, b.Message), true
}
