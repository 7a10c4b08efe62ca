package formats

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// generators make tokens as libraries do; rate is how many of 100 must count as
// fresh. The rest is judged by its expiry as well, which is safe.
var generators = []struct {
	name string
	rate float64
	make func(r *rand.Rand) string
}{
	{"uuid4", 100, func(r *rand.Rand) string {
		b := randomBytes(r, 16)
		b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
		return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	}},
	{"redsync", 99, func(r *rand.Rand) string { return base64.StdEncoding.EncodeToString(randomBytes(r, 16)) }},
	{"bsm", 98, func(r *rand.Rand) string { return base64.RawURLEncoding.EncodeToString(randomBytes(r, 16)) }},
	{"base64 of 32", 98, func(r *rand.Rand) string { return base64.StdEncoding.EncodeToString(randomBytes(r, 32)) }},
	{"hex of 8", 98, func(r *rand.Rand) string { return hex.EncodeToString(randomBytes(r, 8)) }},
	{"hex of 16", 99, func(r *rand.Rand) string { return hex.EncodeToString(randomBytes(r, 16)) }},
	{"hex of 20", 99, func(r *rand.Rand) string { return strings.ToUpper(hex.EncodeToString(randomBytes(r, 20))) }},
	{"rand.Text", 95, func(r *rand.Rand) string { return pick(r, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 26) }},
	{"ulid", 98, func(r *rand.Rand) string { return "01K" + pick(r, "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 23) }},
	{"alphanumeric 20", 90, func(r *rand.Rand) string {
		return pick(r, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 20)
	}},
	{"alphanumeric 32", 90, func(r *rand.Rand) string {
		return pick(r, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 32)
	}},
	{"nanoid", 90, func(r *rand.Rand) string {
		return pick(r, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-", 21)
	}},
	{"base36 25", 85, func(r *rand.Rand) string { return pick(r, "0123456789abcdefghijklmnopqrstuvwxyz", 25) }},
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.IntN(256))
	}
	return b
}

func pick(r *rand.Rand, alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

func TestRandomTokensAreFresh(t *testing.T) {
	t.Parallel()
	const rounds = 2000
	for _, g := range generators {
		r := rand.New(rand.NewPCG(1, 2)) // the same tokens in each run
		fresh, shared := 0, 0
		for range rounds {
			text := g.make(r)
			switch s := shapeOf("k", []byte(text)); s.origin {
			case originAcquisition:
				fresh++
			case originShared:
				shared++
			}
		}
		if rate := 100 * float64(fresh) / rounds; rate < g.rate {
			t.Errorf("%s: %.2f %% are fresh, want at least %.0f %%", g.name, rate, g.rate)
		}
		// An info finding too many, and compared by its expiry as well: safe, so
		// rare is enough.
		if shared > rounds/200 {
			t.Errorf("%s: %d of %d are taken for constants", g.name, shared, rounds)
		}
	}
}

// What names a host, process or nothing at all must never pass for fresh: the
// next holder may write the same.
func TestNamesAreNotFresh(t *testing.T) {
	t.Parallel()
	hosts := []string{
		"order-service", "orderService", "orderServiceWorkerNode", "OrderServiceWorkerNodeA", "paymentGatewayPrimaryQ",
		"ip-10-0-3-17.eu-west-1.compute.internal", "web-01.example.com", "DESKTOP-7F3K2QX", "EC2AMAZ-ABC1234",
		"order-6d4cf56db6-x2x9z", "payments-api-7c9f8d5b4c-qwxz2", "kafka-0", "runner-abc123-project-42-concurrent-0",
		"http-nio-8080-exec-12", "pool-3-thread-17", "ForkJoinPool.commonPool-worker-3", "TheQuickBrownFoxJumpsOverTheLazyDog",
		"PRODUCTIONPAYMENTSERVICE23", "ORDERSERVICEWORKERNODE0001", "worker01production02east", "com.example.orders.LockService",
		"aaaaaaaaaaaaaaaaaaaaaaaaaa", "0000000000000001", "ffffffffffffffff", "deadbeefdeadbeef", "abcdefabcdefabcdef", "00000000-0000-0000-0000-000000000000",
		"11111111-1111-1111-1111-111111111111", "886313e1-3b8a-5372-9b90-0c9aee199e5d", "lock:order:42", "processing-since-2026-11-21",
		"2026-11-21T03:00:00.123Z", "2026-11-21 03:00:00", "1794970000", "1794970000123", "1794970000123456", "1541815603606036480",
		base64.StdEncoding.EncodeToString([]byte("order-service-01")), base64.RawURLEncoding.EncodeToString([]byte("payment-gateway-eu-1")),
		"192.168.100.200:65535", "fe80::1ff:fe23:4567:890a", "user@example.com", "{\"owner\":\"web-3\"}", "worker-1:12345:main-thread-17",
		"thisIsMyLockTokenValue", "MyCompany.Orders.Service", "0123456789", "locked-by-order-service-on-web-3",
		"5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17-31", "service:5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17",
	}
	for _, text := range hosts {
		if s := shapeOf("k", []byte(text)); s.origin == originAcquisition {
			t.Errorf("%q passes for fresh: %s", text, s.kind)
		}
	}
}

// TokenKind is shown where the token is not: it must not contain it.
func TestKindDoesNotGiveTheTokenAway(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"7", "42", "1234567", "alice", "web-3", "web-3:99", "true", "locked", "10.0.0.1", "1794970000", "xxxxxxxx"} {
		if kind := shapeOf("k", []byte(text)).kind; strings.Contains(kind, text) {
			t.Errorf("kind %q gives away the token %q", kind, text)
		}
	}
}

func TestUnwrap(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`"a"`: "a", `"`: `"`, `""`: "", `"a\"b"`: `"a\"b"`, `"a"b"`: `"a"b"`,
		`s:3:"abc";`: "abc", `s:4:"abc";`: `s:4:"abc";`, `s:0:"";`: "", `s:-1:"";`: `s:-1:"";`, "s:": "s:", `s:1`: `s:1`, `s:3:"abc"x`: `s:3:"abc"x`,
		"i:17;": "17", "b:1;": "1", "b:x;": "b:x;", "i:;": "i:;",
		"\xac\xed\x00\x05t\x00\x03abc": "abc", "\xac\xed\x00\x05t\x00\x04abc": "\xac\xed\x00\x05t\x00\x04abc", "\xac\xed\x00\x05t": "\xac\xed\x00\x05t",
		"": "", "plain": "plain",
	} {
		if got := unwrap(value); got != want {
			t.Errorf("unwrap(%q) = %q, want %q", value, got, want)
		}
	}
}
