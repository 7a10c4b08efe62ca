package record_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

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
			Seq:        number.Draw(t, "seq"),
			Session:    words().Draw(t, "session"),
			Instance:   words().Draw(t, "instance"),
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
			Trace:         texts().Draw(t, "trace"),
			Offered:       number.Draw(t, "offered"),
			Free:          number.Draw(t, "free"),
		}
		if keys := rapid.SliceOfN(texts(), 0, 5).Draw(t, "holding"); len(keys) > 0 {
			m.Holding = keys
		}
		if rapid.Bool().Draw(t, "lost") {
			m.Lost = &record.Lost{
				ID: words().Draw(t, "lost id"), Holder: words().Draw(t, "lost holder"),
				Fence: number.Draw(t, "lost fence"), Deadline: number.Draw(t, "lost deadline"),
				Offered: rapid.Bool().Draw(t, "lost offered"),
			}
		}
		return m
	})
}

func TestMetaRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := metas().Draw(t, "meta")
		text := want.Encode()
		if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("a client may not be able to read %q", text)
		}
		got, err := record.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if want.Acquired == 0 && want.Fence >= 1e15 {
			want.Acquired = want.Fence / 1000 // the fence contains it
		}
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("got\n%+v\nwant\n%+v", *got, want)
		}
	})
}

// A text that JSON cannot hold is in base64, in a member of its own.
func TestBytesAreBase64(t *testing.T) {
	t.Parallel()
	const bytes = "a\xffb\n"
	m := record.Meta{
		V: record.Version, ID: "A", App: bytes, Host: bytes, Class: bytes, Purpose: bytes, Trace: bytes,
		Holding: []string{"lock:order:42", bytes},
	}
	var raw map[string]any
	if err := json.Unmarshal([]byte(m.Encode()), &raw); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"app", "host", "class", "purpose", "trace"} {
		if raw[name] != nil || raw[name+"_b64"] != b64(bytes) {
			t.Errorf("%s is %q, %s_b64 is %q", name, raw[name], name, raw[name+"_b64"])
		}
	}
	if want := []any{b64("lock:order:42"), b64(bytes)}; raw["holding"] != nil || !reflect.DeepEqual(raw["holding_b64"], want) {
		t.Errorf("holding is %q, holding_b64 is %q", raw["holding"], raw["holding_b64"])
	}
	m.App, m.Holding = "größe <&> \" \\", []string{"日本"}
	text := m.Encode()
	for _, want := range []string{`"app":"größe <&> \" \\"`, `"holding":["日本"]`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s does not have %s", text, want)
		}
	}
}

// The scripts write what is before the id, and splice the tail behind it.
func TestTailBeginsWithTheID(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := metas().Draw(t, "meta")
		tail := m.Tail()
		if !strings.HasPrefix(tail, `"id":"`+m.ID+`"`) {
			t.Fatalf("the tail is %q", tail)
		}
		head := record.Meta{Fence: max(1, m.Fence), Acquired: m.Acquired, Lost: m.Lost, Offered: m.Offered, Free: m.Free, Renewed: m.Renewed, Progress: m.Progress}
		want := m
		want.Fence = head.Fence
		if got := strings.TrimSuffix(head.Encode(), "}") + "," + tail; got != want.Encode() {
			t.Errorf("the parts are\n%s\nwant\n%s", got, want.Encode())
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
		{"42", "", 0},
		{"999999999999999", "", 0},
	} {
		text := `{"fence":"` + c.fence + `",`
		if c.acquired != "" {
			text += `"acquired":"` + c.acquired + `",`
		}
		if m, err := record.Decode(text + `"id":"A","v":2}`); err != nil || m.Acquired != c.want {
			t.Errorf("fence %s, acquired %q: got %d, %v, want %d", c.fence, c.acquired, m.Acquired, err, c.want)
		}
	}
}

