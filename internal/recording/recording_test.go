package recording

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/rules"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 123_000_000, time.UTC)

// fill sets every field of v to something that is not zero, and texts to bytes
// that no JSON has.
func fill(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch {
	case v.Type() == timeType:
		v.Set(reflect.ValueOf(t0.Add(time.Duration(*n) * time.Millisecond)))
		return
	case v.Type() == durationType:
		v.SetInt(int64(time.Duration(*n) * time.Microsecond))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for f, field := range v.Fields() {
			if f.IsExported() {
				fill(t, field, n)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, v.Index(i), n)
		}
	case reflect.Map:
		item := reflect.New(v.Type().Elem()).Elem()
		fill(t, item, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("cl\xffass"), item)
	case reflect.String:
		v.SetString([]string{"plain", "\xff\x00\n\"", "base64:x", "锁", ""}[*n%5] + fmt.Sprint(*n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.25)
	case reflect.Int, reflect.Int64:
		v.SetInt(-int64(*n))
	default:
		t.Fatalf("the codec does not know %s: add it", v.Type())
	}
}

func whole(t *testing.T) locksteward.Sweep {
	t.Helper()
	var s locksteward.Sweep
	n := 0
	fill(t, reflect.ValueOf(&s).Elem(), &n)
	s.Target = "redis"
	return s
}

func read(t *testing.T, raw []byte) []Look {
	t.Helper()
	var out []Look
	for look, err := range Read(bytes.NewReader(raw)) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, look)
	}
	return out
}

func write(t *testing.T, looks ...Look) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, "test", t0)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range looks {
		if err := w.Write(l); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// TestRoundTrip: every fact of every noun survives, whatever bytes it has; a fact
// that is added to the nouns is recorded without a change here.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	empty := locksteward.Sweep{Target: "other", At: t0}
	none := locksteward.Sweep{Target: "redis", At: t0, Masters: []locksteward.MasterPass{{Node: "n", Reason: "timeout"}}, Locks: []locksteward.Lock{
		{Observation: locksteward.Observation{
			Target: "redis", Key: "k", Type: "string", At: t0, Kind: locksteward.KindLock, Library: "token",
			TTL: locksteward.NoExpiry, ExpireAt: locksteward.NoExpireAt, Idle: -1, Waiters: -1,
		}},
	}}
	want := []Look{{Sweep: whole(t)}, {Direct: true, Sweep: whole(t)}, {Direct: true, Sweep: empty}, {Sweep: none}}
	raw := write(t, want...)
	got := read(t, raw)
	if len(got) != len(want) {
		t.Fatalf("%d looks, want %d", len(got), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("look %d:\n got %+v\nwant %+v", i, got[i], want[i])
		}
	}
	if again := write(t, got...); !bytes.Equal(again, raw) {
		t.Error("written again it differs")
	}
}

// A sweep that reached no master says nothing of other locks.
func TestSweepWithoutMastersIsDirect(t *testing.T) {
	t.Parallel()
	got := read(t, write(t, Look{Sweep: locksteward.Sweep{Target: "redis", At: t0}}))
	if len(got) != 1 || !got[0].Direct {
		t.Errorf("got %+v", got)
	}
}

const header1 = `{"format": "locksteward-recording", "version": 1}` + "\n"

func TestReadByHand(t *testing.T) {
	t.Parallel()
	got := read(t, []byte(header1+`
{"look": "sweep", "at": "2026-03-01T12:00:00Z"}
{"lock": {"key": "lock:a", "ttl": "none", "waiters": 3, "holder": {"host": "web-3"}}}

{"look": "direct", "at": "2026-03-01T12:00:03+01:00", "target": "orders"}`))
	if len(got) != 2 || !got[0].Sweep.Complete() || got[0].Sweep.Target != "redis" || !got[1].Direct || got[1].Sweep.Target != "orders" {
		t.Fatalf("got %+v", got)
	}
	l := got[0].Sweep.Locks[0]
	if l.TTL != locksteward.NoExpiry || !l.At.Equal(got[0].Sweep.At) || l.Kind != locksteward.KindLock || l.Type != "string" ||
		l.Library != "token" || l.Target != "redis" || l.Holder.Host != "web-3" || l.Waiters != 3 {
		t.Errorf("lock %+v", l)
	}
}

