package alert

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/credfile"
	"github.com/locksteward/locksteward/internal/testkit/testcert"
)

// rotating is a setting that names a file, and a service that asks for what it holds.
type rotating struct {
	old, next string
	// half is a part of next that can be distinguished from a whole one; "": none can.
	half string
	to   func(e Endpoint, file string) Receiver
	// proves says whether a request carries a secret.
	proves func(r *http.Request, body []byte, secret string) bool
	// thanks is what the service answers what it takes with.
	thanks string
}

func signingSecret(of string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(of, 24)))
}

func leadsTo(r *http.Request, _ []byte, secret string) bool {
	return strings.HasSuffix(secret, r.URL.RequestURI())
}

// rotations are all settings with a secret in a file, of receivers over HTTP. at is
// where the service is.
func rotations(at string) map[string]rotating {
	all := map[string]rotating{
		"webhook: secret_files[0]": {
			old: signingSecret("o"), next: signingSecret("n"), half: "whsec_bm5u",
			to: func(e Endpoint, file string) Receiver {
				return Receiver{Kind: "webhook", Endpoint: signedBy(e, file)}
			},
			proves: func(r *http.Request, body []byte, secret string) bool {
				wh, err := standard.NewWebhook(secret)
				return err == nil && wh.Verify(body, r.Header) == nil
			},
		},
		"alertmanager: password_file": {
			old: "old-password", next: "next-password",
			to: func(e Endpoint, file string) Receiver {
				return Receiver{Kind: "alertmanager", Endpoint: e, Username: "locks", PasswordFile: file}
			},
			proves: func(r *http.Request, _ []byte, secret string) bool {
				user, password, ok := r.BasicAuth()
				return ok && user == "locks" && password == secret
			},
		},
		"alertmanager: token_file": {
			old: "old-token", next: "next-token",
			to: func(e Endpoint, file string) Receiver {
				return Receiver{Kind: "alertmanager", Endpoint: e, TokenFile: file}
			},
			proves: func(r *http.Request, _ []byte, secret string) bool {
				return r.Header.Get("Authorization") == "Bearer "+secret
			},
		},
		"pagerduty: routing_key_file": {
			old: strings.Repeat("o", 32), next: strings.Repeat("n", 32), half: strings.Repeat("n", 20),
			to: func(e Endpoint, file string) Receiver {
				return Receiver{Kind: "pagerduty", Endpoint: e, RoutingKeyFile: file}
			},
			proves: func(_ *http.Request, body []byte, secret string) bool {
				var event struct {
					Key string `json:"routing_key"`
				}
				return json.Unmarshal(body, &event) == nil && event.Key == secret
			},
			thanks: `{"status":"success"}`,
		},
		"dingtalk: secret_files[0]": {
			old: "SECold", next: "SECnext",
			to: func(e Endpoint, file string) Receiver {
				return Receiver{Kind: "dingtalk", Endpoint: signedBy(e, file)}
			},
			proves: func(r *http.Request, _ []byte, secret string) bool {
				ms := r.URL.Query().Get("timestamp")
				return r.URL.Query().Get("sign") == hmacOf(secret, ms+"\n"+secret)
			},
			thanks: `{"errcode":0}`,
		},
		"feishu: secret_files[0]": {
			old: "old-secret", next: "next-secret",
			to: func(e Endpoint, file string) Receiver {
				return Receiver{Kind: "feishu", Endpoint: signedBy(e, file)}
			},
			proves: func(_ *http.Request, body []byte, secret string) bool {
				var m struct{ Timestamp, Sign string }
				return json.Unmarshal(body, &m) == nil && m.Sign == hmacOf(m.Timestamp+"\n"+secret, "")
			},
			thanks: `{"code":0}`,
		},
	}
	for _, kind := range []string{"webhook", "alertmanager", "slack", "wecom"} {
		c := rotating{
			old: at + "/hooks/old-token", next: at + "/hooks/next-token", half: "http", proves: leadsTo,
			to: func(e Endpoint, file string) Receiver {
				e.URL, e.URLFile = "", file
				return Receiver{Kind: kind, Endpoint: e}
			},
			thanks: map[string]string{"slack": "ok", "wecom": `{"errcode":0}`}[kind],
		}
		if kind == "alertmanager" {
			c.proves = func(r *http.Request, body []byte, secret string) bool {
				u, err := url.Parse(secret)
				return err == nil && u.JoinPath(alertsPath).Path == r.URL.Path
			}
		}
		all[kind+": url_file"] = c
	}
	return all
}

