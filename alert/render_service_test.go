package alert

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

// service is a fake of a chat service: it checks what it gets as the service would,
// and answers as the service does.
type service struct {
	url    string
	got    chan []byte
	answer func(w http.ResponseWriter) // nil: the service's own
}

// robotSecret is the signing secret of all fakes, robotToken the token in their URL.
const (
	robotSecret = "SEC0123456789abcdef"
	robotToken  = "t0ken-9f8e7d6c5b4a"
)

// startService starts the fake of a kind.
func startService(t *testing.T, kind string) *service {
	t.Helper()
	s := &service{got: make(chan []byte, 1)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if s.answer != nil {
			s.answer(w)
			return
		}
		reply := services[kind].judge(r, body)
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = io.WriteString(w, reply)
		s.got <- body
	}))
	t.Cleanup(srv.Close)
	s.url = srv.URL + services[kind].path
	return s
}

var services = map[string]struct {
	path  string
	judge func(r *http.Request, body []byte) string
}{
	"slack":    {"/services/T0/B0/" + robotToken, judgeSlack},
	"dingtalk": {"/robot/send?access_token=" + robotToken, judgeDingTalk},
	"feishu":   {"/open-apis/bot/v2/hook/" + robotToken, judgeFeishu},
	"wecom":    {"/cgi-bin/webhook/send?key=" + robotToken, judgeWeCom},
}

var peopleKinds = []string{"slack", "dingtalk", "feishu", "wecom"}

// hmacOf is an HMAC by its definition in RFC 2104, not by the code under test.
func hmacOf(key, message string) string {
	k := []byte(key)
	if len(k) > sha256.BlockSize {
		sum := sha256.Sum256(k)
		k = sum[:]
	}
	pad := func(with byte) []byte {
		out := bytes.Repeat([]byte{with}, sha256.BlockSize)
		for i, b := range k {
			out[i] ^= b
		}
		return out
	}
	inner := sha256.Sum256(append(pad(0x36), message...))
	outer := sha256.Sum256(append(pad(0x5c), inner[:]...))
	return base64.StdEncoding.EncodeToString(outer[:])
}

func TestTheTestsOwnHMAC(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", "k", strings.Repeat("k", 100)} {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte("message"))
		if hmacOf(key, "message") != base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
			t.Errorf("key of %d bytes: another value", len(key))
		}
	}
}

func fresh(text string, unit time.Duration) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && time.Since(time.Unix(0, n*int64(unit))).Abs() < time.Minute
}

func judgeSlack(r *http.Request, body []byte) string {
	var m struct {
		Text        string
		Blocks      []any
		Attachments []struct {
			Color  string
			Blocks []any
		}
	}
	if json.Unmarshal(body, &m) != nil || m.Text == "" || len(m.Blocks) == 0 {
		return "invalid_payload"
	}
	return "ok"
}

func judgeDingTalk(r *http.Request, body []byte) string {
	q := r.URL.Query()
	at := q.Get("timestamp")
	if q.Get("access_token") != robotToken {
		return `{"errcode":300005,"errmsg":"token is not exist"}`
	}
	if !fresh(at, time.Millisecond) || q.Get("sign") != hmacOf(robotSecret, at+"\n"+robotSecret) {
		return `{"errcode":310000,"errmsg":"sign not match"}`
	}
	var m struct {
		Msgtype  string
		Markdown struct{ Title, Text string }
	}
	switch {
	case len(body) > 20_000:
		return `{"errcode":460101,"errmsg":"body too large"}`
	case json.Unmarshal(body, &m) != nil || m.Msgtype != "markdown" || m.Markdown.Title == "" || m.Markdown.Text == "":
		return `{"errcode":40035,"errmsg":"param error"}`
	}
	return `{"errcode":0,"errmsg":"ok"}`
}

func judgeFeishu(r *http.Request, body []byte) string {
	var m struct {
		Timestamp, Sign string
		MsgType         string `json:"msg_type"`
		Card            map[string]any
	}
	switch {
	case len(body) > 20_000, json.Unmarshal(body, &m) != nil, m.MsgType != "interactive", m.Card["elements"] == nil:
		return `{"code":9499,"msg":"Bad Request","data":{}}`
	case !fresh(m.Timestamp, time.Second), m.Sign != hmacOf(m.Timestamp+"\n"+robotSecret, ""):
		return `{"code":19021,"data":{},"msg":"sign match fail or timestamp is not within one hour from current time"}`
	}
	return `{"StatusCode":0,"StatusMessage":"success","code":0,"data":{},"msg":"success"}`
}

func judgeWeCom(r *http.Request, body []byte) string {
	var m struct {
		Msgtype  string
		Markdown struct{ Content string }
	}
	switch {
	case r.URL.Query().Get("key") != robotToken:
		return `{"errcode":93000,"errmsg":"invalid webhook url"}`
	case json.Unmarshal(body, &m) != nil || m.Msgtype != "markdown" || m.Markdown.Content == "" || len(m.Markdown.Content) > 4096:
		return `{"errcode":40058,"errmsg":"markdown.content exceed max length 4096"}`
	}
	return `{"errcode":0,"errmsg":"ok"}`
}

