package record_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward/lock/record"
)

// ids are ids as they stand between spaces.
func ids() *rapid.Generator[string] {
	return rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[A-Z2-7]{1,32}`))
}

func TestWaiterRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := record.Waiter{
			Session: ids().Draw(t, "session"), Instance: ids().Draw(t, "instance"),
			Since: rapid.Int64Min(0).Draw(t, "since"), Until: rapid.Int64Min(0).Draw(t, "until"),
		}
		got, err := record.ParseWaiter(w.Encode())
		if err != nil || got != w {
			t.Errorf("%+v became %+v, %v", w, got, err)
		}
		if later, err := record.ParseWaiter(w.Encode() + " 150 NONCE ls2:A:B \"id\":\"A\"}"); err != nil || later != w {
			t.Errorf("with what the script writes behind: %+v, %v", later, err)
		}
	})
}

// Who waits is known by what it would write as a holder; what is cut off or no metadata costs no more than that.
func TestWhoWaits(t *testing.T) {
	t.Parallel()
	const begin = "- I 1 2 150 NONCE34 ls2:A:B "
	want := record.Waiter{Instance: "I", Since: 1, Until: 2, App: "pay worker", Host: "vm", PID: 7}
	if w, err := record.ParseWaiter(begin + `"id":"A","v":2,"app":"pay worker","host":"vm","pid":7,"ttl":30000}`); err != nil || w != want {
		t.Errorf("%+v, %v, want %+v", w, err, want)
	}
	want = record.Waiter{Instance: "I", Since: 1, Until: 2}
	for _, metadata := range []string{"", `"id":"A","app":"x`, `"app":"` + strings.Repeat("x", record.MaxText) + `"}`, "}", "nonsense"} {
		if w, err := record.ParseWaiter(begin + metadata); err != nil || w != want {
			t.Errorf("%.40s: %+v, %v, want %+v", metadata, w, err, want)
		}
	}
}

func TestParseWaiterRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "S", "S I", "S I 1", "S I x 1", "S I 1 x", "S I -1 1", "S I 1 +1", "S I 99999999999999999999 1",
		"S  1 1", "S I 1\n 1", strings.Repeat("x", 1<<20),
	} {
		if w, err := record.ParseWaiter(text); !errors.Is(err, record.ErrMalformed) || w != (record.Waiter{}) {
			t.Errorf("%.40q: %+v, %v", text, w, err)
		} else if len(err.Error()) > 300 {
			t.Errorf("%.40q: an error of %d bytes", text, len(err.Error()))
		}
	}
}

// NamesOf is a faster way to the same names.
func TestNamesOfAgreesWithCompanion(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key, prefix := names().Draw(t, "key"), prefixes().Draw(t, "prefix")
		want := record.Names{
			Hold: record.Companion(prefix, record.KindHold, key), Fence: record.FenceKey(prefix, key),
			Queue: record.Companion(prefix, record.KindQueue, key), Waiter: record.Companion(prefix, record.KindWaiter, key),
			Wake: record.Companion(prefix, record.KindWake, key),
		}
		if got := record.NamesOf(prefix, key); got != want {
			t.Errorf("%q, %q:\n%q\nwant\n%q", prefix, key, got, want)
		}
	})
}

func TestCountsInTheHeartbeat(t *testing.T) {
	t.Parallel()
	counts := map[string]record.Counts{
		"": {Acquired: 1}, "orders": {Acquired: math.MaxInt64, Failed: 2, Contended: 3, Renewed: 4, RenewFailures: 5, Lost: 6},
		record.OtherClasses: {Lost: 1}, "a b\n:": {Failed: 7},
	}
	i := record.Instance{ID: "I", Counts: counts}
	got, err := record.DecodeInstance(hash(i.Fields()))
	if err != nil || fmt.Sprint(got.Counts) != fmt.Sprint(counts) {
		t.Errorf("%v, %v", got.Counts, err)
	}
	fields := map[string]string{"id": "I", "count:x": "1 2 3 4 5 6 7 8", "count:bad": "1 2", "count:worse": "1 2 3 4 5 -6"}
	got, err = record.DecodeInstance(fields)
	if !errors.Is(err, record.ErrMalformed) || len(got.Counts) != 1 || got.Counts["x"].Lost != 6 {
		t.Errorf("%v, %v", got.Counts, err)
	}
	for n := range 1000 {
		fields[fmt.Sprintf("count:%d", n)] = "1 1 1 1 1 1"
	}
	got, err = record.DecodeInstance(fields)
	if !errors.Is(err, record.ErrMalformed) || len(got.Counts) > record.MaxClasses+1 {
		t.Errorf("%d classes, %v", len(got.Counts), err)
	}
}

func FuzzParseWaiter(f *testing.F) {
	for _, s := range []string{"S I 1 2", "- - 0 0", "S I 1", "  1 1", "S I 1 2 3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w, err := record.ParseWaiter(text)
		if err != nil {
			return
		}
		if again, err := record.ParseWaiter(w.Encode()); err != nil || again != w {
			t.Errorf("%+v became %+v, %v", w, again, err)
		}
	})
}

func FuzzNames(f *testing.F) {
	for _, s := range hostile {
		f.Add("locksteward:", s)
	}
	f.Fuzz(func(t *testing.T, prefix, key string) {
		if strings.ContainsAny(prefix, "{}") {
			return
		}
		n := record.NamesOf(prefix, key)
		for _, name := range []string{n.Hold, n.Queue, n.Waiter, n.Wake, n.Fence} {
			if record.Slot(name) != record.Slot(key) {
				t.Errorf("%q in slot %d, its companion %q in %d", key, record.Slot(key), name, record.Slot(name))
			}
		}
		if _, back, ok := record.ParseCompanion(prefix, n.Hold); !ok || back != key {
			t.Errorf("%q came back as %q, %t", key, back, ok)
		}
	})
}