// TestSecretsOfReceiversRotate: for each setting that names a file with a secret, what
// is put in its place is used by the next message, with no reload; until then, and
// while the file cannot be used, what it held before is.
func TestSecretsOfReceiversRotate(t *testing.T) {
	t.Parallel()
	for name := range rotations("") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c rotating
			var valid atomic.Pointer[string]
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				if !c.proves(r, body, *valid.Load()) {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				_, _ = io.WriteString(w, c.thanks)
			}))
			t.Cleanup(srv.Close)
			c = rotations(srv.URL)[name]
			path := filepath.Join(t.TempDir(), "secret")
			testcert.Put(t, path, []byte(c.old+"\n"))
			r := c.to(Endpoint{URL: locksteward.Secret(srv.URL), AllowPrivate: true}, path)
			r.Name, r.Lang = "ops", "en"
			if err := (Config{Receivers: []Receiver{r}}).Validate(); err != nil {
				t.Fatal(err)
			}
			out, err := r.withDefaults().opened()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(out.close)
			_, key, _ := strings.Cut(name, ": ")
			r2 := follows{t, out, key, []string{c.old, c.next}}
			send := func(secret string) error {
				valid.Store(&secret)
				return r2.send()
			}
			if err := send(c.old); err != nil {
				t.Fatal(err)
			}
			broken := map[string]string{"empty": "", "blank": " \n"}
			if c.half != "" {
				broken["half-written"] = c.half
			}
			for why, text := range broken {
				testcert.Put(t, path, []byte(text))
				r2.refused(why)
				if err := send(c.old); err != nil {
					t.Errorf("%s: the one before is not in use: %v", why, err)
				}
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			r2.refused("gone")
			if err := send(c.old); err != nil {
				t.Errorf("gone: the one before is not in use: %v", err)
			}
			if err := send(c.next); err == nil || !deliveryError(err).Retryable {
				t.Errorf("the service asks for another: %v", err)
			}
			testcert.Put(t, path, []byte(c.next+"\n"))
			r2.used()
			if err := send(c.next); err != nil {
				t.Errorf("the new one is not in use: %v", err)
			}
			if err := send(c.old); err == nil {
				t.Error("the old one is in use")
			}
		})
	}
}

// follows is a transport with one file.
type follows struct {
	t       *testing.T
	out     transport
	key     string
	secrets []string
}

func (f follows) send() error {
	f.t.Helper()
	p := shownSamples("en")["firing"]
	err := f.out.send(f.t.Context(), newOutgoing(p.ID, encoded(f.t, p)))
	f.hides(err)
	return err
}

func (f follows) hides(err error) {
	f.t.Helper()
	for _, s := range f.secrets {
		if err != nil && strings.Contains(err.Error(), s) {
			f.t.Errorf("%q is shown: %v", s, err)
		}
	}
}

// state looks at the file of the key.
func (f follows) state() credfile.State {
	f.t.Helper()
	for _, s := range f.out.(fileBacked).states(true) {
		if s.Key == f.key {
			return s.State
		}
	}
	f.t.Fatalf("no file %s in %+v", f.key, f.out.(fileBacked).states(true))
	return credfile.State{}
}

func (f follows) refused(why string) {
	f.t.Helper()
	s := f.state()
	if s.Refused == nil || s.Generation != 1 {
		f.t.Errorf("%s: %+v", why, s)
	}
	f.hides(s.Refused)
}

func (f follows) used() {
	f.t.Helper()
	if s := f.state(); s.Refused != nil || s.Generation != 2 {
		f.t.Errorf("%+v", s)
	}
}

// TestAuthoritiesOfReceiversRotate: the receiver shows a certificate of another
// authority, and is sent again as soon as the file has it. Half a bundle changes
// nothing.
func TestAuthoritiesOfReceiversRotate(t *testing.T) {
	t.Parallel()
	one, two := testcert.NewCA(t, "one"), testcert.NewCA(t, "two")
	shows := func(ca *testcert.CA) *tls.Certificate {
		p := ca.Issue(t, testcert.Leaf{Name: "receiver"})
		cert, err := tls.X509KeyPair(p.Cert, p.Key)
		if err != nil {
			t.Fatal(err)
		}
		return &cert
	}
	var cert atomic.Pointer[tls.Certificate]
	cert.Store(shows(one))
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{*cert.Load()}, NextProtos: []string{"http/1.1"}}, nil
	}}
	srv.Config.SetKeepAlivesEnabled(false) // each message has a connection of its own
	srv.StartTLS()
	t.Cleanup(srv.Close)
	path := filepath.Join(t.TempDir(), "ca.pem")
	testcert.Put(t, path, one.PEM)
	r := Receiver{Name: "ops", Kind: "webhook", Endpoint: Endpoint{URL: locksteward.Secret(srv.URL), AllowPrivate: true, CAFile: path}}
	out, err := r.withDefaults().opened()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.close)
	f := follows{t: t, out: out, key: "ca_file"}
	if err := f.send(); err != nil {
		t.Fatal(err)
	}
	if end := f.state().Expires; time.Until(end) < time.Hour {
		t.Errorf("it ends %s", end)
	}
	cert.Store(shows(two))
	if err := f.send(); err == nil || deliveryError(err).Reason != ReasonTLS {
		t.Errorf("an authority that is not trusted: %v", err)
	}
	both := append(append([]byte{}, one.PEM...), two.PEM...)
	testcert.Put(t, path, both[:len(both)-30])
	f.refused("half a bundle")
	testcert.Put(t, path, both)
	f.used()
	if err := f.send(); err != nil {
		t.Error(err)
	}
	cert.Store(shows(one))
	if err := f.send(); err != nil {
		t.Error(err)
	}
}