// receiver configures a kind for a service.
func receiver(t *testing.T, kind, at, lang string) Receiver {
	t.Helper()
	e := Endpoint{URL: locksteward.Secret(at), AllowPrivate: true}
	r := Receiver{Name: "ops", Kind: kind, Lang: lang, Endpoint: e}
	switch kind {
	case "slack":
		r.Mention = []string{"here", "S0TEAM"}
	case "dingtalk":
		r.SecretFiles, r.Mention = []string{file(t, robotSecret+"\n")}, []string{"13800000000"}
	case "feishu":
		r.SecretFiles, r.Mention = []string{file(t, robotSecret)}, []string{"all", "ou_1"}
	case "wecom":
		r.Mention = []string{"ana", "ben"}
	}
	return r
}

func openKind(t *testing.T, r Receiver) transport {
	t.Helper()
	if err := (Config{Receivers: []Receiver{r}}).Validate(); err != nil {
		t.Fatal(err)
	}
	out, err := r.withDefaults().opened()
	if err != nil {
		t.Fatal(err)
	}
	if how := kinds[r.Kind].traits; !how.people || how.cap != peopleCap || how.perMinute == 0 {
		t.Errorf("the traits are %+v", how)
	}
	t.Cleanup(out.close)
	return out
}

// Every message of every kind, in both languages, is taken by a service that checks
// it, and is the golden one.
func TestShownMessagesGolden(t *testing.T) {
	t.Parallel()
	for _, kind := range peopleKinds {
		for _, lang := range []string{"en", "zh"} {
			s := startService(t, kind)
			out := openKind(t, receiver(t, kind, s.url, lang))
			for name, p := range shownSamples(lang) {
				if err := out.send(t.Context(), newOutgoing(p.ID, encoded(t, p))); err != nil {
					t.Errorf("%s %s %s: %v", kind, lang, name, err)
					<-s.got
					continue
				}
				golden(t, filepath.Join(kind, name+"."+lang+".json"), unsigned(t, <-s.got))
			}
		}
	}
}

// unsigned is a request for a golden file: indented, and less what its time makes.
func unsigned(t *testing.T, body []byte) []byte {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	delete(m, "timestamp")
	delete(m, "sign")
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test ./alert -update rewrites it):\n%s", path, got)
	}
}

// An answer is judged by its status and by its body, and what it says is shown
// without secrets.
func TestBodiesAreJudged(t *testing.T) {
	t.Parallel()
	const html = "<html><body>please sign in</body></html>"
	for _, c := range []struct {
		kind   string
		status int
		body   string
		want   string // part of the error, "" for success
		retry  bool
		after  time.Duration
	}{
		{"dingtalk", 200, `{"errcode":0,"errmsg":"ok"}`, "", false, 0},
		{"dingtalk", 200, `{"errcode":310000,"errmsg":"sign not match"}`, "status 200, code 310000: sign not match", true, 0},
		{"dingtalk", 200, `{"errcode":130101,"errmsg":"send too fast, exceed 20 times per minute"}`, "code 130101", true, 10 * time.Minute},
		{"dingtalk", 200, `{"errcode":90030,"errmsg":"webhook over limit"}`, "code 90030", true, time.Hour},
		{"dingtalk", 200, `{"errcode":460101,"errmsg":"message too long"}`, "code 460101", false, 0},
		{"dingtalk", 200, `{"errcode":123456,"errmsg":"new"}`, "code 123456", true, 0},
		{"dingtalk", 200, `{}`, "not one of this service", true, 0},
		{"dingtalk", 200, ``, "not one of this service", true, 0},
		{"dingtalk", 200, html, "not one of this service", true, 0},
		{"dingtalk", 502, html, "status 502", true, 0},
		{"dingtalk", 404, html, "status 404", true, 0},
		{"feishu", 200, `{"code":0,"msg":"success"}`, "", false, 0},
		{"feishu", 200, `{"StatusCode":0,"StatusMessage":"success"}`, "", false, 0},
		{"feishu", 200, `{"StatusCode":0,"StatusMessage":"","code":9499,"msg":"too many request"}`, "code 9499", true, time.Minute},
		{"feishu", 200, `{"code":9499,"msg":"Bad Request"}`, "code 9499: Bad Request", false, 0},
		{"feishu", 400, `{"code":9499,"msg":"Bad Request"}`, "status 400, code 9499", false, 0},
		{"feishu", 400, `{"code":19001,"msg":"param invalid: incoming webhook access token invalid"}`, "code 19001", true, 0},
		{"feishu", 200, `{"code":11232,"msg":"frequency limited"}`, "code 11232", true, time.Minute},
		{"feishu", 200, `{"code":19021,"msg":"sign match fail"}`, "code 19021", true, 0},
		{"feishu", 200, `{"msg":"success"}`, "not one of this service", true, 0},
		{"feishu", 200, html, "not one of this service", true, 0},
		{"wecom", 200, `{"errcode":0,"errmsg":"ok"}`, "", false, 0},
		{"wecom", 200, `{"errcode":45009,"errmsg":"api freq out of limit"}`, "code 45009", true, time.Minute},
		{"wecom", 200, `{"errcode":93000,"errmsg":"invalid webhook url"}`, "code 93000", true, 0},
		{"wecom", 200, `{"errcode":40058,"errmsg":"content exceed max length"}`, "code 40058", false, 0},
		{"wecom", 200, html, "not one of this service", true, 0},
		{"slack", 200, "ok", "", false, 0},
		{"slack", 200, "ok\n", "", false, 0},
		{"slack", 200, html, "not one of this service", true, 0},
		{"slack", 200, `{"ok":true}`, "not one of this service", true, 0},
		{"slack", 400, "invalid_payload", "status 400, code invalid_payload", false, 0},
		{"slack", 404, "no_service", "code no_service", true, 0},
		{"slack", 403, "action_prohibited", "code action_prohibited", true, 0},
		{"slack", 500, "rollup_error", "status 500, code rollup_error", true, 0},
		{"slack", 400, "something else", "code something else", true, 0},
	} {
		t.Run(fmt.Sprint(c.kind, c.status, c.body), func(t *testing.T) {
			t.Parallel()
			s := startService(t, c.kind)
			s.answer = func(w http.ResponseWriter) {
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}
			err := openKind(t, receiver(t, c.kind, s.url, "en")).send(t.Context(), newOutgoing("msg_1", encoded(t, shownSamples("en")["firing"])))
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			e, ok := errors.AsType[*DeliveryError](err)
			if !ok || !strings.Contains(err.Error(), c.want) || e.Retryable != c.retry || e.RetryAfter != c.after || e.Status != c.status {
				t.Errorf("got %+v: %v", e, err)
			}
			if ok && c.status == 200 && e.Reason != ReasonRejected {
				t.Errorf("the reason is %q", e.Reason)
			}
		})
	}
}

