package record_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
)

var kinds = []record.Kind{
	record.KindHold, record.KindQueue, record.KindWaiter, record.KindUndo, record.KindExec, record.KindWake,
}

// hostile are names that try to be taken for another's, or for a tag.
var hostile = []string{
	"a", "{a}", "{a}:a", "a}b", "{}x", "a{}b{c}", "", "{", "}", "{}", "}{", "{{a}", "{a}}", "a{b", "{a}:", ":{a}", "{a}:{a}",
	"0", "{0}", "123", "{123}:}x", "}x", "locksteward:hold:{a}", "locksteward:hold:{a}:{a}", "hold:{a}", "\x00", "\xff}", " ", "a b", "日本", "{日本}",
}

// names generates keys out of the few bytes that matter.
func names() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom(hostile),
		rapid.StringOf(rapid.SampledFrom([]rune{'a', 'b', '{', '}', ':', '0', '1'})),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
	)
}

func prefixes() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{record.DefaultPrefix, "", "app:", "a", ":"})
}

func TestCompanionsShareTheSlot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key, prefix := names().Draw(t, "key"), prefixes().Draw(t, "prefix")
		for _, kind := range kinds {
			name := record.Companion(prefix, kind, key)
			if record.Slot(name) != record.Slot(key) {
				t.Errorf("%q in slot %d, its companion %q in %d", key, record.Slot(key), name, record.Slot(name))
			}
		}
		if fence := record.FenceKey(prefix, key); record.Slot(fence) != record.Slot(key) {
			t.Errorf("%q in slot %d, its fence %q in %d", key, record.Slot(key), fence, record.Slot(fence))
		}
	})
}

func TestNoTwoLocksShareACompanion(t *testing.T) {
	t.Parallel()
	taken := map[string]string{}
	for _, key := range hostile {
		for _, kind := range kinds {
			name := record.Companion(record.DefaultPrefix, kind, key)
			if other, ok := taken[name]; ok {
				t.Errorf("%q and %q share %q", other, key, name)
			}
			taken[name] = key
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := names().Draw(t, "a"), names().Draw(t, "b")
		ka, kb := rapid.SampledFrom(kinds).Draw(t, "kind a"), rapid.SampledFrom(kinds).Draw(t, "kind b")
		prefix := prefixes().Draw(t, "prefix")
		same := record.Companion(prefix, ka, a) == record.Companion(prefix, kb, b)
		if want := a == b && ka == kb; same != want {
			t.Errorf("companions %s of %q and %s of %q: same %t", ka, a, kb, b, same)
		}
	})
}

func TestParseCompanionIsTheInverse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key, prefix := names().Draw(t, "key"), prefixes().Draw(t, "prefix")
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		name := record.Companion(prefix, kind, key)
		gotKind, gotKey, ok := record.ParseCompanion(prefix, name)
		if !ok || gotKind != kind || gotKey != key {
			t.Errorf("%q parses as %s of %q, %t; want %s of %q", name, gotKind, gotKey, ok, kind, key)
		}
	})
}

func TestParseCompanionRefusesOtherKeys(t *testing.T) {
	t.Parallel()
	for _, name := range append([]string{
		"locksteward:fence:{1}", "locksteward:instance:x", "locksteward:hold:a", "locksteward:hold:{a}b",
		"locksteward:meta:{a}", "locksteward:wait:{a}", "locksteward:grant:{a}",
		"locksteward:hold:{a}:b", "locksteward:hold:{a}:a", "locksteward:other:{a}", "locksteward:hold:{", "locksteward:hold:{}",
		"Locksteward:meta:{a}", "locksteward:hold:{0}:}x", "locksteward:hold:{a}:",
	}, "a", "") {
		if kind, key, ok := record.ParseCompanion(record.DefaultPrefix, name); ok {
			t.Errorf("%q parses as %s of %q", name, kind, key)
		}
	}
	if id, ok := record.ParseInstanceKey("p:", record.InstanceKey("p:", "x")); !ok || id != "x" {
		t.Errorf("instance key: %q %t", id, ok)
	}
	for _, name := range []string{"p:instance:", "p:instanc", "q:instance:x"} {
		if _, ok := record.ParseInstanceKey("p:", name); ok {
			t.Errorf("%q is taken for an instance key", name)
		}
	}
}

// The slot is the server's, for hostile names and for all companions.
func TestSlotIsTheServers(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithConfig("cluster-enabled yes"))
	rdb := srv.Client(t)
	ctx := context.Background()
	check := func(key string) {
		t.Helper()
		want, err := rdb.ClusterKeySlot(ctx, key).Result()
		if err != nil {
			t.Fatal(err)
		}
		if got := record.Slot(key); int64(got) != want {
			t.Errorf("slot of %q: %d, the server says %d", key, got, want)
		}
	}
	keys := slices.Clone(hostile)
	for i := range 300 {
		keys = append(keys, fmt.Sprintf("lock:%d", i), strings.Repeat("}x{", i%7)+fmt.Sprint(i))
	}
	for _, key := range keys {
		check(key)
		for _, kind := range kinds {
			check(record.Companion(record.DefaultPrefix, kind, key))
		}
		check(record.FenceKey(record.DefaultPrefix, key))
	}
}

func FuzzParseCompanion(f *testing.F) {
	for _, key := range hostile {
		f.Add(record.DefaultPrefix, record.Companion(record.DefaultPrefix, record.KindHold, key))
		f.Add("", key)
	}
	f.Fuzz(func(t *testing.T, prefix, name string) {
		kind, key, ok := record.ParseCompanion(prefix, name)
		if ok && record.Companion(prefix, kind, key) != name {
			t.Errorf("%q parses as %s of %q, whose companion is %q", name, kind, key, record.Companion(prefix, kind, key))
		}
	})
}
