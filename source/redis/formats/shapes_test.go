package formats_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// tokenShape makes values of one shape. writers are the libraries that write it under
// any name; none are named for it unless it is theirs alone.
type tokenShape struct {
	make    func(raw []byte, rng *rand.Rand) string
	bytes   int
	writers []string
	alone   string // the library whose shape nothing else writes
}

func letters(alphabet string, n int) func([]byte, *rand.Rand) string {
	return func(_ []byte, rng *rand.Rand) string {
		out := make([]byte, n)
		for i := range out {
			out[i] = alphabet[rng.IntN(len(alphabet))]
		}
		return string(out)
	}
}

func uuidOf(version byte) func([]byte, *rand.Rand) string {
	return func(raw []byte, _ *rand.Rand) string {
		raw[6], raw[8] = raw[6]&0x0f|version<<4, raw[8]&0x3f|0x80
		if version == 1 { // a time of 2026
			copy(raw[:8], []byte{raw[0], raw[1], raw[2], raw[3], 0x1c, 0x6b, 0x11, 0xf1})
		}
		return fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
	}
}

func hexOf(raw []byte, _ *rand.Rand) string { return hex.EncodeToString(raw) }

func base64Of(e *base64.Encoding) func([]byte, *rand.Rand) string {
	return func(raw []byte, _ *rand.Rand) string { return e.EncodeToString(raw) }
}

const (
	lowerText = "abcdefghijklmnopqrstuvwxyz"
	digitText = "0123456789"
	alnumText = lowerText + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + digitText
)

