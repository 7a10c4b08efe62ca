package rules

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
)

// What is kept of a finding is all of it, whatever the first of its kind looked like.
func TestKeptIsTheFinding(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"", "it never expires by itself", "first seen 2.1s ago, at 2026-11-21T22:10:05Z, in 2 looks",
		"first seen 12s ago, at 2026-11-21T22:10:09Z, in 14 looks", "锁 lock:a 没有过期时间", "锁 lock:abc 没有过期时间", "aaaa", "aaaaaaa",
	}))
	plain := rapid.OneOf(
		rapid.Map(text, func(s string) any { return s }), rapid.Map(text, func(s string) any { return locksteward.LockName(s) }),
		rapid.Map(rapid.Int64(), func(n int64) any { return n }), rapid.Map(rapid.Int64(), func(n int64) any { return time.Duration(n) }),
		rapid.Map(rapid.Int64(), func(n int64) any { return time.UnixMilli(n) }),
	)
	id := rapid.SampledFrom([]string{"ttl/none.no-expiry", "lock.seen", "list", "of another version"})
	part := rapid.Custom(func(t *rapid.T) any {
		return locksteward.NewMessage(id.Draw(t, "id"), rapid.SliceOfN(plain, 0, 3).Draw(t, "args")...)
	})
	both := rapid.Custom(func(t *rapid.T) locksteward.Message {
		return locksteward.NewMessage(id.Draw(t, "id"), rapid.SliceOfN(rapid.OneOf(plain, part), 0, 4).Draw(t, "args")...)
	})
	list := rapid.OneOf(rapid.Just([]locksteward.Message(nil)), rapid.SliceOfN(both, 0, 9))
	rapid.Check(t, func(rt *rapid.T) {
		known := kinds{}
		for range rapid.IntRange(1, 5).Draw(rt, "findings") {
			f := locksteward.Finding{
				Rule: rapid.SampledFrom([]string{"a/b", "c/d"}).Draw(rt, "rule"), Severity: locksteward.SeverityWarning, Risk: locksteward.RiskDeadlock,
				Status: locksteward.StatusPending, Target: "redis", DB: rapid.IntRange(0, 2).Draw(rt, "db"), Class: "orders", Key: text.Draw(rt, "key"),
				Library: "redlock", Subject: text.Draw(rt, "subject"), Summary: both.Draw(rt, "summary"),
				Evidence: list.Draw(rt, "evidence"), CounterEvidence: list.Draw(rt, "counter-evidence"),
				Cause: locksteward.Literal("c"), Remedy: locksteward.NewMessage("ttl/none.remedy"), Team: "t", RunbookURL: "u", Proof: locksteward.Proven,
				InhibitedBy: rapid.SampledFrom([]string{"", "f0"}).Draw(rt, "by"), Since: time.Unix(1, 2), FiredAt: time.UnixMicro(3).UTC(),
			}
			k := known.keep(f, ScopeLock)
			if got := k.finding(f.Key, f.Subject); !reflect.DeepEqual(got, f) {
				rt.Fatalf("got  %+v\nwant %+v", got, f)
			}
			f.Summary, f.Evidence, f.CounterEvidence = locksteward.Message{}, nil, nil
			if got := k.outline(f.Key, f.Subject); !reflect.DeepEqual(got, f) {
				rt.Fatalf("outline: got %+v\nwant %+v", got, f)
			}
		}
	})
}

// Messages that differ by names and numbers take a fifth of the room of their texts.
func TestMessagesAlikeAreSmall(t *testing.T) {
	t.Parallel()
	known := kinds{}
	find := func(key string, ago time.Duration) (*kept, int) {
		f := locksteward.Finding{
			Rule: TTLNone, Key: key, Summary: message("ttl/none.summary", locksteward.LockName(key)),
			Evidence: []locksteward.Message{
				message("ttl/none.no-expiry"), message("lock.seen", ago, t0, message("count.looks", 2)),
				message("ttl/none.library", "redlock"), holderLine(locksteward.Holder{Host: "web-" + key}),
			},
			CounterEvidence: []locksteward.Message{message("ttl/none.young", ago)},
		}
		n := 0
		for _, m := range slices.Concat([]locksteward.Message{f.Summary}, f.Evidence, f.CounterEvidence) {
			n += len(catalogue.Text("en", m)) + len(catalogue.Text("zh", m))
		}
		return known.keep(f, ScopeLock), n
	}
	find("order:1", 2100*time.Millisecond)
	k, whole := find("invoice:12345", 12*time.Second)
	if len(k.messages) > whole/5 {
		t.Errorf("%d bytes of text take %d", whole, len(k.messages))
	}
	if len(known) != 1 {
		t.Errorf("%d kinds", len(known))
	}
}

// Kinds that are not found again any more do not pile up.
func TestKindsAreBounded(t *testing.T) {
	t.Parallel()
	known := kinds{}
	for i := range 3 * maxKinds {
		known.keep(locksteward.Finding{Rule: "a/b", DB: i}, ScopeLock)
	}
	if len(known) > maxKinds {
		t.Errorf("%d kinds", len(known))
	}
}