func TestBadRecordings(t *testing.T) {
	t.Parallel()
	look := `{"look": "sweep", "at": "2026-03-01T12:00:00Z"}` + "\n"
	for text, want := range map[string]string{
		"":                              "line 1: empty; record one",
		"targets: []":                   "line 1: is not a recording",
		`{"format": "x", "version": 1}`: "line 1: is not a recording",
		`{"format": "locksteward-recording", "version": 2, "program": "locksteward 9"}`: "line 1: a recording of version 2, this program reads 1; use the program that wrote it (locksteward 9)",

		header1 + `{"lock": {}}`: "line 2: a lock without its look",

		header1 + `{"look": "glance", "at": "2026-03-01T12:00:00Z"}`:                 `line 2: look: got "glance", write sweep or direct`,
		header1 + `{"look": "sweep"}`:                                                "line 2: at: missing",
		header1 + look + `{"lock": {"tll": "1s"}}`:                                   "line 3: lock.tll: unknown field; write one of absence, acquired, asked, at, claim",
		header1 + look + `{"lock": {"ttl": 1}}`:                                      `line 3: lock.ttl: got "1", write a duration such as 30s, or none`,
		header1 + look + `{"lock": {"at": "noon"}}`:                                  `line 3: lock.at: got "noon", write a time`,
		header1 + look + `{"lock": {"db": 1.5}}`:                                     `line 3: lock.db: got "1.5", write a whole number`,
		header1 + look + `{"lock": {"db": "1"}}`:                                     `line 3: lock.db: got "1", write a number`,
		header1 + look + `{"lock": {"key": 1}}`:                                      `line 3: lock.key: got "1", write a text`,
		header1 + look + `{"lock": {"key": "base64:!"}}`:                             `line 3: lock.key: got "base64:!", write standard base64`,
		header1 + look + `{"lock": {"too_large": 1}}`:                                `line 3: lock.too_large: got "1", write true or false`,
		header1 + look + `{"lock": {"claim": []}}`:                                   `line 3: lock.claim: got "[]", write an object`,
		header1 + look + `{"lock": {"claim": {"holding": [1]}}}`:                     `line 3: lock.claim.holding[0]: got "1", write a text`,
		header1 + look + `{"lock": {"instance": {"counts": [1]}}}`:                   `line 3: lock.instance.counts: got "[1]", write an object`,
		header1 + look + `{"lock": {}, "loss": {}}`:                                  "line 3: got 2 things",
		header1 + look + `{}`:                                                        "line 3: got 0 things",
		header1 + look + `{"locks": []}`:                                             "line 3: locks: unknown; write one of look, ",
		header1 + look + `[]`:                                                        "line 3: not an object",
		header1 + `{"look": "sweep", "locks": []}`:                                   "line 2: locks: unknown field; write one of at, candidates",
		header1 + look + `{"lock": {}} {"lock": {}}`:                                 "line 3: more than one JSON value",
		header1 + look + `{"lock": `:                                                 "line 3: not JSON",
		header1 + look + `{"lock": {"key": "` + strings.Repeat("x", MaxLine) + `"}}`: "line 3: longer than 4194304 bytes",
	} {
		var last error
		for _, err := range Read(strings.NewReader(text)) {
			if last != nil {
				t.Errorf("%.60q: a pair behind the error", text)
			}
			last = err
		}
		if last == nil || !strings.HasPrefix(last.Error(), want) {
			t.Errorf("%.60q:\n got %v\nwant %s", text, last, want)
		}
	}
}

