package formats

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// RFC 9562 gives this version 1 UUID and its time as a test vector (A.1).
func TestTimeOfUUIDHex(t *testing.T) {
	t.Parallel()
	at, ok := timeOfUUIDHex("c232ab00941411ecb3c89f6bdeced846")
	if want := time.Date(2022, time.February, 22, 19, 22, 22, 0, time.UTC); !ok || !at.Equal(want) {
		t.Errorf("timeOfUUIDHex = %s, %t, want %s", at, ok, want)
	}
	for what, text := range map[string]string{
		"version 4":           "c232ab00941441ecb3c89f6bdeced846",
		"variant of Apollo":   "c232ab00941411ec33c89f6bdeced846",
		"year 1990":           "c232ab00941410e0b3c89f6bdeced846",
		"year 5000":           "c232ab0094141fffb3c89f6bdeced846",
		"upper case":          "C232AB00941411ECB3C89F6BDECED846",
		"one digit too few":   "c232ab00941411ecb3c89f6bdeced84",
		"one digit too many":  "c232ab00941411ecb3c89f6bdeced8460",
		"no digit at the end": "c232ab00941411ecb3c89f6bdeced84g",
		"":                    "",
	} {
		if at, ok := timeOfUUIDHex(text); ok {
			t.Errorf("%s: %s, want no time", what, at)
		}
	}
}

func TestHostOfUUIDHex(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"c232ab00941411ecb3c8 525400123456": "mac 52:54:00:12:34:56",
		"c232ab00941411ecb3c8 9f6bdeced846": "", // drawn: the multicast bit is set
	} {
		if got := hostOfUUIDHex(text[:20] + text[21:]); got != want {
			t.Errorf("hostOfUUIDHex(%s) = %q, want %q", text, got, want)
		}
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	rb := named("redlock-rb")
	for key, want := range map[string]bool{
		"redlock-rb": true, "redlock_rb:order": true, "app:Redlock.RB:1": true, "{redlock-rb}": true,
		"redlock:rb2": false, "redlock": false, "rb:redlock": false, "xredlock-rb": false, "": false, "redlock--rb": false, "app:my-redlock-rb": true, "redlock-rbx:1": false,
	} {
		if rb(key) != want {
			t.Errorf("named(redlock-rb)(%q) = %t, want %t", key, !want, want)
		}
	}
}

// Tokens as the libraries draw them are theirs nearly always, and what is close
// to them never is.
func TestDrawnTokens(t *testing.T) {
	t.Parallel()
	const (
		rounds  = 5000
		letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	)
	draw := rand.New(rand.NewPCG(1, 2))
	text := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[draw.IntN(len(letters))]
		}
		return b
	}
	hexText := func() []byte { // uuid1().hex of 2026, by a host with a network address
		low, seq, node := draw.Uint32(), draw.Uint32N(1<<14), draw.Uint64N(1<<40)
		return fmt.Appendf(nil, "%08x941411f1%04x52%010x", low, 0x8000|seq, node)
	}
	found := map[string]int{}
	for range rounds {
		for _, s := range []Sample{
			{Key: "lock:redlock-py:order", Value: text(22)},
			{Key: "laravel_database_report7", Value: text(20)},
			{Key: "laravel-cache-order", Value: text(16)},
			{Key: "lock:order:42", Value: text(21)}, // Nano ID
			{Key: "order-lock", Value: hexText()},
		} {
			s.Type, s.Size, s.TTL = typeString, int64(len(s.Value)), time.Minute
			name := Recognise(s).Format
			if len(s.Value) == 21 && name != Token {
				t.Errorf("%q is taken for %s", s.Value, name)
			}
			found[name]++
		}
	}
	for name, want := range map[string]int{"redis-py": rounds, "redlock-py": rounds * 85 / 100, "laravel-funnel": rounds * 85 / 100, "laravel-lock": rounds * 99 / 100} {
		if found[name] < want {
			t.Errorf("%s: %d of %d tokens are known, want at least %d", name, found[name], rounds, want)
		}
	}
}
