package locksteward_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
)

func TestSecretNeverShows(t *testing.T) {
	t.Parallel()
	const text = "hunter2-canary"
	s := locksteward.Secret(text)
	wrapped := struct{ Password locksteward.Secret }{s}
	asJSON, err := json.Marshal(wrapped)
	if err != nil {
		t.Fatal(err)
	}
	shown := []string{string(asJSON), s.String(), s.GoString()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		shown = append(shown, fmt.Sprintf(verb, s), fmt.Sprintf(verb, wrapped), fmt.Sprintf(verb, &wrapped))
	}
	for _, out := range shown {
		if strings.Contains(out, text) || strings.Contains(out, fmt.Sprintf("%x", text)) {
			t.Errorf("the secret shows in %q", out)
		}
	}
	if s.Reveal() != text {
		t.Errorf("Reveal = %q", s.Reveal())
	}
	if got := locksteward.Secret("").String(); got != "" {
		t.Errorf("empty secret shows as %q", got)
	}
}

func TestDigestKey(t *testing.T) {
	t.Parallel()
	key, other := locksteward.NewDigestKey(), locksteward.NewDigestKey()
	if key.Value([]byte("1")) == other.Value([]byte("1")) {
		t.Error("two keys give the same digest")
	}
	if got := key.Value([]byte("1")); len(got) != len("hmac-sha256:")+64 || !strings.HasPrefix(got, "hmac-sha256:") {
		t.Errorf("digest has the wrong form: %q", got)
	}
	back, err := locksteward.ParseDigestKey(key.Reveal() + "\n")
	if err != nil || back != key {
		t.Errorf("ParseDigestKey(Reveal) = %v, %v", back, err)
	}
	for _, bad := range []string{"", "zz", key.Reveal()[2:], key.Reveal() + "00"} {
		if _, err := locksteward.ParseDigestKey(bad); err == nil {
			t.Errorf("ParseDigestKey accepts %d characters", len(bad))
		}
	}
	if s := fmt.Sprintf("%v %+v %#v %s", key, key, key, key); strings.Contains(s, key.Reveal()) {
		t.Error("the digest key shows when printed")
	}
}

