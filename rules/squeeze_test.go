package rules

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward"
)

// What is kept of a finding is all of it, whatever the first of its kind looked like.
func TestKeptIsTheFinding(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"", "PTTL is -1: the key never expires", "first seen 2.1s ago, at 2026-11-21T22:10:05Z, in 2 looks",
		"first seen 12s ago, at 2026-11-21T22:10:09Z, in 14 looks", "锁 lock:a 没有过期时间", "锁 lock:abc 没有过期时间", "aaaa", "aaaaaaa",
	}))
	both := rapid.Custom(func(t *rapid.T) locksteward.Text {
		return locksteward.Text{EN: text.Draw(t, "en"), ZH: text.Draw(t, "zh")}
	})
	list := rapid.OneOf(rapid.Just([]locksteward.Text(nil)), rapid.SliceOfN(both, 0, 9))
	rapid.Check(t, func(rt *rapid.T) {
		known := kinds{}
		for range rapid.IntRange(1, 5).Draw(rt, "findings") {
			f := locksteward.Finding{
				Rule: rapid.SampledFrom([]string{"a/b", "c/d"}).Draw(rt, "rule"), Severity: locksteward.SeverityWarning, Risk: locksteward.RiskDeadlock,
				Status: locksteward.StatusPending, Target: "redis", DB: rapid.IntRange(0, 2).Draw(rt, "db"), Class: "orders", Key: text.Draw(rt, "key"),
				Library: "redlock", Subject: text.Draw(rt, "subject"), Summary: both.Draw(rt, "summary"),
				Evidence: list.Draw(rt, "evidence"), CounterEvidence: list.Draw(rt, "counter-evidence"),
				Cause: locksteward.Text{EN: "c"}, Remedy: locksteward.Text{ZH: "r"}, Team: "t", RunbookURL: "u", Proof: locksteward.Proven,
				InhibitedBy: rapid.SampledFrom([]string{"", "f0"}).Draw(rt, "by"), Since: time.Unix(1, 2), FiredAt: time.UnixMicro(3).UTC(),
			}
			k := known.keep(f, ScopeLock)
			if got := k.finding(f.Key, f.Subject); !reflect.DeepEqual(got, f) {
				rt.Fatalf("got  %+v\nwant %+v", got, f)
			}
			f.Summary, f.Evidence, f.CounterEvidence = locksteward.Text{}, nil, nil
			if got := k.outline(f.Key, f.Subject); !reflect.DeepEqual(got, f) {
				rt.Fatalf("outline: got %+v\nwant %+v", got, f)
			}
		}
	})
}

// Texts that differ by names and numbers take a fifth of their room.
func TestTextsAlikeAreSmall(t *testing.T) {
	t.Parallel()
	known := kinds{}
	find := func(key, ago string) (*kept, int) {
		f := locksteward.Finding{
			Rule: TTLNone, Key: key,
			Summary: text("lock %s has no TTL: if its holder is gone, nobody can ever take it again", "锁 %s 没有过期时间：若持有者已不存在，将再也没有人能取得它", key),
			Evidence: []locksteward.Text{
				text("PTTL is -1: the key never expires", "PTTL 为 -1：该键永不过期"),
				text("first seen %s ago, at 2026-11-21T22:10:05Z, in 2 looks", "%s 前首次看到（2026-11-21T22:10:05Z），共看到 2 次", ago),
				text("library redlock", "锁类型 redlock"), holderLine(locksteward.Holder{Host: "web-" + key}),
			},
			CounterEvidence: []locksteward.Text{
				text("first seen only %s ago: a SETNX + EXPIRE pair may be in flight", "%s 前才首次看到：SETNX 与 EXPIRE 可能尚未执行完", ago),
			},
		}
		n := 0
		for _, t := range textsOf(f) {
			n += len(t.EN) + len(t.ZH)
		}
		return known.keep(f, ScopeLock), n
	}
	find("order:1", "2.1s")
	k, whole := find("invoice:12345", "12s")
	if len(k.text) > whole/5 {
		t.Errorf("%d bytes of text take %d", whole, len(k.text))
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
