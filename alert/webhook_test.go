package alert

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/locksteward/locksteward"
)

const secretPath = "/hook/s3cr3t-token?key=t0ps3cret"

// hook returns a webhook to a test server that answers with h.
func hook(t *testing.T, cfg Endpoint, h http.HandlerFunc) *webhook {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	cfg.URL = locksteward.Secret(srv.URL + secretPath)
	cfg.AllowPrivate = true
	return newHook(t, cfg)
}

func newHook(t *testing.T, cfg Endpoint) *webhook {
	t.Helper()
	out, err := openWebhook(cfg.withDefaults(), &files{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.close)
	return out.(*webhook)
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSendSpeaksStandardWebhooks(t *testing.T) {
	t.Parallel()
	keys := []string{"whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef01234567")), base64.StdEncoding.EncodeToString([]byte("abcdef0123456789abcdef0123456789"))}
	type seen struct {
		head http.Header
		body string
	}
	got := make(chan seen, 1)
	w := hook(t, Endpoint{SecretFiles: []string{file(t, keys[0]+"\n"), file(t, keys[1])}}, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r.Header, string(body)}
	})
	if err := w.send(t.Context(), newOutgoing("msg_1", []byte(`{"a":1}`))); err != nil {
		t.Fatal(err)
	}
	s := <-got
	var unix int64
	if _, err := fmt.Sscan(s.head.Get("webhook-timestamp"), &unix); err != nil || time.Since(time.Unix(unix, 0)).Abs() > time.Minute {
		t.Errorf("timestamp %q", s.head.Get("webhook-timestamp"))
	}
	first, _ := parseSecret(keys[0])
	second, _ := parseSecret(keys[1])
	if want := signature([][]byte{first, second}, "msg_1", time.Unix(unix, 0), []byte(s.body)); s.head.Get("webhook-signature") != want {
		t.Errorf("signature %q, want %q", s.head.Get("webhook-signature"), want)
	}
	if s.head.Get("webhook-id") != "msg_1" || s.head.Get("content-type") != "application/json" || s.body != `{"a":1}` {
		t.Errorf("got %+v", s)
	}
}

func TestUnsignedWithoutSecrets(t *testing.T) {
	t.Parallel()
	got := make(chan http.Header, 1)
	w := hook(t, Endpoint{}, func(_ http.ResponseWriter, r *http.Request) { got <- r.Header })
	if err := w.send(t.Context(), newOutgoing("msg_1", nil)); err != nil {
		t.Fatal(err)
	}
	if h := <-got; h.Get("webhook-signature") != "" {
		t.Errorf("signature %q", h.Get("webhook-signature"))
	}
}

// fault: 80
func TestAnswersAreClassified(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		head   string // Retry-After
		reason Reason
		retry  bool
		after  time.Duration
	}{
		{200, "", ReasonOK, false, 0},
		{204, "", ReasonOK, false, 0},
		{301, "", Reason3xx, true, 0},
		{307, "", Reason3xx, true, 0},
		{400, "", Reason4xx, false, 0},
		{401, "7", Reason4xx, true, 7 * time.Second},
		{403, "", Reason4xx, true, 0},
		{404, "", Reason4xx, true, 0},
		{408, "", Reason4xx, true, 0},
		{410, "", Reason4xx, false, 0},
		{413, "", Reason4xx, false, 0},
		{422, "7", Reason4xx, false, 0},
		{425, "", Reason4xx, true, 0},
		{429, "", Reason429, true, 0},
		{429, "7", Reason429, true, 7 * time.Second},
		{429, "-7", Reason429, true, 0},
		{429, "99999999999999999", Reason429, true, maxRetryAfter},
		{429, "soon", Reason429, true, 0},
		{500, "", Reason5xx, true, 0},
		{503, "120", Reason5xx, true, 2 * time.Minute},
		{599, "", Reason5xx, true, 0},
	} {
		t.Run(fmt.Sprint(c.status, c.head), func(t *testing.T) {
			t.Parallel()
			var hits atomic.Int64
			w := hook(t, Endpoint{}, func(w http.ResponseWriter, r *http.Request) {
				hits.Add(1)
				w.Header().Set("Location", "/elsewhere")
				w.Header().Set("Retry-After", c.head)
				w.WriteHeader(c.status)
			})
			err := w.send(t.Context(), newOutgoing("msg_1", []byte("{}")))
			if hits.Load() != 1 {
				t.Errorf("%d requests, want 1: a redirect was followed", hits.Load())
			}
			if c.reason == ReasonOK {
				if err != nil {
					t.Error(err)
				}
				return
			}
			e, ok := errors.AsType[*DeliveryError](err)
			if !ok || e.Reason != c.reason || e.Retryable != c.retry || e.RetryAfter != c.after || e.Status != c.status {
				t.Errorf("got %+v", e)
			}
			quiet(t, err)
		})
	}
}

