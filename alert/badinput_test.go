package alert

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// The canaries: each stands in one of the secrets of a receiver.
const (
	canary     = "cAnArYcAnArY"
	canaryKey  = "0123456789" + canary + "0123456789" // of 32 letters and digits
	canaryPath = "/hook/" + canary + "path?key=" + canary + "query&access_token=" + canary + "token"
)

// kindsAt are receivers of all kinds at one place, with canaries in all secrets.
func kindsAt(t *testing.T, base string, at Endpoint) []Receiver {
	t.Helper()
	whsec := "whsec_" + base64.StdEncoding.EncodeToString([]byte(canary+canary))
	scheme, host, _ := strings.Cut(base, "://")
	mail := at
	at.URLFile = file(t, scheme+"://ann:"+canary+"user@"+host+canaryPath)
	return []Receiver{
		{Name: "webhook", Kind: "webhook", Endpoint: signedBy(at, file(t, whsec))},
		{Name: "alertmanager", Kind: "alertmanager", Endpoint: at, Username: "ann", PasswordFile: file(t, canary+"password")},
		{Name: "alertmanager-token", Kind: "alertmanager", Endpoint: at, TokenFile: file(t, canary+"token")},
		{Name: "pagerduty", Kind: "pagerduty", Endpoint: at, RoutingKeyFile: file(t, canaryKey)},
		{Name: "slack", Kind: "slack", Endpoint: at},
		{Name: "dingtalk", Kind: "dingtalk", Endpoint: signedBy(at, file(t, "SEC"+canary))},
		{Name: "feishu", Kind: "feishu", Endpoint: signedBy(at, file(t, canary+"secret"))},
		{Name: "wecom", Kind: "wecom", Endpoint: at},
		{Name: "email", Kind: "email", Server: host, From: "a@example.com", To: []string{"b@example.com"}, Username: "ann", PasswordFile: file(t, canary+"smtp"), Endpoint: mail},
	}
}

// canaryForms are all forms in which a secret could be seen.
func canaryForms() []string {
	out := []string{canary, base64.StdEncoding.EncodeToString([]byte(canary + canary))}
	for _, s := range []string{"ann:" + canary + "password", "ann:" + canary + "user", "\x00ann\x00" + canary + "smtp", canary + "smtp"} {
		out = append(out, base64.StdEncoding.EncodeToString([]byte(s)))
	}
	return out
}

// mode is one way in which a receiver goes wrong.
type mode struct {
	name string
	// base is where it is.
	base string
	at   Endpoint
	want []Reason // of HTTP kinds, any of them
	mail []Reason // of mail
	// each is, by name of the receiver, in place of want what it must be.
	each map[string]Reason
}

// wants are the reasons that one receiver may have.
func (m mode) wants(r Receiver) []Reason {
	switch {
	case r.Kind == "email":
		return m.mail
	case m.each != nil:
		return []Reason{m.each[r.Name]} // a kind that is missing there has none
	default:
		return m.want
	}
}

