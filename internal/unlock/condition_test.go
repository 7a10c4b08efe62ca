package unlock

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward"
)

// A condition survives being written, and its digest is the plain HMAC of the
// bytes under the salt, so that others can compute it.
func TestConditionRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.SliceOf(rapid.Byte()).Draw(rt, "value")
		salt := NewSalt()
		o := locksteward.Observation{
			Type: rapid.SampledFrom([]string{"string", "hash", "zset", "list", "set"}).Draw(rt, "type"), TokenDigest: KeyOf(salt).Value(value),
			ExpireAt: rapid.OneOf(rapid.Just(locksteward.NoExpireAt), rapid.Int64Range(1, 1<<60)).Draw(rt, "expire"),
		}
		c, ok := ConditionOf(o, salt)
		if !ok {
			rt.Fatal("no condition")
		}
		back, err := ParseCondition(c.String())
		if err != nil || back != c {
			rt.Fatalf("%v, %v; want %v", back, err, c)
		}
		mac := hmac.New(sha256.New, salt[:])
		mac.Write(value)
		if c.Digest != hex.EncodeToString(mac.Sum(nil)) {
			rt.Fatal("digest is not hmac(salt, bytes)")
		}
	})
}

func TestConditionOfTooLittle(t *testing.T) {
	t.Parallel()
	whole := locksteward.Observation{Type: "string", TokenDigest: digestPrefix + strings.Repeat("0", 64), ExpireAt: 5}
	for name, spoil := range map[string]func(*locksteward.Observation){
		"digest": func(o *locksteward.Observation) { o.TokenDigest = "" },
		"type":   func(o *locksteward.Observation) { o.Type = "" },
		"expiry": func(o *locksteward.Observation) { o.ExpireAt = 0 },
	} {
		o := whole
		spoil(&o)
		if _, ok := ConditionOf(o, NewSalt()); ok {
			t.Errorf("a condition without %s", name)
		}
	}
}

func TestBadConditions(t *testing.T) {
	t.Parallel()
	salt, digest := strings.Repeat("a", 32), strings.Repeat("b", 64)
	if _, err := ParseCondition("string." + salt + "." + digest + ".-1"); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                                     "want <type>",
		"string":                               "want <type>",
		"stream." + salt + "." + digest + ".1": "no lock has the type",
		"string.zz." + digest + ".1":           "salt",
		"string." + salt + ".bb.1":             "hmac",
		"string." + salt + "." + strings.ToUpper(digest) + ".1":   "lower case",
		"string." + salt + "." + digest + ".0":                    "expiry",
		"string." + salt + "." + digest + ".-2":                   "expiry",
		"string." + salt + "." + digest + ".soon":                 "expiry",
		"string." + salt + "." + digest + ".1.string":             "want <type>",
		"string." + salt + "." + digest + ".99999999999999999999": "expiry",
	} {
		if _, err := ParseCondition(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestShellWord(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"lock:a": "lock:a", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "a\nb": `$'a\x0ab'`, "\xff'\\": `$'\xff\'\\'`, "日本": "'日本'",
	} {
		if got := ShellWord(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}
