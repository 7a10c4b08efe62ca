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

// Many services answer every message with 200 and say in the body what became of
// it. This file reads such answers.

// maxDetail is how much of a service's own words an error shows, in characters.
const maxDetail = 200

// said is what the service itself said about an attempt that failed.
func (e *DeliveryError) said() string {
	out := ""
	if e.Code != "" {
		out += ", code " + e.Code
	}
	if e.Detail != "" {
		out += ": " + e.Detail
	}
	return out
}

// fate is what a service's code means for the message that it was given for.
type fate int

const (
	// toMend is about a secret, a robot or a group: somebody can mend that.
	toMend fate = iota
	// tooMany is that the service takes no more for a time.
	tooMany
	// unfit is about the message itself: it would be refused again.
	unfit
)

// verdict is a body that says no.
type verdict struct {
	code, message string
	fate
	pause time.Duration // of tooMany
}

// errNotTheService is why an answer is a failure that has no code in it.
var errNotTheService = errors.New("the answer is not one of this service: a proxy may have given it")

// rejected is the failure of an attempt that was answered with a verdict; secrets
// are not shown.
func (p *poster) rejected(a answer, v verdict, secrets ...locksteward.Secret) *DeliveryError {
	return &DeliveryError{
		Reason: ReasonRejected, Status: a.status, Retryable: v.fate != unfit, RetryAfter: p.pause(a, v), Endpoint: p.endpoint,
		Code: p.hushed(v.code, secrets...), Detail: p.hushed(v.message, secrets...),
	}
}

// pause is how long the service wants to be left alone.
func (p *poster) pause(a answer, v verdict) time.Duration {
	if v.fate != tooMany {
		return 0
	}
	return max(v.pause, retryAfter(a.header.Get("Retry-After"), time.Now()))
}

// strange is the failure of an attempt whose answer is not the service's.
func (p *poster) strange(a answer) *DeliveryError {
	e := p.rejected(a, verdict{})
	e.Err = errNotTheService
	e.Detail = errNotTheService.Error()
	if kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";"); kind != "" {
		e.Detail += " (" + p.hushed(kind) + ")"
	}
	return e
}

// hushed is a service's own text for people: one line, bounded, and without what
// of the URL and the secrets it may repeat.
func (p *poster) hushed(text string, secrets ...locksteward.Secret) string {
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

// judged judges an answer by its status and its body: read returns what a body says,
// nil for success; false if it is none of the service's. err is that of the post.
func (p *poster) judged(a answer, err error, read func([]byte) (*verdict, bool), secrets ...locksteward.Secret) error {
	failed, isStatus := errors.AsType[*DeliveryError](err)
	if err != nil && (!isStatus || failed.Status == 0) {
		return err
	}
	v, ok := read(a.body)
	switch {
	case err == nil && !ok:
		return p.strange(a)
	case err == nil && v == nil:
		return nil
	case err == nil:
		return p.rejected(a, *v, secrets...)
	case !ok || v == nil || a.status == http.StatusTooManyRequests || a.status >= http.StatusInternalServerError:
		// The status says it all: what the body adds is for people.
		if v != nil {
			failed.Code, failed.Detail = p.hushed(v.code, secrets...), p.hushed(v.message, secrets...)
		}
		return failed
	default:
		// A code says more than the status that it comes with.
		e := p.rejected(a, *v, secrets...)
		e.Reason = failed.Reason
		return e
	}
}

// fates are what the codes of a service mean; those that are not listed are toMend:
// nothing is given up for a code that nobody knows.
type fates struct {
	// tooMany are codes with how long the service wants to be left alone.
	tooMany map[int64]time.Duration
	unfit   []int64
}

func (f fates) verdict(code int64, message string) *verdict {
	v := verdict{code: fmt.Sprint(code), message: message}
	if pause, ok := f.tooMany[code]; ok {
		v.fate, v.pause = tooMany, pause
	} else if slices.Contains(f.unfit, code) {
		v.fate = unfit
	}
	return &v
}

// errcode reads {"errcode":0,"errmsg":"ok"}, as DingTalk and WeCom answer.
func (f fates) errcode(body []byte) (*verdict, bool) {
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