// modes are servers that go wrong.
func modes(t *testing.T) []mode {
	t.Helper()
	private := Endpoint{AllowPrivate: true}
	serve := func(h http.HandlerFunc) string {
		srv := httptest.NewUnstartedServer(h)
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		srv.Start()
		t.Cleanup(srv.Close)
		return srv.URL
	}
	sealed := func(c tls.Certificate) string {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		srv.TLS = &tls.Config{Certificates: []tls.Certificate{c}}
		srv.StartTLS()
		t.Cleanup(srv.Close)
		return srv.URL
	}
	answers := func(status int, head map[string]string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			for k, v := range head {
				w.Header().Set(k, v)
			}
			w.WriteHeader(status)
			// The worst of services: it repeats all that it was sent.
			body, _ := io.ReadAll(r.Body)
			said := fmt.Sprintf("%s %v %s", r.URL, r.Header, body)
			_, _ = fmt.Fprintf(w, `{"errcode":310000,"errmsg":%q,"code":19021,"msg":%q,"status":"invalid event","message":%q,"errors":[%q]}`, said, said, said, said)
		}
	}
	self, _ := certificate(t, time.Hour)
	old, oldCA := certificate(t, -time.Hour)
	// A webhook is judged by its status alone; everybody else reads the answer.
	bodySaysNo := map[string]Reason{
		"webhook": ReasonOK, "alertmanager": ReasonRejected, "alertmanager-token": ReasonRejected, "pagerduty": ReasonRejected,
		"slack": ReasonRejected, "dingtalk": ReasonRejected, "feishu": ReasonRejected, "wecom": ReasonRejected,
	}
	mail := []Reason{ReasonOther, ReasonReset, ReasonTimeout} // an HTTP server is no mail server
	return []mode{
		{"refused", "http://" + nobody(t), private, []Reason{ReasonRefused}, []Reason{ReasonRefused}, nil},
		{"no such name", "https://no-such-host.invalid:8443", private, []Reason{ReasonDNS}, []Reason{ReasonDNS}, nil},
		{"private address", serve(answers(200, nil)), Endpoint{}, []Reason{ReasonBlocked}, []Reason{ReasonBlocked}, nil},
		{"3xx", serve(answers(302, map[string]string{"Location": "https://ann:" + canary + "user@elsewhere.example.com" + canaryPath})), private, []Reason{Reason3xx}, mail, nil},
		{"400", serve(answers(400, nil)), private, []Reason{Reason4xx}, mail, nil},
		{"401", serve(answers(401, nil)), private, []Reason{Reason4xx}, mail, nil},
		{"410", serve(answers(410, nil)), private, []Reason{Reason4xx}, mail, nil},
		{"429", serve(answers(429, nil)), private, []Reason{Reason429}, mail, nil},
		{"500", serve(answers(500, nil)), private, []Reason{Reason5xx}, mail, nil},
		{"body says no", serve(answers(200, map[string]string{"Content-Type": "text/html"})), private, nil, mail, bodySaysNo},
		{"reset", serve(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), private, []Reason{ReasonReset}, mail, nil},
		{"slow head", drip(t, "HTTP/1.1 200 OK\r\nX-Drip: "), private, []Reason{ReasonTimeout}, mail, nil},
		{"self-signed", sealed(self), private, []Reason{ReasonTLS}, mail, nil},
		{"expired", sealed(old), Endpoint{AllowPrivate: true, CAFile: oldCA}, []Reason{ReasonTLS}, mail, nil},
	}
}

// drip is a server that says so much at once, and then one byte after the other.
func drip(t *testing.T, first string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
					return
				}
				text := first
				for {
					if _, err := io.WriteString(c, text); err != nil {
						return
					}
					text = "x"
					select {
					case <-done:
						return
					case <-time.After(10 * time.Millisecond):
					}
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); close(done); group.Wait() })
	return "http://" + l.Addr().String()
}

// Whatever goes wrong at receivers of whatever kind: it is classified, it ends in
// time, and no secret is in a log line, an error, or what is kept of it.
// fault: 80
func TestNoSecretIsShownWhateverGoesWrong(t *testing.T) {
	t.Parallel()
	for _, m := range modes(t) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if !m.at.AllowPrivate {
				m.base = strings.Replace(m.base, "http://", "https://", 1) // else it needs allow_private
			}
			core, logs := observer.New(zapcore.DebugLevel)
			b := &box{}
			cfg := Config{
				Grouping: Grouping{By: []string{"fingerprint"}, Repeat: time.Hour}, FirstSweep: FirstSweepFire,
				Receivers: kindsAt(t, m.base, m.at),
			}
			// Who waits for what never comes need not wait for long.
			const short = 400 * time.Millisecond
			for i, r := range cfg.Receivers {
				cfg.Receivers[i].MaxAttempts = 1
				if wants := map[bool][]Reason{true: m.mail, false: m.want}[r.Kind == "email"]; slices.Contains(wants, ReasonTimeout) {
					cfg.Receivers[i].Timeout = short
				}
			}
			var reasons sync.Map
			s, err := New(zap.New(core), cfg, b, Hooks{Delivered: func(receiver, _, reason string) { reasons.LoadOrStore(receiver, Reason(reason)) }})
			if err != nil {
				t.Fatal(err)
			}
			d := &post{Sender: s, t: t, box: b}
			stop := d.run()
			d.notify(fire("lock:order:1", 1))
			ended := func() bool {
				for _, r := range cfg.Receivers {
					if states := b.states(r.Name); states["dead"]+states["delivered"] != 1 {
						return false
					}
				}
				return true
			}
			for end := time.Now().Add(20 * time.Second); !ended(); runtime.Gosched() {
				if time.Now().After(end) {
					t.Fatalf("not over: %v", logs.All())
				}
				<-time.After(5 * time.Millisecond)
			}
			stop()
			all := []string{}
			for _, r := range cfg.Receivers {
				want := m.wants(r)
				if got, _ := reasons.Load(r.Name); !slices.Contains(want, got.(Reason)) {
					t.Errorf("%s: %v, want any of %v", r.Name, got, want)
				}
				// What a test says is shown to anyone who asks for it.
				if err := s.Test(t.Context(), r.Name, "ana"); err != nil {
					e, _ := errors.AsType[*DeliveryError](err)
					all = append(all, fmt.Sprintf("%v %+v %#v %#v", err, err, err.Error(), e))
				}
				all = append(all, fmt.Sprintf("%v %+v", r, r))
			}
			for _, line := range logs.All() {
				all = append(all, fmt.Sprint(line.Message, line.ContextMap()))
			}
			for n := range b.rows {
				all = append(all, fmt.Sprint(b.why(n)))
			}
			if logs.Len() < len(cfg.Receivers)-1 || len(b.rows) != len(cfg.Receivers) {
				t.Errorf("%d lines, %d messages: the test shows nothing", logs.Len(), len(b.rows))
			}
			for _, text := range all {
				for _, secret := range canaryForms() {
					if strings.Contains(text, secret) {
						t.Errorf("%q is shown: %s", secret, text)
					}
				}
			}
		})
	}
}