func TestReadStopsWhenAsked(t *testing.T) {
	t.Parallel()
	raw := write(t, Look{Sweep: whole(t)}, Look{Sweep: whole(t)})
	n := 0
	for range Read(bytes.NewReader(raw)) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d looks", n)
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) time.Time { return t0.Add(d) }
	lock := func(key string, d time.Duration, ttl time.Duration) locksteward.Lock {
		return locksteward.Lock{
			Observation: locksteward.Observation{
				Target: "redis", Key: key, Type: "string", At: at(d), TTL: ttl, Kind: locksteward.KindLock, Class: "recorded",
				Library: "token", Confidence: locksteward.ConfidenceHigh, Identity: locksteward.IdentityStrong, TokenDigest: "x", Idle: -1, Waiters: -1,
			},
			History: locksteward.History{FirstSeen: t0, LastSeen: at(d), Looks: 2},
		}
	}
	complete := []locksteward.MasterPass{{Complete: true}}
	recorded := func() []Look {
		return []Look{
			{Sweep: locksteward.Sweep{Target: "redis", At: t0, Masters: complete, Locks: []locksteward.Lock{
				lock("batch:a", 0, time.Hour), lock("batch:b", 0, time.Hour), lock("x", 0, locksteward.NoExpiry),
			}}},
			{Direct: true, Sweep: locksteward.Sweep{Target: "redis", At: at(3 * time.Second), Locks: []locksteward.Lock{lock("x", 3*time.Second, locksteward.NoExpiry)}}},
			{Sweep: locksteward.Sweep{Target: "redis", At: at(time.Hour), Masters: complete, Locks: []locksteward.Lock{
				lock("batch:a", time.Hour, time.Hour), lock("x", time.Hour, locksteward.NoExpiry),
			}, Endings: []locksteward.Ending{{Lock: lock("batch:b", 0, time.Hour), How: locksteward.EndedReleased, At: at(time.Hour)}}}},
		}
	}
	classes, err := class.NewSet([]class.Class{{Name: "batch", Match: []string{"batch:*"}, DeadWhen: []string{"custom/old", "lock.age > duration('50m')"}}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := rules.Config{{Rule: "custom/old", When: "lock.class == 'batch' && lock.age > duration('30m')"}}
	got, err := Replay(each(recorded(), nil), cfg, classes, nil)
	if err != nil {
		t.Fatal(err)
	}
	var reported []string
	for _, tr := range got.Transitions {
		reported = append(reported, fmt.Sprintf("%s %s %s %s", tr.At.Sub(t0), tr.Finding.Status, tr.Finding.Rule, tr.Finding.Key))
	}
	if want := []string{"3s firing ttl/none x", "1h0m0s firing custom/old batch:a"}; !slices.Equal(reported, want) {
		t.Errorf("reported %q, want %q", reported, want)
	}
	if got.Looks != 3 || got.Locks != 3 || got.To.Sub(got.From) != time.Hour || len(got.Findings) != 2 {
		t.Errorf("replayed %+v", got)
	}
	if len(got.Dead) != 1 || got.Dead[0].Lock.Key != "batch:a" || !slices.Equal(got.Dead[0].Because, cfgDead) {
		t.Errorf("dead %+v", got.Dead)
	}
	// Without a configuration the recorded class stays.
	if got, err = Replay(each(recorded(), nil), nil, nil, nil); err != nil || len(got.Findings) != 1 || got.Findings[0].Class != "recorded" {
		t.Errorf("replayed %+v, %v", got.Findings, err)
	}
	// A broken recording is an error, not half a result.
	if _, err := Replay(each(recorded(), fmt.Errorf("cut")), nil, nil, nil); err == nil {
		t.Error("no error")
	}
	if _, err := Replay(each(recorded(), nil), rules.Config{{Rule: "nope"}}, nil, nil); err == nil {
		t.Error("no error for a bad configuration")
	}
}

// A Redlock is judged over the looks at all its masters: those of one recording,
// each with its target.
func TestReplayJudgesRedlocks(t *testing.T) {
	t.Parallel()
	looks := []byte(header1)
	for n, target := range []string{"b", "c", "a", "b", "c", "a"} {
		looks = fmt.Appendf(looks, `{"look": "sweep", "target": %q, "at": %q, "duration": "500ms"}`+"\n", target, t0.Add(time.Duration(n+1)*time.Second).Format(time.RFC3339))
		if target == "a" {
			looks = append(looks, `{"lock": {"key": "lock:x", "ttl": "30s", "token_digest": "d"}}`+"\n"...)
		}
	}
	redlock := []rules.Redlock{{Name: "payments", Targets: []string{"a", "b", "c"}}}
	got, err := Replay(Read(bytes.NewReader(looks)), nil, nil, redlock)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Findings) != 1 || got.Findings[0].Rule != "redlock/minority" || got.Findings[0].Target != "a" {
		t.Errorf("with its masters: %+v", got.Findings)
	}
	if got, err := Replay(Read(bytes.NewReader(looks)), nil, nil, nil); err != nil || len(got.Findings) != 0 {
		t.Errorf("without: %+v, %v", got.Findings, err)
	}
}