// The shapes of the libraries of lock-formats that write a string under any name, and
// those of code that draws a token by itself.
var tokenShapes = map[string]tokenShape{
	"hex of 8 bytes":                 {make: hexOf, bytes: 8},
	"hex of 10 bytes":                {make: hexOf, bytes: 10},
	"hex of 11 bytes":                {make: hexOf, bytes: 11},
	"hex of 12 bytes":                {make: hexOf, bytes: 12},
	"hex of 16 bytes":                {make: hexOf, bytes: 16, writers: []string{"node-redlock"}},
	"hex of 20 bytes":                {make: hexOf, bytes: 20, writers: []string{"redlock4j"}},
	"hex of 24 bytes":                {make: hexOf, bytes: 24},
	"hex of 32 bytes":                {make: hexOf, bytes: 32},
	"UUID 1":                         {make: uuidOf(1), bytes: 16, writers: []string{"ioredis-lock"}},
	"UUID 4":                         {make: uuidOf(4), bytes: 16, writers: []string{"aioredlock", "ioredis-lock", "node-redis-lock", "redlock-rb", "sherlock", "spring-integration"}},
	"UUID 7":                         {make: uuidOf(7), bytes: 16},
	"UUID 4 without dashes":          {make: func(raw []byte, r *rand.Rand) string { return strings.ReplaceAll(uuidOf(4)(raw, r), "-", "") }, bytes: 16, writers: []string{"node-redlock"}},
	"UUID 1 without dashes":          {make: func(raw []byte, r *rand.Rand) string { return strings.ReplaceAll(uuidOf(1)(raw, r), "-", "") }, bytes: 16, alone: "redis-py"},
	"base64 of 12 bytes":             {make: base64Of(base64.StdEncoding), bytes: 12},
	"base64 of 16 bytes":             {make: base64Of(base64.StdEncoding), bytes: 16, writers: []string{"redsync"}},
	"base64 of 16 bytes, no padding": {make: base64Of(base64.RawStdEncoding), bytes: 16},
	"base64url of 16 bytes":          {make: base64Of(base64.RawURLEncoding), bytes: 16, writers: []string{"bsm-redislock"}},
	"base64url of 16 bytes, padded":  {make: base64Of(base64.URLEncoding), bytes: 16},
	// Under lock:… it may be python-redis-lock's, whose waiters sleep until a release pushes to
	// lock-signal:…: named with medium confidence, since as a token they would sleep on.
	"base64 of 18 bytes":            {make: base64Of(base64.StdEncoding), bytes: 18, alone: "python-redis-lock"},
	"base64 of 20 bytes":            {make: base64Of(base64.StdEncoding), bytes: 20},
	"base64 of 24 bytes":            {make: base64Of(base64.StdEncoding), bytes: 24},
	"base64 of 32 bytes":            {make: base64Of(base64.StdEncoding), bytes: 32},
	"base64url of 24 bytes":         {make: base64Of(base64.RawURLEncoding), bytes: 24},
	"base64url of 32 bytes":         {make: base64Of(base64.RawURLEncoding), bytes: 32},
	"16 letters and digits":         {make: letters(alnumText, 16)},
	"20 letters and digits":         {make: letters(alnumText, 20)},
	"21 characters of nanoid":       {make: letters(alnumText+"-_", 21)},
	"22 letters and digits":         {make: letters(alnumText, 22), writers: []string{"redlock-py"}},
	"24 letters and digits":         {make: letters(alnumText, 24), alone: "python-redis-lock"}, // as above
	"32 letters and digits":         {make: letters(alnumText, 32)},
	"40 letters and digits":         {make: letters(alnumText, 40)},
	"22 lower-case letters, digits": {make: letters(lowerText+digitText, 22)},
	"base32 of Go's rand.Text":      {make: letters("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 26)},
	"ULID":                          {make: letters("0123456789ABCDEFGHJKMNPQRSTVWXYZ", 26)},
	"a UUID and a thread":           {make: func(raw []byte, r *rand.Rand) string { return uuidOf(4)(raw, r) + ":17" }, bytes: 16},
	"go-redislock's":                {make: func(raw []byte, r *rand.Rand) string { return "lock_token:" + uuidOf(4)(raw, r) }, bytes: 16, alone: "go-redislock-reentrant"},
	"ShedLock's": {make: func(raw []byte, r *rand.Rand) string {
		return "ADDED:2026-11-24T18:00:00.000Z@web-1:" + uuidOf(4)(raw, r)
	}, bytes: 16, alone: "shedlock"},
	"DistributedLock's": {make: func(raw []byte, r *rand.Rand) string { return "WEB_01_4711_" + hexOf(raw, r) }, bytes: 16, alone: "distributedlock-mutex"},
	"bsm/redislock's, metadata": {make: func(raw []byte, r *rand.Rand) string {
		return base64.RawURLEncoding.EncodeToString(raw) + `{"host":"web-1"}`
	}, bytes: 16, alone: "bsm-redislock"},
	"12 digits": {make: letters(digitText, 12)},
}

// TestShapesNameNoLibrary: a value names a library only if nothing else writes its
// shape. A token that anybody may have drawn is a token, and says who may have.
func TestShapesNameNoLibrary(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(28, 13))
	// In one order, so that the same values are drawn: of random hex one text in 2,500 looks like the UUID of redis-py.
	for _, name := range slices.Sorted(maps.Keys(tokenShapes)) {
		shape := tokenShapes[name]
		kinds := map[string]bool{}
		for range 300 {
			raw := make([]byte, shape.bytes)
			for i := range raw {
				raw[i] = byte(rng.Uint32())
			}
			value := shape.make(raw, rng)
			for _, key := range []string{"order:42", "lock:order:42", "{order}:lock", "locks/order.42", "orderLock"} {
				for _, ttl := range []time.Duration{30 * time.Second, locksteward.NoExpiry} {
					d := formats.Recognise(formats.Sample{Key: key, Type: "string", TTL: ttl, Value: []byte(value), Size: int64(len(value))})
					switch {
					case shape.alone != "" && d.Format == shape.alone:
					case d.Format != formats.Token:
						t.Fatalf("%s (%s) under %s is named %s, %s confidence: nothing but its shape says so", name, value, key, d.Format, d.Confidence)
					case d.Confidence == locksteward.ConfidenceHigh:
						t.Fatalf("%s under %s: high confidence in a token", name, key)
					}
					kinds[d.TokenKind] = true
				}
			}
		}
		for _, library := range shape.writers {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(kinds)), func(kind string) bool { return strings.Contains(kind, library) }) {
				t.Errorf("%s: %s may have written it, which nothing of %q says", name, library, slices.Collect(maps.Keys(kinds)))
			}
			if _, ok := formats.Get(library); !ok {
				t.Errorf("no format is called %s", library)
			}
		}
	}
}