var errNo = errors.New("no")

func contents(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestMailServersCredentialsRotate: the password and the authority of an SMTP server,
// and who has a message already is not sent again for that.
func TestMailServersCredentialsRotate(t *testing.T) {
	t.Parallel()
	s := newMailServer(t, mailOptions{login: true})
	asks := func(password string) {
		s.says(func() {
			s.auth = func(_, got string) error {
				if got != password {
					return errNo
				}
				return nil
			}
		})
	}
	dir := t.TempDir()
	pw, ca := filepath.Join(dir, "pw"), filepath.Join(dir, "ca.pem")
	testcert.Put(t, pw, []byte("old-pa55word\n"))
	testcert.Put(t, ca, contents(t, s.ca))
	r := Receiver{
		Name: "mail", Kind: "email", Server: s.addr, From: "locks@example.com", To: []string{"ops@example.com", "ana@example.com"}, Username: "locks", PasswordFile: pw,
		Endpoint: Endpoint{AllowPrivate: true, CAFile: ca},
	}
	out, err := r.withDefaults().opened()
	if err != nil {
		t.Fatal(err)
	}
	password := follows{t, out, "password_file", []string{"old-pa55word", "next-pa55word"}}
	authority := follows{t: t, out: out, key: "ca_file"}
	asks("old-pa55word")
	// One of the two addressees cannot be reached at first.
	s.says(func() {
		s.rcpt = func(to string) error {
			if to == "ana@example.com" {
				return errNo
			}
			return nil
		}
	})
	if err := password.send(); err == nil {
		t.Error("one addressee has nothing, and it is no failure")
	}
	s.says(func() { s.rcpt = nil })

	testcert.Put(t, pw, nil)
	password.refused("empty")
	asks("next-pa55word")
	if err := password.send(); err == nil || !deliveryError(err).Retryable {
		t.Errorf("the server wants another password: %v", err)
	}
	next, nextCA := certificate(t, time.Hour)
	s.cert.Store(&next)
	testcert.Put(t, pw, []byte("next-pa55word\n"))
	password.used()
	if err := password.send(); err == nil || deliveryError(err).Reason != ReasonTLS {
		t.Errorf("an authority that is not trusted: %v", err)
	}
	testcert.Put(t, ca, contents(t, nextCA)[:200])
	authority.refused("half of it")
	testcert.Put(t, ca, contents(t, nextCA))
	authority.used()
	if err := password.send(); err != nil {
		t.Error(err)
	}
	if got := s.got(); len(got) != 2 || strings.Join(got[0].to, " ") != "ops@example.com" || strings.Join(got[1].to, " ") != "ana@example.com" {
		t.Errorf("who was sent: %+v", got)
	}
}

// TestWhatWaitsIsTriedWithANewSecret: a receiver that refused everything for an hour
// is sent at once when a file of it is replaced, and not when its wait is over.
func TestWhatWaitsIsTriedWithANewSecret(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var well atomic.Bool
		f := &fileFake{fake: fake{answer: func(int, Payload) error {
			if well.Load() {
				return nil
			}
			return failing(Reason4xx)
		}}}
		d := postOf(t, Hooks{}, f)
		stop := d.run()
		d.notify(fire("k", 1), fire("l", 2), fire("m", 3))
		time.Sleep(time.Hour)
		well.Store(true)
		for range 3 { // nothing new: nothing is hurried
			if got := d.Files(); len(got) != 1 || got[0].Key != "receivers.a.url_file" {
				t.Errorf("got %+v", got)
			}
		}
		tried := len(f.seen())
		synctest.Wait()
		if n := d.box.states("a")["waiting"]; n != 3 || len(f.seen()) != tried {
			t.Errorf("%d wait", n)
		}
		f.gen.Add(1)
		began := time.Now()
		d.Files()
		synctest.Wait()
		if n := d.box.states("a")["delivered"]; n != 3 || time.Since(began) > time.Second {
			t.Errorf("%d delivered after %s", n, time.Since(began))
		}
		stop()
	})
}

// fileFake is a transport with a file whose state a test sets.
type fileFake struct {
	fake
	gen, known atomic.Uint64
}

func (f *fileFake) states(bool) []credfile.File {
	return []credfile.File{{Key: "url_file", State: credfile.State{Generation: f.gen.Load()}}}
}

func (f *fileFake) renewed(states []credfile.File) bool {
	return f.known.Swap(states[0].Generation) != states[0].Generation
}
