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
	list := rapid.OneOf(rapid.Just([]string(nil)), rapid.SliceOfN(text, 0, 9))
	rapid.Check(t, func(rt *rapid.T) {
		known := kinds{}
		for range rapid.IntRange(1, 5).Draw(rt, "findings") {
			f := locksteward.Finding{
				Rule: rapid.SampledFrom([]string{"a/b", "c/d"}).Draw(rt, "rule"), Severity: locksteward.SeverityWarning, Risk: locksteward.RiskDeadlock,
				Status: locksteward.StatusPending, Target: "redis", DB: rapid.IntRange(0, 2).Draw(rt, "db"), Class: "orders", Key: text.Draw(rt, "key"),
				Dialect: "redlock", Subject: text.Draw(rt, "subject"), Summary: locksteward.Text{EN: text.Draw(rt, "en"), ZH: text.Draw(rt, "zh")},
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
			Evidence: []string{
				"PTTL is -1: the key never expires", "first seen " + ago + " ago, at 2026-11-21T22:10:05Z, in 2 looks", "dialect redlock", "holder: host web-" + key,
			},
			CounterEvidence: []string{"first seen only " + ago + " ago: a SETNX + EXPIRE pair may be in flight"},
		}
		n := 0
		for _, l := range linesOf(f) {
			n += len(l)
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