// A service that repeats what it got shows none of its secrets in the error, and no
// more than 200 characters.
func TestRejectionsShowNoSecret(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"dingtalk", "feishu", "wecom"} {
		s := startService(t, kind)
		echo := "no: " + s.url + " " + url.QueryEscape(robotToken) + " " + robotToken + " " + robotSecret + "\n\x00\u202e" + strings.Repeat("界", 300)
		s.answer = func(w http.ResponseWriter) {
			key, message := "errcode", "errmsg"
			if kind == "feishu" {
				key, message = "code", "msg"
			}
			_ = json.NewEncoder(w).Encode(map[string]any{key: 19021, message: echo})
		}
		err := openKind(t, receiver(t, kind, s.url, "en")).send(t.Context(), newOutgoing("msg_1", encoded(t, shownSamples("en")["firing"])))
		e, ok := errors.AsType[*DeliveryError](err)
		if !ok || len([]rune(e.Detail)) > maxDetail || strings.ContainsAny(e.Error(), "\n\x00\u202e") {
			t.Errorf("%s: got %v", kind, err)
		}
		for _, secret := range []string{robotToken, robotSecret, "/hook/", "?key=", "access_token="} {
			if secret == robotSecret && kind == "wecom" {
				continue // it has none: the text is the service's own
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error shows %q: %v", kind, secret, err)
			}
		}
	}
}

// A wrong secret is refused by the fakes, so that the right one proves something.
func TestWrongSignaturesAreNoticed(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"dingtalk", "feishu"} {
		s := startService(t, kind)
		r := receiver(t, kind, s.url, "en")
		r.SecretFiles = []string{file(t, "SECother")}
		err := openKind(t, r).send(t.Context(), newOutgoing("msg_1", encoded(t, shownSamples("en")["firing"])))
		e, ok := errors.AsType[*DeliveryError](err)
		if !ok || e.Reason != ReasonRejected || !e.Retryable || e.Code != "310000" && e.Code != "19021" {
			t.Errorf("%s: got %v", kind, err)
		}
	}
}

// What the services document as an example is what is made.
func TestSignaturesOfFixedTimes(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1577262236757)
	d := dingtalk{chatReceiver: &chatReceiver{poster: &poster{url: &url.URL{Scheme: "https", Host: "h", RawQuery: "access_token=a+b"}}}, secret: "this is secret"}
	q := d.signed(at).Query()
	if q.Get("timestamp") != "1577262236757" || q.Get("sign") != hmacOf("this is secret", "1577262236757\nthis is secret") || q.Get("access_token") != "a b" {
		t.Errorf("got %v", q)
	}
	if d.url.RawQuery != "access_token=a+b" {
		t.Error("the URL grows with each message")
	}
	timestamp, sign := (&feishu{secret: "demo"}).sign(time.Unix(1599360473, 0))
	if timestamp != "1599360473" || sign != hmacOf("1599360473\ndemo", "") {
		t.Errorf("got %s %s", timestamp, sign)
	}
}