// quiet fails when an error shows more of the URL than scheme and host.
func quiet(t *testing.T, err error) {
	t.Helper()
	text := fmt.Sprintf("%v|%+v|%#v", err, err, err.Error())
	for _, secret := range []string{"s3cr3t", "t0ps3cret", "pa55"} {
		if strings.Contains(text, secret) {
			t.Errorf("the error shows %q: %s", secret, text)
		}
	}
}

func TestRetryAfterDate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for at, want := range map[time.Time]time.Duration{
		now.Add(time.Minute): time.Minute, now.Add(-time.Minute): 0, now.Add(9 * time.Hour): maxRetryAfter,
	} {
		if got := retryAfter(at.Format(http.TimeFormat), now); got != want {
			t.Errorf("%s: got %s, want %s", at, got, want)
		}
	}
}

func TestTransportFaultsAreClassified(t *testing.T) {
	t.Parallel()
	gone := "http://" + nobody(t) + secretPath
	tlsServer := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	tlsServer.Config.ErrorLog = zap.NewStdLog(zap.NewNop())
	tlsServer.StartTLS()
	t.Cleanup(tlsServer.Close)
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(plain.Close)
	reset := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(reset.Close)
	// A listener that accepts and never answers.
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mute.Close() })
	for name, c := range map[string]struct {
		url  string
		want Reason
	}{
		"refused":    {gone, ReasonRefused},
		"unknown ca": {tlsServer.URL + secretPath, ReasonTLS},
		"no tls":     {strings.Replace(plain.URL, "http:", "https:", 1) + secretPath, ReasonTLS},
		"reset":      {reset.URL + secretPath, ReasonReset},
		"timeout":    {"http://" + mute.Addr().String() + secretPath, ReasonTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := 30 * time.Second // also of the dial and of the TLS handshake: it must end none of the others
			if c.want == ReasonTimeout {
				timeout = 300 * time.Millisecond
			}
			w := newHook(t, Endpoint{URL: locksteward.Secret(c.url), AllowPrivate: true, Timeout: timeout})
			err := w.send(t.Context(), newOutgoing("msg_1", []byte("{}")))
			e, ok := errors.AsType[*DeliveryError](err)
			if !ok || e.Reason != c.want || !e.Retryable {
				t.Fatalf("got %+v: %v", e, err)
			}
			quiet(t, err)
		})
	}
	dns := transportError("https://h", &url.Error{Op: "Post", URL: "https://h" + secretPath, Err: &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "h", IsNotFound: true}}})
	if dns.Reason != ReasonDNS || !dns.Retryable {
		t.Errorf("got %+v", dns)
	}
	quiet(t, dns)
	stopped := transportError("https://h", &url.Error{Op: "Post", URL: "https://h" + secretPath, Err: context.Canceled})
	if stopped.Reason != ReasonShutdown || stopped.Retryable {
		t.Errorf("got %+v", stopped)
	}
}

