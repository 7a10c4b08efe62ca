package record_test

import (
	"errors"
	"maps"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward/lock/record"
)

// hash turns the list for HSET into what HGETALL gives.
func hash(list []any) map[string]string {
	fields := map[string]string{}
	for i := 0; i < len(list); i += 2 {
		fields[list[i].(string)] = list[i+1].(string)
	}
	return fields
}

func texts() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 40), func(b []byte) string { return string(b) })
}

func words() *rapid.Generator[string] { return rapid.StringMatching(`[A-Za-z0-9_]{0,20}`) }

func metas() *rapid.Generator[record.Meta] {
	return rapid.Custom(func(t *rapid.T) record.Meta {
		number := rapid.Int64Range(0, math.MaxInt64)
		m := record.Meta{
			V:          rapid.IntRange(1, 100).Draw(t, "v"),
			ID:         rapid.StringMatching(`[A-Z2-7]{26}`).Draw(t, "id"),
			Session:    texts().Draw(t, "session"),
			Instance:   texts().Draw(t, "instance"),
			App:        texts().Draw(t, "app"),
			Host:       texts().Draw(t, "host"),
			PID:        rapid.IntRange(0, math.MaxInt32).Draw(t, "pid"),
			Class:      texts().Draw(t, "class"),
			Purpose:    texts().Draw(t, "purpose"),
			Acquired:   number.Draw(t, "acquired"),
			TTL:        number.Draw(t, "ttl"),
			RenewEvery: number.Draw(t, "renew_every"),
			Expect:     number.Draw(t, "expect"),
			MaxHold:    number.Draw(t, "max_hold"),

			EndsWithHeartbeat: rapid.Int64Range(0, 1).Draw(t, "ends_with_heartbeat"),

			Renewed:       number.Draw(t, "renewed"),
			Renewals:      number.Draw(t, "renewals"),
			RenewFailures: number.Draw(t, "renew_failures"),
			Progress:      number.Draw(t, "progress"),
			Fence:         number.Draw(t, "fence"),
			Holds:         number.Draw(t, "holds"),
			Contended:     number.Draw(t, "contended"),
			Trace:         texts().Draw(t, "trace"),
		}
		if keys := rapid.SliceOfN(texts(), 0, 5).Draw(t, "holding"); len(keys) > 0 {
			m.Holding = keys
		}
		if rapid.Bool().Draw(t, "lost") {
			m.Lost = &record.Lost{
				ID: words().Draw(t, "lost id"), Holder: words().Draw(t, "lost holder"),
				Fence: number.Draw(t, "lost fence"), Deadline: number.Draw(t, "lost deadline"),
			}
		}
		if rapid.Bool().Draw(t, "unknown") {
			m.Unknown = map[string]string{"x_later": rapid.StringMatching(`.{1,20}`).Draw(t, "later")}
		}
		return m
	})
}

func TestMetaRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := metas().Draw(t, "meta")
		got, err := record.Decode(hash(want.Fields()))
		if err != nil {
			t.Fatal(err)
		}
		if want.Acquired == 0 && want.Fence >= 1e15 {
			want.Acquired = want.Fence / 1000 // the fence says it
		}
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("got\n%+v\nwant\n%+v", *got, want)
		}
	})
}

// A fence of the time tells when the lock was taken; one that is no time, or
// beside which the metadata says it, does not.
func TestAcquiredByFence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fence, acquired string
		want            int64
	}{
		{"1767225600000123", "", 1767225600000},
		{"1767225600000123", "1767225599000", 1767225599000},
		{"1767225600000123", "x", 0},
		{"42", "", 0},
		{"999999999999999", "", 0},
	} {
		fields := map[string]string{"id": "A", "fence": c.fence}
		if c.acquired != "" {
			fields["acquired"] = c.acquired
		}
		if m, _ := record.Decode(fields); m.Acquired != c.want {
			t.Errorf("fence %s, acquired %q: got %d, want %d", c.fence, c.acquired, m.Acquired, c.want)
		}
	}
}