var cfgDead = []string{"custom/old", "lock.age > duration('50m')"}

func each(looks []Look, err error) iter.Seq2[Look, error] {
	return func(yield func(Look, error) bool) {
		for _, l := range looks {
			if !yield(l, nil) {
				return
			}
		}
		if err != nil {
			yield(Look{}, err)
		}
	}
}

func TestSnake(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Key": "key", "DB": "db", "ExpireAt": "expire_at", "LastSaveOK": "last_save_ok", "PID": "pid", "TTL": "ttl",
		"CPUSys": "cpu_sys", "ReplicationID": "replication_id", "RenewEvery": "renew_every", "WarnTTLBelow": "warn_ttl_below",
	} {
		if got := snake(name); got != want {
			t.Errorf("snake(%s) = %s, want %s", name, got, want)
		}
	}
}

// TestDocsHaveEveryField holds docs/recording.md to the format.
func TestDocsHaveEveryField(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/recording.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range []any{header{}, locksteward.Lock{}, locksteward.Ending{}, locksteward.Loss{}, locksteward.MasterPass{}} {
		for name := range fieldsOf(reflect.ValueOf(v)) {
			names = append(names, name)
		}
	}
	for field := range sweepType.Fields() {
		if !field.IsExported() {
			continue
		}
		if name := snake(field.Name); isList(singular(name)) {
			names = append(names, singular(name))
		} else {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if !strings.Contains(string(raw), "`"+name+"`") {
			t.Errorf("docs/recording.md does not have `%s`", name)
		}
	}
	_, example, ok := strings.Cut(string(raw), "```jsonl\n")
	example, _, closed := strings.Cut(example, "```")
	if !ok || !closed || len(read(t, []byte(example))) == 0 {
		t.Error("docs/recording.md has no example that can be read")
	}
}

// FuzzRead: no recording makes the reader panic, and what it reads it writes so
// that it is read the same.
func FuzzRead(f *testing.F) {
	f.Add([]byte(header1 + `{"look": "sweep", "at": "2026-03-01T12:00:00Z"}` + "\n" + `{"lock": {"key": "base64:/w==", "ttl": "none", "claim": {"holding": ["a"]}}}`))
	f.Add([]byte(header1 + `{"look": "direct", "at": "2026-03-01T12:00:00Z", "masters": []}` + "\n" + `{"instance": {"counts": {"a": {"acquired": 1}}}}`))
	f.Add([]byte("\n\n{"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var looks []Look
		for look, err := range Read(bytes.NewReader(raw)) {
			if err != nil {
				return
			}
			looks = append(looks, look)
		}
		first := write(t, looks...)
		if second := write(t, read(t, first)...); !bytes.Equal(first, second) {
			t.Errorf("not the same:\n%s\n%s", first, second)
		}
	})
}