func TestPrivateAddressIsRefused(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(srv.Close)
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	// The name resolves to loopback: the guard judges addresses, not names.
	w := newHook(t, Endpoint{URL: locksteward.Secret("https://localhost:" + port + secretPath)})
	err := w.send(t.Context(), newOutgoing("msg_1", []byte("{}")))
	e, ok := errors.AsType[*DeliveryError](err)
	if !ok || e.Reason != ReasonBlocked || e.Retryable || hits.Load() != 0 || !strings.Contains(err.Error(), "allow_private") {
		t.Errorf("got %v, %d hits", err, hits.Load())
	}
	quiet(t, err)
}

func TestCAFileIsTrusted(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(srv.Close)
	ca := file(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})))
	w := newHook(t, Endpoint{URL: locksteward.Secret(srv.URL + secretPath), AllowPrivate: true, CAFile: ca})
	if err := w.send(t.Context(), newOutgoing("msg_1", []byte("{}"))); err != nil {
		t.Error(err)
	}
}

// A receiver that answers for ever costs neither memory nor more time than the
// timeout.
func TestEndlessAnswersAreCut(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	endless := hook(t, Endpoint{}, func(w http.ResponseWriter, r *http.Request) {
		chunk := []byte(strings.Repeat("x", 64<<10))
		for r.Context().Err() == nil {
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	if err := endless.send(t.Context(), newOutgoing("msg_1", []byte("{}"))); err != nil {
		t.Error(err)
	}
	if sent.Load() > 64<<20 {
		t.Errorf("took %d bytes", sent.Load())
	}
	// The head of the answer has to come within the timeout, the body does not.
	trickle := hook(t, Endpoint{Timeout: 2 * time.Second}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then is it seen that the client went
		w.WriteHeader(500)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	start := time.Now()
	err := trickle.send(t.Context(), newOutgoing("msg_1", []byte("{}")))
	if e, ok := errors.AsType[*DeliveryError](err); !ok || e.Reason != Reason5xx || time.Since(start) > 5*time.Second {
		t.Errorf("got %v after %s", err, time.Since(start))
	}
}

func TestEndToEndAndNothingSecretInTheLog(t *testing.T) {
	t.Parallel()
	key := "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef01234567"))
	got := make(chan Payload, 8)
	var n atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var p Payload
		if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
			t.Error(err)
		}
		got <- p
	}))
	t.Cleanup(srv.Close)
	core, logs := observer.New(zapcore.DebugLevel)
	urlFile := file(t, strings.Replace(srv.URL, "http://", "http://ann:pa55@", 1)+secretPath+"\n")
	var c counts
	b := &box{}
	s, err := New(zap.New(core), Config{Receivers: []Receiver{
		{Name: "ops", Lang: "zh", Kind: "webhook", Endpoint: Endpoint{URLFile: urlFile, AllowPrivate: true, SecretFiles: []string{file(t, key)}}},
	}}, b, c.hooks())
	if err != nil {
		t.Fatal(err)
	}
	d := &post{Sender: s, t: t, box: b}
	stop := d.run()
	d.notify(fire("lock:order:42", 1))
	p := <-got
	d.notify(resolve("lock:order:42", 2))
	q := <-got
	stop()
	if p.Type != "findings.firing" || p.Findings[0].Summary != "永不过期" || q.Type != "findings.resolved" || q.ID == p.ID || q.Seq <= p.Seq {
		t.Errorf("got %+v then %+v", p, q)
	}
	if c.get("ops retried http_5xx") != 1 || c.get("ops delivered ok") != 2 {
		t.Errorf("counted %v", c.all())
	}
	if logs.Len() == 0 {
		t.Error("nothing was logged")
	}
	for _, entry := range logs.All() {
		line := fmt.Sprint(entry.Message, entry.ContextMap())
		for _, secret := range []string{"s3cr3t", "t0ps3cret", "pa55", key} {
			if strings.Contains(line, secret) {
				t.Errorf("the log shows %q: %s", secret, line)
			}
		}
	}
}