// What is malformed is an error that names the member, and the rest is kept.
func TestDecodeIsTolerant(t *testing.T) {
	t.Parallel()
	for member, values := range map[string][]string{
		"fence": {`"1e9"`, `7`, `"-1"`, `"x"`, `"99999999999999999999"`}, "acquired": {`"-1"`, `1767225600000`}, "renewed": {`"1.5"`, `1.5`},
		"progress": {`" 1"`, `true`}, "offered": {`"-5"`, `[]`}, "free": {`"x"`, `5`}, "lost": {`"only two"`, `"A B x 0"`, `"A B 0 -1"`, `{}`},
		"seq": {`-1`, `"1"`, `1.5`}, "renewals": {`"+3"`, `-3`}, "renew_failures": {`1e99`, `-1`}, "holds": {`{}`, `-1`},
		"pid": {`99999999999`, `"4711"`, `-1`}, "ttl": {`"x"`, `-1`}, "renew_every": {`"0x1"`, `-1`}, "expect": {`"0x1"`, `-1`},
		"max_hold": {`[1]`, `-1`}, "ends_with_heartbeat": {`2`, `true`, `-1`}, "v": {`"one"`, `-1`, `4294967296`, `0`},
		"session": {`1`}, "instance": {`{}`}, "class": {`1`}, "purpose": {`[]`, `"` + strings.Repeat("p", record.MaxText+1) + `"`}, "host": {`5`},
		"trace": {`false`}, "app_b64": {`"%"`, `1`}, "holding": {`"a"`, `[1]`, `{}`}, "holding_b64": {`["%"]`, `"a"`}, "trace_b64": {`"%"`},
	} {
		for _, value := range values {
			text := `{"id":"A","app":"billing",`
			if member != "v" {
				text += `"v":2,`
			}
			m, err := record.Decode(text + strconv.Quote(member) + ":" + value + "}")
			if !errors.Is(err, record.ErrMalformed) || !strings.Contains(err.Error(), strconv.Quote(member)) {
				t.Errorf("%s is %.40s: error %v", member, value, err)
			}
			if m == nil || m.ID != "A" || m.App != "billing" {
				t.Errorf("%s is %.40s: the rest is gone: %+v", member, value, m)
			}
			if err != nil && len(err.Error()) > 500 {
				t.Errorf("%s: error of %d bytes", member, len(err.Error()))
			}
		}
	}
	m, err := record.Decode(`{"id":"A","v":2,"ttl":"x","pid":-1,"lost":"B","purpose":"charge"}`)
	for _, member := range []string{"ttl", "pid", "lost"} {
		if err == nil || !strings.Contains(err.Error(), strconv.Quote(member)) {
			t.Errorf("the error does not name %s: %v", member, err)
		}
	}
	if m.Purpose != "charge" || m.V != 2 {
		t.Errorf("the rest is gone: %+v", m)
	}
	for name, text := range map[string]string{
		"empty": "", "no object": "[]", "null": "null", "text": `"x"`, "open": `{"id":"A"`, "more behind": `{"id":"A","v":2}{`,
		"no id": `{"v":2}`, "no version": `{"id":"A"}`, "long": `{"id":"A","v":2,"x":"` + strings.Repeat("x", record.MaxMeta) + `"}`,
	} {
		if m, err := record.Decode(text); !errors.Is(err, record.ErrMalformed) || m == nil || len(err.Error()) > 500 {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A later version is decoded as far as it is known.
	m, err = record.Decode(`{"v":3,"id":"A","color":{"r":[1,2]},"ttl":5}`)
	if err != nil || m.V != 3 || m.TTL != 5 {
		t.Errorf("version 3: %+v, %v", m, err)
	}
}

// Metadata of a free lock with a queue is of no hold.
func TestFreeMarker(t *testing.T) {
	t.Parallel()
	m, err := record.Decode(`{"free":"1767225600000","v":2}`)
	if want := (record.Meta{V: 2, Free: 1767225600000}); err != nil || !reflect.DeepEqual(*m, want) {
		t.Errorf("%+v, %v, want %+v", m, err, want)
	}
	if text := m.Encode(); text != `{"free":"1767225600000","v":2}` {
		t.Errorf("encoded as %s", text)
	}
}

func TestLostOffered(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]record.Lost{
		"A I 7 9":               {ID: "A", Holder: "I", Fence: 7, Deadline: 9},
		"A - 7 9 offered":       {ID: "A", Fence: 7, Deadline: 9, Offered: true},
		"A I 7 9 offered later": {ID: "A", Holder: "I", Fence: 7, Deadline: 9, Offered: true},
		"A I 7 9 later offered": {ID: "A", Holder: "I", Fence: 7, Deadline: 9},
	} {
		m, err := record.Decode(`{"v":2,"id":"B","lost":"` + text + `"}`)
		if err != nil || m.Lost == nil || *m.Lost != want {
			t.Errorf("%q: %+v, %v", text, m.Lost, err)
		}
	}
}

// Whoever wrote it, what is kept is bounded.
func TestDecodeIsBounded(t *testing.T) {
	t.Parallel()
	keys := strings.TrimSuffix(strings.Repeat(`"",`, 1000), ",")
	for _, text := range []string{
		`{"v":2,"id":"A","purpose":"` + strings.Repeat("p", 2*record.MaxText) + `","holding":[` + keys + `]}`,
		`{"v":2,"id":"A","purpose_b64":"` + b64(strings.Repeat("p", 2*record.MaxText)) + `","holding_b64":[` + keys + `]}`,
	} {
		m, err := record.Decode(text)
		if !errors.Is(err, record.ErrMalformed) {
			t.Errorf("error %v", err)
		}
		if m.ID != "A" || len(m.Purpose) != record.MaxText || len(m.Holding) != record.MaxHolding {
			t.Errorf("kept purpose %d, holding %d", len(m.Purpose), len(m.Holding))
		}
	}
	// What the library accepts is read.
	most := record.Meta{
		V: 2, ID: strings.Repeat("I", 32), Session: strings.Repeat("S", 32), Instance: strings.Repeat("X", 26),
		Purpose: strings.Repeat("\"", 4<<10), Holding: slices.Repeat([]string{strings.Repeat("\\", 128)}, 32), Acquired: math.MaxInt64,
	}
	if got, err := record.Decode(most.Encode()); err != nil || !reflect.DeepEqual(*got, most) {
		t.Errorf("%d bytes: %v", len(most.Encode()), err)
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
	if !errors.Is(err, record.ErrMalformed) || i.App != "a" {
		t.Errorf("%+v, %v", i, err)
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"ls2:A:B": "A", record.Value("id-1", "se.cret"): "id-1", "ls2:a:" + strings.Repeat("x", 400): "a",
	} {
		if id, ok := record.ParseValue([]byte(value)); !ok || id != want {
			t.Errorf("%q: %q %t", value, id, ok)
		}
	}
	for _, value := range []string{
		"", "ls2:", "ls2:a", "ls2:a:", "ls2::b", "ls2:a:b:c", "ls1:a:b", "ls3:a:b", "LS2:a:b", " ls2:a:b", "ls2:a b:c", "ls2:a:b\n", "ls2:a:\x00",
		"ls2:a\xff:b", "1", "ls2:" + strings.Repeat("a", record.MaxID+1) + ":b", "ls2:a:" + strings.Repeat("x", record.MaxValue),
	} {
		if id, ok := record.ParseValue([]byte(value)); ok {
			t.Errorf("%q is taken for a value, id %q", value, id)
		}
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]record.Message{
		"lost A":      {Kind: record.MessageLost, ID: "A"},
		"turn A 3":    {Kind: record.MessageTurn, ID: "A", Before: 3},
		"yours A 7 N": {Kind: record.MessageHand, ID: "A", Fence: 7, Nonce: "N"},
	} {
		for _, more := range []string{"", " and more", " by request 7"} {
			if m, ok := record.ParseMessage(text + more); !ok || m != want {
				t.Errorf("%q: %+v %t", text+more, m, ok)
			}
		}
		if want.String() != text {
			t.Errorf("%+v is published as %q, want %q", want, want, text)
		}
	}
	for _, text := range []string{
		"", "lost", "lost ", "free", "LOST A", "free A", " A",
		"yours", "yours A 7", "yours A 7 ", "yours  7 N", "yours A 0 N", "yours A -7 N", "yours A x N", "YOURS A 7 N",
		"turn", "turn A", "turn  3", "turn A -1", "turn A +1", "turn A x", "turn A 65536", "TURN A 0",
	} {
		if m, ok := record.ParseMessage(text); ok || m != (record.Message{}) {
			t.Errorf("%q is taken for a message: %+v", text, m)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "null", "{}", `{"free":"1","v":2}`, `{"id":"A","v":2,"ttl":-1}`, `{"id":"A","v":2,"x":{}}`, `{"ID":"A","V":2,"lost":"A B 1 2 offered"}`} {
		f.Add(s)
	}
	m := record.Meta{V: 2, ID: "A", Fence: 1767225600000123, App: "\xff", Holding: []string{"a", "\x00"}, Lost: &record.Lost{Offered: true}}
	f.Add(m.Encode())
	f.Fuzz(func(t *testing.T, text string) {
		m, err := record.Decode(text)
		if m == nil {
			t.Fatal("nil")
		}
		again := m.Encode()
		if err != nil || len(again) > record.MaxMeta {
			return
		}
		if len(m.Holding) == 0 {
			m.Holding = nil
		}
		if got, err := record.Decode(again); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%+v and again %+v, %v", m, got, err)
		}
	})
}

func FuzzDecodeInstance(f *testing.F) {
	for _, s := range []string{"1", "-1", "", "9223372036854775807", "1 2 3 4 5 6", "x"} {
		f.Add("pid", s, "count:orders", s)
		f.Add("started", s, "later", s)
	}
	f.Fuzz(func(t *testing.T, f1, v1, f2, v2 string) {
		i, err := record.DecodeInstance(map[string]string{"id": "A", f1: v1, f2: v2})
		if i == nil {
			t.Fatal("nil instance")
		}
		if err != nil {
			return
		}
		again, err := record.DecodeInstance(hash(i.Fields()))
		if err != nil || again.ID != i.ID || again.PID != i.PID || len(again.Counts) != len(i.Counts) {
			t.Errorf("%+v and again %+v, %v", i, again, err)
		}
	})
}

func FuzzParseValue(f *testing.F) {
	for _, s := range []string{"ls2:A:B", "ls2::", "1", "ls2:a:b:c"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		id, ok := record.ParseValue(value)
		if ok && !strings.HasPrefix(string(value), "ls2:"+id+":") {
			t.Errorf("%q: id %q", value, id)
		}
	})
}
