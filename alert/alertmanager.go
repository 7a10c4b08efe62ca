package alert

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// Defaults of an Alertmanager.
const (
	DefaultResolveAfter = 5 * time.Minute
	DefaultResend       = time.Minute
)

const (
	// alertsPath is where Alertmanager's API takes alerts.
	alertsPath = "api/v2/alerts"
	// stragglerWait is how long a notification waits for the other instances once one has it.
	stragglerWait = time.Second
)

// alertmanagerKind is Prometheus's Alertmanager, one or all of a cluster: each finding is an
// alert of its API v2.
var alertmanagerKind = kind{
	traits: traits{cap: 100},
	fill: func(r *Receiver) {
		r.ResolveAfter = cmp.Or(r.ResolveAfter, DefaultResolveAfter)
		r.Resend = cmp.Or(r.Resend, DefaultResend)
	},
	problems: alertmanagerProblems,
	open:     openAlertmanager,
}

func alertmanagerProblems(r Receiver) []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(r.URLs) > 0 && (r.URL != "" || r.URLFile != "") {
		bad("urls: are given beside url or url_file: write all of them as urls")
	}
	for i, u := range r.URLs {
		err := urlProblem(u, r.AllowPrivate)
		if errors.Is(err, errLogin) {
			bad("urls[%d]: %w: write them as username and password_file, which hold for all urls", i, errLogin)
		} else if err != nil {
			bad("urls[%d]: %w", i, err)
		}
	}
	switch hasPassword := r.PasswordFile != "" || r.Password != ""; {
	case r.Username != "" && !hasPassword:
		bad("password_file: is missing: write the path of a file that holds the password of %q, or password", r.Username)
	case r.Username == "" && hasPassword:
		bad("username: is missing beside password_file or password: write whose password it is")
	case r.Username != "" && r.TokenFile != "":
		bad("token_file: %q is given beside username: write one of them", r.TokenFile)
	case r.Username != "" && r.Token != "":
		bad("token: %s is given beside username: write one of them", r.Token)
	}
	if r.Resend < time.Second {
		bad("resend: must be at least 1s, got %s", r.Resend)
	}
	if r.ResolveAfter < 3*r.Resend || r.ResolveAfter > 24*time.Hour {
		bad("resolve_after: must be three times resend (%s) to 24h, so that one lost post ends no alert, got %s", r.Resend, r.ResolveAfter)
	}
	return errs
}

func openAlertmanager(r Receiver, fs *files) (transport, error) {
	urls, errs := r.addresses(fs)
	login, secrets, err := r.login(fs)
	if err != nil {
		errs = append(errs, err)
	}
	a := &alertmanager{login: login, secrets: secrets, writer: alertWriter{r.ResolveAfter}, resend: r.Resend}
	for _, u := range urls {
		p, err := newPoster(u.JoinPath(alertsPath), r.Endpoint, fs)
		if err != nil {
			errs = append(errs, err)
			break // the same for all
		}
		a.instances = append(a.instances, p)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return a, nil
}

// addresses are the URLs of all instances.
func (r Receiver) addresses(fs *files) ([]*url.URL, []error) {
	if len(r.URLs) == 0 {
		u, err := r.read(fs)
		if err != nil {
			return nil, []error{err}
		}
		return []*url.URL{u}, nil
	}
	var urls []*url.URL
	var errs []error
	for i, text := range r.URLs {
		u, err := parseURL(text, r.AllowPrivate)
		if err != nil {
			errs = append(errs, fmt.Errorf("urls[%d]: %w", i, err))
			continue
		}
		urls = append(urls, u)
	}
	return urls, errs
}

// login is the authorization header of each request, and the secret in it, in all forms.
func (r Receiver) login(fs *files) (http.Header, []locksteward.Secret, error) {
	req := http.Request{Header: http.Header{}}
	var secret locksteward.Secret
	var err error
	switch {
	case r.TokenFile != "" || r.Token != "":
		if secret, err = fs.secretOr(r.Token, "token_file", r.TokenFile); err != nil {
			return nil, nil, err
		}
		req.Header.Set("Authorization", "Bearer "+secret.Reveal())
	case r.Username != "":
		if secret, err = fs.secretOr(r.Password, "password_file", r.PasswordFile); err != nil {
			return nil, nil, err
		}
		req.SetBasicAuth(r.Username, secret.Reveal())
	}
	_, sent, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	return req.Header, []locksteward.Secret{secret, locksteward.Secret(sent)}, nil
}

// alertmanager delivers to all instances of one Alertmanager.
type alertmanager struct {
	instances []*poster
	login     http.Header
	secrets   []locksteward.Secret
	writer    alertWriter
	resend    time.Duration
}

// send makes one attempt at each instance; it succeeds if one accepts.
func (a *alertmanager) send(ctx context.Context, out outgoing) error {
	if out.err != nil {
		return undecodable(a.instances[0].endpoint, out.err)
	}
	_, err := a.post(ctx, a.writer.alerts(out.payload, time.Now()))
	return err
}

// interval is the configured resend.
func (a *alertmanager) interval() time.Duration { return a.resend }

// resendFiring sends findings that fire again. The error names the instances that did not
// accept them, also if others did.
func (a *alertmanager) resendFiring(ctx context.Context, firing []PayloadFinding) error {
	now := time.Now()
	list := make([]amAlert, 0, len(firing))
	for _, e := range firing {
		list = append(list, a.writer.finding(e, now))
	}
	missed, err := a.post(ctx, list)
	return cmp.Or(err, missed)
}

// post makes one attempt at each instance. err is why none accepted; missed is why some
// did not, if another did.
func (a *alertmanager) post(ctx context.Context, list []amAlert) (missed, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	body, err := json.Marshal(list)
	if err != nil {
		return nil, &DeliveryError{Reason: ReasonOther, Endpoint: a.instances[0].endpoint, Err: err}
	}
	body = locksteward.EscapeJSON(body)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type word struct {
		from *poster
		err  error
	}
	words := make(chan word)
	for _, p := range a.instances {
		go func() { words <- word{p, a.postTo(ctx, p, body)} }()
	}
	var failed []error
	var last *time.Timer
	for range a.instances {
		w := <-words
		if w.err != nil {
			failed = append(failed, w.err)
			continue
		}
		// The others get a little longer: one that hangs must not delay every notification.
		if last == nil {
			last = time.AfterFunc(stragglerWait, cancel)
			defer last.Stop()
		}
	}
	if last == nil {
		return nil, retryableFirst(failed)
	}
	return errors.Join(failed...), nil
}

func (a *alertmanager) postTo(ctx context.Context, p *poster, body []byte) error {
	got, err := p.post(ctx, body, a.login)
	if e, ok := errors.AsType[*DeliveryError](err); ok {
		e.Detail = p.redacted(string(got.body), a.secrets...) // which alert was refused, and why
		return e
	}
	if err == nil && isHTMLPage(got) {
		return p.unexpectedAnswer(got)
	}
	return err
}

// isHTMLPage reports whether the answer is for a person: that of a login, or of a proxy.
func isHTMLPage(a answer) bool {
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	return kind == "text/html" || bytes.HasPrefix(bytes.TrimSpace(a.body), []byte("<"))
}

// retryableFirst returns a retryable failure, if there is one.
func retryableFirst(failed []error) error {
	for _, err := range failed {
		if deliveryError(err).Retryable {
			return err
		}
	}
	return failed[0]
}

func (a *alertmanager) close() {
	for _, p := range a.instances {
		p.close()
	}
}