// A receiver that answers with a gigabyte costs 64 KiB of it. This test measures, so
// it runs alone.
// fault: 80
func TestAGigabyteOfAnswerCostsLittle(t *testing.T) {
	const size = 1 << 30
	chunk := make([]byte, 64<<10)
	var sent atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for left := size; left > 0; left -= len(chunk) {
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	defer srv.Close()
	for _, r := range kindsAt(t, srv.URL, Endpoint{AllowPrivate: true}) {
		if r.Kind == "email" {
			continue // TestEmailServersThatDoNotWork: endless
		}
		out, err := r.withDefaults().opened()
		if err != nil {
			t.Fatal(err)
		}
		m, err := writerOf(r.Name).newsOf(fire("k", 1))
		if err != nil {
			t.Fatal(err)
		}
		_ = out.send(t.Context(), newOutgoing(m.ID, m.Body)) // connections and what is made once
		sent.Store(0)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err = out.send(t.Context(), newOutgoing(m.ID, m.Body))
		runtime.ReadMemStats(&after)
		grown := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %d KiB allocated, the server could send %d KiB of %d: %v", r.Name, grown>>10, sent.Load()>>10, size>>10, err)
		if grown > 1<<20 || sent.Load() > 64<<20 {
			t.Errorf("%s: %d bytes allocated, %d sent", r.Name, grown, sent.Load())
		}
		// The status is enough for a webhook; who answers with a body must answer with
		// one that can be read.
		if r.Kind == "webhook" || r.Kind == "alertmanager" {
			if err != nil {
				t.Errorf("%s: %v", r.Name, err)
			}
		} else if e, ok := errors.AsType[*DeliveryError](err); !ok || e.Reason != ReasonRejected || !e.Retryable {
			t.Errorf("%s: %v", r.Name, err)
		}
		out.close()
	}
}

// A body that drips is read until the time is over: the status is enough for a
// webhook, and no verdict for the others.
// fault: 80
func TestADrippingBodyEndsInTime(t *testing.T) {
	t.Parallel()
	base := drip(t, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
	for _, r := range kindsAt(t, base, Endpoint{AllowPrivate: true, Timeout: 2 * time.Second}) {
		if r.Kind == "email" {
			continue
		}
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			out, err := r.withDefaults().opened()
			if err != nil {
				t.Fatal(err)
			}
			defer out.close()
			m, err := writerOf(r.Name).newsOf(fire("k", 1))
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			err = out.send(t.Context(), newOutgoing(m.ID, m.Body))
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("took %s", took)
			}
			e, _ := errors.AsType[*DeliveryError](err)
			if judgesBody := r.Kind != "webhook" && r.Kind != "alertmanager"; (e != nil) != judgesBody || e != nil && (e.Reason != ReasonRejected || !e.Retryable) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// What is wrong with a file of a secret is said, and the secret is not.
func TestBadSecretsAreNamedAndNotShown(t *testing.T) {
	t.Parallel()
	bad := file(t, canary)
	empty := file(t, " \n")
	good := Endpoint{URL: "https://h"}
	cfg := Config{Receivers: []Receiver{
		{Name: "a", Kind: "webhook", Endpoint: signedBy(good, bad, empty, "/nowhere")},
		{Name: "b", Kind: "webhook", Endpoint: Endpoint{URLFile: bad}},
		{Name: "c", Kind: "pagerduty", RoutingKeyFile: bad},
		{Name: "d", Kind: "alertmanager", Endpoint: good, TokenFile: empty},
		{Name: "e", Kind: "email", Server: "h", From: "a@b", To: []string{"c@d"}, Username: "u", PasswordFile: empty},
		{Name: "f", Kind: "dingtalk", Endpoint: signedBy(good, empty)},
		{Name: "g", Kind: "webhook", Endpoint: Endpoint{URLFile: file(t, "http://ann:"+canary+"@h/"+canary)}},
	}}
	_, err := New(zap.NewNop(), cfg, &box{}, Hooks{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"receivers[0].secret_files[0]:", "openssl rand", "receivers[0].secret_files[1]:", "is empty", "receivers[0].secret_files[2]:",
		"receivers[1].url_file: is not a URL", "receivers[2].routing_key_file:", "receivers[3].token_file:",
		"receivers[4].password_file:", "receivers[5].secret_files[0]:", "receivers[6].url_file: http://h must be https",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), canary) {
		t.Errorf("a secret is shown:\n%v", err)
	}
}

// A receiver that says 410 to three messages in a row is left alone; anyone who has it
// again says so with a reload or a test.
func TestAReceiverThatIsGoneIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Bool
		f := &fake{answer: func(_ int, p Payload) error {
			if back.Load() {
				return nil
			}
			return &DeliveryError{Reason: Reason4xx, Status: http.StatusGone, Endpoint: "https://h"}
		}}
		d := postOf(t, Hooks{}, f)
		stop := d.run()
		d.notify(fire("first", 1))
		time.Sleep(time.Minute)
		if s := d.Receivers()[0]; s.Gone || s.CircuitOpen {
			t.Errorf("after one message: %+v", s)
		}
		for n := range uint64(50) {
			d.notify(fire(fmt.Sprint("k", n), n+2))
			synctest.Wait()
		}
		time.Sleep(30 * time.Minute)
		if n, s := len(f.seen()), d.Receivers()[0]; n < tripAfter || n >= tripAfter+maxInFlight || !s.Gone || !s.CircuitOpen {
			t.Errorf("%d attempts, %+v", n, s)
		}
		tried := len(f.seen())
		time.Sleep(2 * time.Hour)
		if n := len(f.seen()) - tried; n < 2 || n > 3 {
			t.Errorf("tried %d times in two hours", n)
		}
		if err := d.Test(t.Context(), "a", "ana"); err == nil || !d.Receivers()[0].Gone {
			t.Errorf("a test that does not arrive: %v, %+v", err, d.Receivers()[0])
		}
		dead := d.box.states("a")["dead"]
		back.Store(true)
		if err := d.Test(t.Context(), "a", "ana"); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if s, state := d.Receivers()[0], d.box.states("a"); s.Gone || s.CircuitOpen || state["waiting"] != 0 || state["delivered"] != 51-dead {
			t.Errorf("after the test: %+v, %v", s, state)
		}
		back.Store(false)
		for n := range uint64(5) {
			d.notify(fire(fmt.Sprint("l", n), n+100))
			time.Sleep(time.Second)
		}
		well := &fake{}
		d.turn(Endpoint{}, well)
		time.Sleep(time.Second)
		if s := d.Receivers()[0]; s.Gone || len(well.seen()) == 0 {
			t.Errorf("after the reload: %+v, %d messages", s, len(well.seen()))
		}
		stop()
	})
}

// 429 without a word about how long is backed off from as any other failure.
func TestTooManyWithoutRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(n int, _ Payload) error {
			if n < 6 {
				return &DeliveryError{Reason: Reason429, Status: 429, Retryable: true, Endpoint: "https://h"}
			}
			return nil
		}}
		d := postOf(t, Hooks{}, f)
		stop := d.run()
		d.notify(fire("k", 1))
		time.Sleep(10 * time.Minute)
		stop()
		got := f.seen()
		if len(got) != 6 {
			t.Fatalf("%d attempts", len(got))
		}
		for i, a := range got[1:] {
			if wait := a.at.Sub(got[i].at); wait <= 0 || wait > backoffBase<<i+emptyPause {
				t.Errorf("attempt %d after %s", i+2, wait)
			}
		}
	})
}