// Two different field sets never give the same digest input, whatever the
// fields hold; the encoding is length-prefixed for that.
func TestDigestOfFieldsIsInjective(t *testing.T) {
	t.Parallel()
	key := locksteward.NewDigestKey()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[0-9: a]{0,6}`)
		a := rapid.MapOf(text, text).Draw(t, "a")
		b := rapid.MapOf(text, text).Draw(t, "b")
		same := len(a) == len(b)
		for f, v := range a {
			if w, ok := b[f]; !ok || w != v {
				same = false
			}
		}
		if (key.Fields(a) == key.Fields(b)) != same {
			t.Fatalf("digests of %q and %q: equal = %v", a, b, !same)
		}
	})
}

func TestKeyEncodingRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := string(rapid.SliceOf(rapid.Byte()).Draw(t, "key"))
		text, b64 := locksteward.EncodeKey(key)
		back, err := locksteward.DecodeKey(text, b64)
		if err != nil || back != key {
			t.Fatalf("DecodeKey(EncodeKey(%q)) = %q, %v", key, back, err)
		}
		for _, r := range locksteward.DisplayKey(key) {
			if r < ' ' || r == 0x7f || r == '\u202e' {
				t.Fatalf("DisplayKey(%q) holds the control character %q", key, r)
			}
		}
	})
}

func TestDisplayKey(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"lock:order:42":   "lock:order:42",
		"lock:été":        "lock:été",
		"lock: a b":       "lock: a b",
		`lock:"q"`:        `lock:"q"`,
		"lock:a\nb":       `lock:a\nb`,
		"lock:\"a\nb\"":   `lock:"a\nb"`,
		"lock:\x00":       `lock:\x00`,
		"lock:\xff":       `lock:\xff`,
		`lock:\n`:         `lock:\\n`,
		"lock:\x1b[2J":    `lock:\x1b[2J`,
		"lock:\u202egnp.": `lock:\u202egnp.`,
	} {
		if got := locksteward.DisplayKey(key); got != want {
			t.Errorf("DisplayKey(%q) = %s, want %s", key, got, want)
		}
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	for name, tc := range map[string]struct {
		lock    locksteward.Lock
		age     time.Duration
		basis   locksteward.AgeBasis
		minimum bool
	}{
		"nothing known": {locksteward.Lock{Observation: locksteward.Observation{At: now, Idle: -1}}, 0, locksteward.AgeNone, true},
		"claimed": {locksteward.Lock{
			Observation: locksteward.Observation{At: now, Idle: time.Hour, Claim: &locksteward.Claim{Acquired: now.Add(-time.Minute)}},
		}, time.Minute, locksteward.AgeClaimed, false},
		"observed": {locksteward.Lock{
			Observation: locksteward.Observation{At: now, Idle: time.Second},
			History:     locksteward.History{FirstSeen: now.Add(-time.Minute)},
		}, time.Minute, locksteward.AgeObserved, true},
		"idle longer than observed": {locksteward.Lock{
			Observation: locksteward.Observation{At: now, Idle: time.Hour},
			History:     locksteward.History{FirstSeen: now.Add(-time.Minute)},
		}, time.Hour, locksteward.AgeIdle, true},
		"the time in the value, longer than observed": {locksteward.Lock{
			Observation: locksteward.Observation{At: now, Idle: -1, TTL: time.Minute, Acquired: now.Add(-time.Hour)},
			History:     locksteward.History{FirstSeen: now.Add(-time.Minute)},
		}, time.Hour, locksteward.AgeClaimed, true},
		"the time in the value, shorter than observed": {locksteward.Lock{
			Observation: locksteward.Observation{At: now, Idle: -1, TTL: time.Minute, Acquired: now.Add(-time.Second)},
			History:     locksteward.History{FirstSeen: now.Add(-time.Minute)},
		}, time.Minute, locksteward.AgeObserved, true},
		"metadata goes before the value": {locksteward.Lock{
			Observation: locksteward.Observation{At: now, Acquired: now.Add(-time.Hour), Claim: &locksteward.Claim{Acquired: now.Add(-time.Minute)}},
		}, time.Minute, locksteward.AgeClaimed, false},
		"doubt keeps what was observed": {locksteward.Lock{
			Observation: locksteward.Observation{At: now, Idle: -1, TTL: time.Minute, Acquired: now.Add(-time.Hour), Asked: true},
			History:     locksteward.History{FirstSeen: now.Add(-time.Minute)},
		}, time.Minute, locksteward.AgeObserved, true},
		"a claim from the future is no negative age": {locksteward.Lock{
			Observation: locksteward.Observation{At: now, Claim: &locksteward.Claim{Acquired: now.Add(time.Minute)}},
		}, 0, locksteward.AgeClaimed, false},
	} {
		age, basis, minimum := tc.lock.Age()
		if age != tc.age || basis != tc.basis || minimum != tc.minimum {
			t.Errorf("%s: Age = %v, %v, %v", name, age, basis, minimum)
		}
	}
}

// The time in a value is by a clock that is not the server's: it counts where
// nothing speaks against it.
func TestWrittenAge(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	day := 24 * time.Hour
	for name, tc := range map[string]struct {
		lock  locksteward.Lock
		age   time.Duration
		doubt string // a part of it
	}{
		"none":   {locksteward.Lock{Observation: locksteward.Observation{At: now}}, 0, ""},
		"lease":  {locksteward.Lock{Observation: locksteward.Observation{At: now, TTL: time.Hour, Acquired: now.Add(-time.Hour)}}, time.Hour, ""},
		"future": {locksteward.Lock{Observation: locksteward.Observation{At: now, TTL: time.Hour, Acquired: now.Add(time.Hour)}}, -time.Hour, "future"},
		"asked":  {locksteward.Lock{Observation: locksteward.Observation{At: now, TTL: time.Hour, Acquired: now.Add(-time.Hour), Asked: true}}, time.Hour, "may have waited"},
		"before the TTL could allow": {
			locksteward.Lock{Observation: locksteward.Observation{At: now, TTL: time.Hour, Acquired: now.Add(-day)}}, day, "longer than 24h",
		},
		"as long as the longest lease": {
			locksteward.Lock{Observation: locksteward.Observation{At: now, TTL: time.Hour, Acquired: now.Add(time.Hour - day)}}, day - time.Hour, "",
		},
		"renewed": {
			locksteward.Lock{Observation: locksteward.Observation{At: now, TTL: time.Hour, Acquired: now.Add(-day)}, History: locksteward.History{Renewals: 1}}, day, "",
		},
		"renews": {
			locksteward.Lock{Observation: locksteward.Observation{At: now, TTL: time.Hour, Acquired: now.Add(-day), RenewEvery: time.Minute}}, day, "",
		},
		"no TTL": {
			locksteward.Lock{Observation: locksteward.Observation{At: now, TTL: locksteward.NoExpiry, Acquired: now.Add(-30 * day)}}, 30 * day, "",
		},
	} {
		age, doubt := tc.lock.WrittenAge()
		if age != tc.age || (catalogue.Text("en", doubt) == "") != (tc.doubt == "") || (catalogue.Text("zh", doubt) == "") != (tc.doubt == "") || !strings.Contains(catalogue.Text("en", doubt), tc.doubt) {
			t.Errorf("%s: WrittenAge = %v, %q", name, age, catalogue.Text("en", doubt))
		}
	}
}

func TestSameHold(t *testing.T) {
	t.Parallel()
	base := locksteward.Observation{Type: "string", TokenDigest: "d"}
	claim := func(id string) locksteward.Observation {
		o := base
		o.Claim = &locksteward.Claim{ID: id}
		return o
	}
	other := base
	other.TokenDigest = "e"
	unread := base
	unread.TokenDigest = ""
	if !locksteward.SameHold(base, base) || !locksteward.SameHold(claim("1"), claim("1")) {
		t.Error("the same hold is reported apart")
	}
	if locksteward.SameHold(base, other) || locksteward.SameHold(claim("1"), claim("2")) {
		t.Error("two holds are taken for one")
	}
	if locksteward.SameHold(unread, unread) {
		t.Error("values that were not read cannot be the same")
	}
}

// fault: 59
func TestFingerprint(t *testing.T) {
	t.Parallel()
	f := locksteward.Finding{Rule: "ttl/none", Target: "a", Key: "k"}
	same := f
	same.Severity, same.Status = locksteward.SeverityCritical, locksteward.StatusFiring
	if f.Fingerprint() != same.Fingerprint() {
		t.Error("the fingerprint depends on what changes over a finding's life")
	}
	for name, change := range map[string]func(*locksteward.Finding){
		"rule":    func(f *locksteward.Finding) { f.Rule = "ttl/too-long" },
		"target":  func(f *locksteward.Finding) { f.Target = "b" },
		"db":      func(f *locksteward.Finding) { f.DB = 1 },
		"key":     func(f *locksteward.Finding) { f.Key = "l" },
		"subject": func(f *locksteward.Finding) { f.Subject = "x" },
		"scope":   func(f *locksteward.Finding) { f.Key, f.Class = "", "k" },
	} {
		other := f
		change(&other)
		if other.Fingerprint() == f.Fingerprint() {
			t.Errorf("two findings that differ by %s share a fingerprint", name)
		}
	}
}

func TestSeverityText(t *testing.T) {
	t.Parallel()
	for _, s := range []locksteward.Severity{locksteward.SeverityInfo, locksteward.SeverityWarning, locksteward.SeverityCritical} {
		back, err := locksteward.ParseSeverity(s.String())
		if err != nil || back != s {
			t.Errorf("ParseSeverity(%v) = %v, %v", s, back, err)
		}
	}
	if _, err := locksteward.ParseSeverity("fatal"); err == nil || !strings.Contains(err.Error(), "fatal") {
		t.Errorf("ParseSeverity(fatal) = %v, want the value in the error", err)
	}
	if _, err := json.Marshal(locksteward.Severity(0)); err == nil {
		t.Error("severity 0 encodes")
	}
}

func TestSweepComplete(t *testing.T) {
	t.Parallel()
	done, cut := locksteward.MasterPass{Complete: true, Keys: 2}, locksteward.MasterPass{Keys: 1}
	for want, sweeps := range map[bool][]locksteward.Sweep{
		true:  {{Masters: []locksteward.MasterPass{done}}, {Masters: []locksteward.MasterPass{done, done}}},
		false: {{}, {Masters: []locksteward.MasterPass{done, cut}}},
	} {
		for _, s := range sweeps {
			if s.Complete() != want {
				t.Errorf("Complete of %+v = %v", s.Masters, !want)
			}
		}
	}
	if n := (locksteward.Sweep{Masters: []locksteward.MasterPass{done, cut}}).Keys(); n != 3 {
		t.Errorf("Keys = %d, want 3", n)
	}
}

// An age goes on after the look: a lock that was read a minute ago is a minute older.
func TestAgeAt(t *testing.T) {
	t.Parallel()
	look := time.UnixMilli(1_700_000_000_000)
	seen := locksteward.Lock{Observation: locksteward.Observation{At: look, Idle: -1}, History: locksteward.History{FirstSeen: look}}
	if age, basis, minimum := seen.AgeAt(look.Add(time.Minute)); age != time.Minute || basis != locksteward.AgeObserved || !minimum {
		t.Errorf("seen at one look, a minute later: %v, %v, %v", age, basis, minimum)
	}
	if age, basis, _ := seen.AgeAt(look.Add(-time.Minute)); age != 0 || basis != locksteward.AgeNone {
		t.Errorf("before the look: %v, %v", age, basis)
	}
	idle := locksteward.Lock{Observation: locksteward.Observation{At: look, Idle: time.Hour}}
	if age, _, _ := idle.AgeAt(look.Add(time.Minute)); age != time.Hour+time.Minute {
		t.Errorf("idle: %v", age)
	}
	claimed := locksteward.Lock{Observation: locksteward.Observation{At: look, Claim: &locksteward.Claim{Acquired: look.Add(-time.Second)}}}
	if age, _, minimum := claimed.AgeAt(look.Add(time.Minute)); age != time.Minute+time.Second || minimum {
		t.Errorf("claimed: %v, %v", age, minimum)
	}
}

// JSON that is shown on a terminal moves no cursor and turns no line, and says the same.
func TestEscapeJSON(t *testing.T) {
	t.Parallel()
	const hostile = "a\u009b2J\u0085\u007f\u202e\u2066\u200f\ufeff\U000e0041 锁 é\u00a0\ufffd\"\\"
	raw, err := json.Marshal(map[string]string{hostile: hostile})
	if err != nil {
		t.Fatal(err)
	}
	escaped := locksteward.EscapeJSON(raw)
	for _, r := range string(escaped) {
		if !strconv.IsPrint(r) {
			t.Errorf("%q stands in %s", r, escaped)
		}
	}
	var got map[string]string
	if err := json.Unmarshal(escaped, &got); err != nil || got[hostile] != hostile {
		t.Errorf("%q, %v", got, err)
	}
	if !strings.Contains(string(escaped), "锁 é") {
		t.Errorf("what prints is escaped: %s", escaped)
	}
	plain := []byte("{\n\t\"a\": \"锁\"}\n")
	if got := locksteward.EscapeJSON(plain); &got[0] != &plain[0] {
		t.Error("a text without such characters is copied")
	}
}
