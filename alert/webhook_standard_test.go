package alert

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
)

// came is a request as a receiver got it.
type came struct {
	head http.Header
	body []byte
}

// toldOverWebhook delivers real messages through the whole sender to a webhook that signs with
// the given secrets, and returns what came.
func toldOverWebhook(t *testing.T, secrets ...string) []came {
	t.Helper()
	got := make(chan came, 8)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- came{r.Header, body}
	}))
	t.Cleanup(srv.Close)
	var files []string
	for _, s := range secrets {
		files = append(files, file(t, s+"\n"))
	}
	b := &box{}
	s, err := New(zap.NewNop(), Config{
		Grouping: Grouping{By: []string{"fingerprint"}, Repeat: time.Hour}, FirstSweep: FirstSweepFire, ConsoleURL: "https://locks.example.com",
		Receivers: []Receiver{{
			Name: "ops", Kind: "webhook", Endpoint: Endpoint{URL: locksteward.Secret(srv.URL), AllowPrivate: true, SecretFiles: files},
		}},
	}, b, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	d := &post{Sender: s, t: t, box: b}
	stop := d.run()
	defer stop()
	hostile := fire("lock:\xff\n锁\"<b>", 2)
	hostile.Finding.Class = "hostile"
	d.notify(fire("lock:order:42", 1), hostile)
	b.put(d.Release(glass())...)
	d.Wake()
	out := []came{<-got, <-got, <-got}
	d.notify(resolve("lock:order:42", 3))
	out = append(out, <-got)
	if err := d.Test(t.Context(), "ops", "ana"); err != nil {
		t.Error(err)
	}
	return append(out, <-got)
}

// The standard's own library takes what we sign, with each of the secrets, and takes
// nothing else.
func TestTheStandardsLibraryVerifies(t *testing.T) {
	t.Parallel()
	old := "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef01234567"))
	next := "whsec_" + base64.StdEncoding.EncodeToString([]byte("abcdef0123456789abcdef0123456789"))
	stranger := "whsec_" + base64.StdEncoding.EncodeToString([]byte("strangerstrangerstranger"))
	for _, c := range toldOverWebhook(t, old, next) {
		for _, secret := range []string{old, next} {
			wh, err := standard.NewWebhook(secret)
			if err != nil {
				t.Fatal(err)
			}
			if err := wh.Verify(c.body, c.head); err != nil {
				t.Errorf("%v: %s", err, c.body)
			}
			for name, forged := range map[string]func(h http.Header, body []byte) []byte{
				"body": func(_ http.Header, body []byte) []byte { return append(body[:len(body)-1:len(body)-1], ' ', '}') },
				"id":   func(h http.Header, body []byte) []byte { h.Set("webhook-id", "msg_other"); return body },
				"timestamp": func(h http.Header, body []byte) []byte {
					h.Set("webhook-timestamp", later(t, h, time.Second))
					return body
				},
				"none": func(h http.Header, body []byte) []byte {
					h.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(make([]byte, 32)))
					return body
				},
			} {
				h := c.head.Clone()
				if err := wh.Verify(forged(h, c.body), h); !errors.Is(err, standard.ErrNoMatchingSignature) {
					t.Errorf("another %s: %v", name, err)
				}
			}
			stale := c.head.Clone()
			stale.Set("webhook-timestamp", later(t, stale, -6*time.Minute))
			if err := wh.Verify(c.body, stale); !errors.Is(err, standard.ErrMessageTooOld) {
				t.Errorf("an old one: %v", err)
			}
		}
		wh, err := standard.NewWebhook(stranger)
		if err != nil {
			t.Fatal(err)
		}
		if err := wh.Verify(c.body, c.head); !errors.Is(err, standard.ErrNoMatchingSignature) {
			t.Errorf("with another secret: %v", err)
		}
		// The id in the body is the one that was signed, and the form is the standard's.
		var p Payload
		if err := json.Unmarshal(c.body, &p); err != nil || p.ID != c.head.Get("webhook-id") || p.Type == "" || p.Timestamp.IsZero() {
			t.Errorf("%v: %s", err, c.body)
		}
		if got := c.head.Get("content-type"); got != "application/json" {
			t.Errorf("content type %q", got)
		}
	}
}

// later is the timestamp of a message some time later.
func later(t *testing.T, h http.Header, by time.Duration) string {
	t.Helper()
	unix, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.FormatInt(unix+int64(by/time.Second), 10)
}

// What comes over the wire fits the schema, and holds no token.
func TestTheSchemaFitsWhatIsSent(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join("..", "docs", "webhook.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := json.Unmarshal(raw, &s.root); err != nil {
		t.Fatal(err)
	}
	types := map[string]bool{}
	for _, c := range toldOverWebhook(t) {
		var v any
		if err := json.Unmarshal(c.body, &v); err != nil {
			t.Fatal(err)
		}
		for _, problem := range s.check(s.root, v, "$") {
			t.Errorf("%s in %s", problem, c.body)
		}
		types[TypeOf(c.body)] = true
		if strings.Contains(string(c.body), "hmac-sha256") || c.head.Get("webhook-signature") != "" {
			t.Errorf("got %v %s", c.head, c.body)
		}
	}
	for _, want := range []string{"findings.firing", "findings.resolved", "release.break_glass", "test"} {
		if !types[want] {
			t.Errorf("no %s came: %v", want, types)
		}
	}
}