// What is malformed is an error that names the field, and the rest is kept.
func TestDecodeIsTolerant(t *testing.T) {
	t.Parallel()
	good := map[string]string{"v": "1", "id": "A", "fence": "7", "app": "billing"}
	for field, value := range map[string]string{
		"pid": "99999999999", "ttl": "x", "acquired": "-1", "renewed": "1.5", "renewals": "+3", "fence": "1e9",
		"holding": "5:ab", "lost": "only two", "contended": strings.Repeat("9", 1000), "progress": " 1", "v": "one", "expect": "0x1",
	} {
		fields := maps.Clone(good)
		fields[field] = value
		m, err := record.Decode(fields)
		if !errors.Is(err, record.ErrMalformed) || !strings.Contains(err.Error(), strconv.Quote(field)) {
			t.Errorf("%s=%q: error %v", field, value, err)
		}
		if m == nil || m.ID != "A" || m.App != "billing" {
			t.Errorf("%s=%q: the rest is gone: %+v", field, value, m)
		}
		if err != nil && len(err.Error()) > 500 {
			t.Errorf("%s: error of %d bytes", field, len(err.Error()))
		}
	}
	for name, fields := range map[string]map[string]string{"nil": nil, "no id": {"v": "1"}, "no version": {"id": "A"}} {
		if m, err := record.Decode(fields); !errors.Is(err, record.ErrMalformed) || m == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A later version is decoded as far as it is known.
	m, err := record.Decode(map[string]string{"v": "2", "id": "A", "colour": "red"})
	if err != nil || m.V != 2 || m.Unknown["colour"] != "red" {
		t.Errorf("version 2: %+v, %v", m, err)
	}
}

// Whoever wrote it, what is kept is bounded.
func TestDecodeIsBounded(t *testing.T) {
	t.Parallel()
	fields := map[string]string{"v": "1", "id": "A", "purpose": strings.Repeat("p", 1<<20), "holding": strings.Repeat("0: ", 100000)}
	for i := range 10000 {
		fields["field"+strconv.Itoa(i)] = strings.Repeat("x", 10000)
	}
	m, err := record.Decode(fields)
	if !errors.Is(err, record.ErrMalformed) {
		t.Errorf("error %v", err)
	}
	if len(m.Purpose) != record.MaxText || len(m.Holding) != record.MaxHolding || len(m.Unknown) != record.MaxUnknown {
		t.Errorf("kept purpose %d, holding %d, unknown %d", len(m.Purpose), len(m.Holding), len(m.Unknown))
	}
	for _, v := range m.Unknown {
		if len(v) > record.MaxText {
			t.Errorf("kept an unknown field of %d bytes", len(v))
		}
	}
}

func TestInstanceRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := record.Instance{
			ID: rapid.StringMatching(`[A-Z2-7]{26}`).Draw(t, "id"), App: texts().Draw(t, "app"), Host: texts().Draw(t, "host"),
			PID: rapid.IntRange(0, math.MaxInt32).Draw(t, "pid"), Started: rapid.Int64Range(0, math.MaxInt64).Draw(t, "started"),
			Slot: texts().Draw(t, "slot"),
		}
		got, err := record.DecodeInstance(hash(want.Fields()))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("got %+v, want %+v", *got, want)
		}
	})
	i, err := record.DecodeInstance(map[string]string{"pid": "x", "app": "a", "more": "1"})
	if !errors.Is(err, record.ErrMalformed) || i.App != "a" || i.Unknown["more"] != "1" {
		t.Errorf("%+v, %v", i, err)
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"ls1:A:B": "A", record.Value("id-1", "se.cret"): "id-1", "ls1:a:" + strings.Repeat("x", 400): "a",
	} {
		if id, ok := record.ParseValue([]byte(value)); !ok || id != want {
			t.Errorf("%q: %q %t", value, id, ok)
		}
	}
	for _, value := range []string{
		"", "ls1:", "ls1:a", "ls1:a:", "ls1::b", "ls1:a:b:c", "ls2:a:b", "LS1:a:b", " ls1:a:b", "ls1:a b:c", "ls1:a:b\n", "ls1:a:\x00",
		"ls1:a\xff:b", "1", "ls1:" + strings.Repeat("a", record.MaxID+1) + ":b", "ls1:a:" + strings.Repeat("x", record.MaxValue),
	} {
		if id, ok := record.ParseValue([]byte(value)); ok {
			t.Errorf("%q is taken for a value, id %q", value, id)
		}
	}
	if id, ok := record.ParseLostMessage(record.LostMessage("A")); !ok || id != "A" {
		t.Errorf("lost message: %q %t", id, ok)
	}
	if id, ok := record.ParseLostMessage("lost A by request 7"); !ok || id != "A" {
		t.Errorf("later lost message: %q %t", id, ok)
	}
	grant := record.Grant{ID: "A", Fence: 7, Mark: "M1"}
	if g, ok := record.ParseGrantMessage(record.GrantMessage(grant)); !ok || g != grant {
		t.Errorf("grant message: %+v %t", g, ok)
	}
	for _, m := range []string{"", "lost", "lost ", "free", "LOST A"} {
		if _, ok := record.ParseLostMessage(m); ok {
			t.Errorf("%q is taken for a lost message", m)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"1", "-1", "", "9223372036854775807", "A B 1 2", "1:a 2:bb", "99:", "x"} {
		f.Add("ttl", s, "lost", s)
		f.Add("holding", s, "v", s)
	}
	f.Fuzz(func(t *testing.T, f1, v1, f2, v2 string) {
		fields := map[string]string{"v": "1", "id": "A", f1: v1, f2: v2}
		m, err := record.Decode(fields)
		if m == nil {
			t.Fatal("nil")
		}
		if err == nil {
			again, err := record.Decode(hash(m.Fields()))
			if err != nil {
				t.Fatalf("what was decoded does not decode: %v", err)
			}
			if again.ID != m.ID || again.TTL != m.TTL || len(again.Holding) != len(m.Holding) {
				t.Errorf("%+v and again %+v", m, again)
			}
		}
		if i, _ := record.DecodeInstance(fields); i == nil {
			t.Fatal("nil instance")
		}
	})
}

func FuzzParseValue(f *testing.F) {
	for _, s := range []string{"ls1:A:B", "ls1::", "1", "ls1:a:b:c"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		id, ok := record.ParseValue(value)
		if ok && !strings.HasPrefix(string(value), "ls1:"+id+":") {
			t.Errorf("%q: id %q", value, id)
		}
	})
}
