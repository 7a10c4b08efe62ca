package alert

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// verify is what a receiver does by Standard Webhooks 1.0: one of the signatures of
// the header is that of its secret.
func verify(secret []byte, id, timestamp, header string, body []byte) bool {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	for one := range strings.SplitSeq(header, " ") {
		version, text, _ := strings.Cut(one, ",")
		got, err := base64.StdEncoding.DecodeString(text)
		if version == "v1" && err == nil && hmac.Equal(got, mac.Sum(nil)) {
			return true
		}
	}
	return false
}

// A message verifies with each of its secrets, and not when one bit of it, its id, its
// time or its secret is another.
func FuzzWebhookVerify(f *testing.F) {
	f.Add("msg_1", []byte(`{"type":"finding.fired"}`), int64(1767225600), []byte("0123456789012345678901234"), uint16(7))
	f.Add("", []byte{}, int64(0), []byte{}, uint16(0))
	f.Add("a.b.c", []byte("\x00\xff."), int64(-1), []byte("whsec_"), uint16(65535))
	f.Fuzz(func(t *testing.T, id string, body []byte, unix int64, key []byte, flip uint16) {
		text := secretPrefix + base64.StdEncoding.EncodeToString(key)
		secret, err := parseSecret(" " + text + "\n")
		if (err == nil) != (len(key) >= 24 && len(key) <= 64) {
			t.Fatalf("a secret of %d bytes: %v", len(key), err)
		}
		if err != nil {
			if len(key) > 3 && strings.Contains(err.Error(), base64.StdEncoding.EncodeToString(key)) {
				t.Error("the error shows the secret")
			}
			return
		}
		other := bytes.Clone(secret)
		other[int(flip)%len(other)] ^= 1 << (flip % 8)
		at := time.Unix(unix, 0)
		header := signature([][]byte{secret, append(bytes.Clone(secret), 1)}, id, at, body)
		stamp := fmt.Sprint(unix)
		if !verify(secret, id, stamp, header, body) || !verify(append(bytes.Clone(secret), 1), id, stamp, header, body) {
			t.Error("it does not verify")
		}
		changed := bytes.Clone(body)
		if len(changed) > 0 {
			changed[int(flip)%len(changed)] ^= 1 << (flip % 8)
		} else {
			changed = []byte{byte(flip)}
		}
		if verify(other, id, stamp, header, body) || verify(secret, id, stamp, header, changed) ||
			verify(secret, id, fmt.Sprint(unix+1), header, body) || verify(secret, id+"x", stamp, header, body) {
			t.Error("something else verifies too")
		}
	})
}

var longNumber = regexp.MustCompile(`[0-9_xob]{4}`)

// Whatever a template says: it is refused at load, or it writes bounded text that
// shows as text. Long ranges that write nothing are not tried: nothing bounds them.
func FuzzTemplate(f *testing.F) {
	for _, source := range []string{
		"{{.Type}}", "{{range .Findings}}{{.Lock.Key}} {{end}}", "{{", "{{template \"x\"}}", "{{define \"x\"}}{{template \"x\"}}{{end}}{{template \"x\"}}",
		"{{range $i, $_ := .Findings}}{{range .Evidence}}{{.}}{{end}}{{end}}", "{{printf \"%999d\" 1}}", "{{len .Findings}}", "{{.NoSuchField}}",
		"{{html .Type}}{{js .Type}}{{urlquery .Type}}", "{{index .Findings 99}}", "{{call .Type}}", "\x00\xff\u202e", "{{with .Release}}{{.Key}}{{end}}",
		"{{range 999}}" + strings.Repeat("x", 99) + "{{end}}", "{{slice .Type 9 1}}",
	} {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if len(source) > 4<<10 || strings.Count(source, "range") > 2 || longNumber.MatchString(source) {
			t.Skip()
		}
		c, err := (&Template{Title: source, Text: source}).compile("en")
		if err != nil || c == nil {
			return
		}
		for _, p := range templateSamples() {
			title, text, err := c.apply(p)
			if err != nil {
				continue // a message falls back to the built-in text
			}
			if len(text) > 4*maxTemplated || !utf8.ValidString(text) || !utf8.ValidString(title) || strings.ContainsRune(title, '\n') {
				t.Errorf("%q writes %d bytes, title %q", source, len(text), title)
			}
		}
	})
}
