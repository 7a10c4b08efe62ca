package formats_test

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// fixture is one file of testdata/<format>/.
type fixture struct {
	About    string            `json:"about"`
	Key      string            `json:"key"`
	KeyB64   string            `json:"key_b64"`
	Type     string            `json:"type"`
	TTLMs    int64             `json:"ttl_ms"`
	Value    string            `json:"value"`
	ValueB64 string            `json:"value_b64"`
	Fields   map[string]string `json:"fields"`
	Members  []fixtureMember   `json:"members"`
	Beside   map[string]struct {
		Size  int64  `json:"size"`
		Value string `json:"value"`
	} `json:"beside"`
	Size     *int64          `json:"size"` // absent: that of value, fields or members
	TooLarge bool            `json:"too_large"`
	Meta     json.RawMessage `json:"meta"`
	Want     struct {
		Library    string `json:"library"` // of a near miss: what it is instead of the folder's
		Kind       string `json:"kind"`    // lock, candidate or none, without configuration
		Confidence locksteward.Confidence
		Identity   locksteward.Identity
		Holder     struct {
			App, Host, Session, Instance string
			PID                          int
		}
		Count        int64 // 0 stands for 1
		Waiters      *int  // absent stands for -1
		Fence        int64
		Mode         string
		Acquired     time.Time // as the value says
		Shared       bool
		TokenKind    string `json:"token_kind"`
		RenewEveryMs int64  `json:"renew_every_ms"`
		Claim        string // id
		Releasable   bool
	} `json:"want"`
}

// fixtureMember is a formats.Member whose name may be any bytes.
type fixtureMember struct {
	Name    string  `json:"name"`
	NameB64 string  `json:"name_b64"`
	Score   float64 `json:"score"`
}

func (f fixture) sample(t *testing.T) formats.Sample {
	t.Helper()
	s := formats.Sample{
		Key:       unbase(t, f.Key, f.KeyB64),
		Type:      f.Type,
		TTL:       time.Duration(f.TTLMs) * time.Millisecond,
		TooLarge:  f.TooLarge,
		Value:     []byte(unbase(t, f.Value, f.ValueB64)),
		Fields:    f.Fields,
		Auxiliary: map[string]formats.Auxiliary{},
	}
	for _, m := range f.Members {
		s.Members = append(s.Members, formats.Member{Name: unbase(t, m.Name, m.NameB64), Score: m.Score})
	}
	for key, b := range f.Beside {
		s.Auxiliary[key] = formats.Auxiliary{Size: b.Size, Value: []byte(b.Value)}
	}
	if f.TTLMs < 0 {
		s.TTL = locksteward.NoExpiry
	}
	s.Size = int64(len(s.Value) + len(s.Fields) + len(s.Members))
	if f.Size != nil {
		s.Size = *f.Size
	}
	if f.Meta != nil {
		meta, err := record.Decode(string(f.Meta))
		if err != nil {
			t.Fatal(err)
		}
		s.Meta = meta
	}
	return s
}

func unbase(t *testing.T, text, b64 string) string {
	t.Helper()
	if b64 == "" {
		return text
	}
	raw, err := base64.StdEncoding.DecodeString(b64)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func readFixtures(t *testing.T) map[string]fixture {
	t.Helper()
	paths, err := filepath.Glob("testdata/*/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	all := make(map[string]fixture, len(paths))
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var f fixture
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&f); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[filepath.ToSlash(path)] = f
	}
	return all
}

// fault: 54
func TestRecogniseFixtures(t *testing.T) {
	t.Parallel()
	classes, err := class.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	for path, f := range readFixtures(t) {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s, want := f.sample(t), f.Want
			got := formats.Recognise(s)
			if name := cmp.Or(want.Library, filepath.Base(filepath.Dir(path))); got.Format != name {
				t.Errorf("format = %q, want %q", got.Format, name)
			}
			if got.Confidence != want.Confidence {
				t.Errorf("confidence = %q, want %q", got.Confidence, want.Confidence)
			}
			if got.Identity != want.Identity {
				t.Errorf("identity = %q, want %q", got.Identity, want.Identity)
			}
			if got.SharedToken != want.Shared || got.TokenKind != want.TokenKind {
				t.Errorf("shared = %t %q, want %t %q", got.SharedToken, got.TokenKind, want.Shared, want.TokenKind)
			}
			holder := locksteward.Holder{App: want.Holder.App, Host: want.Holder.Host, PID: want.Holder.PID, Session: want.Holder.Session, Instance: want.Holder.Instance}
			if got.Holder != holder {
				t.Errorf("holder = %+v, want %+v", got.Holder, holder)
			}
			waiters := -1
			if want.Waiters != nil {
				waiters = *want.Waiters
			}
			if got.Count != max(1, want.Count) || got.Fence != want.Fence || got.Waiters != waiters {
				t.Errorf("count, fence, waiters = %d, %d, %d, want %d, %d, %d", got.Count, got.Fence, got.Waiters, max(1, want.Count), want.Fence, waiters)
			}
			if got.Mode != want.Mode || !got.Acquired.Equal(want.Acquired) {
				t.Errorf("mode, acquired = %q, %s, want %q, %s", got.Mode, got.Acquired, want.Mode, want.Acquired)
			}
			if every := time.Duration(want.RenewEveryMs) * time.Millisecond; got.RenewEvery != every {
				t.Errorf("renews every %s, want %s", got.RenewEvery, every)
			}
			if (got.Claim != nil) != (want.Claim != "") || got.Claim != nil && got.Claim.ID != want.Claim {
				t.Errorf("claim = %+v, want that of %q", got.Claim, want.Claim)
			}

			kind, ok := formats.Decide(classes.Classify(s.Key), s, got)
			if want.Kind == "none" && ok || want.Kind != "none" && string(kind) != want.Kind {
				t.Errorf("decided %q, %t, want %q", kind, ok, want.Kind)
			}
			checkRelease(t, s, got, want.Releasable)
		})
	}
}

func checkRelease(t *testing.T, s formats.Sample, d formats.Decoded, want bool) {
	t.Helper()
	found, ok := formats.Get(d.Format)
	if !ok {
		t.Fatalf("no format %q", d.Format)
	}
	command, err := found.Release(s, formats.Release{RequestID: "r1", ExpireAt: locksteward.NoExpireAt})
	if !want {
		if !errors.Is(err, locksteward.ErrRefused) {
			t.Errorf("Release = %v, want a refusal", err)
		}
		return
	}
	if err != nil {
		t.Fatalf("Release: %v", err)
	}
	for _, key := range command.Keys {
		if record.Slot(key) != record.Slot(s.Key) {
			t.Errorf("key %q of the script is in another slot than %q", key, s.Key)
		}
	}
	if command.Keys[0] != s.Key {
		t.Errorf("first key = %q, want the lock", command.Keys[0])
	}
	// No format releases what another one recognised.
	for _, other := range formats.All() {
		if other.Name == d.Format {
			continue
		}
		if _, err := other.Release(s, formats.Release{RequestID: "r1", ExpireAt: locksteward.NoExpireAt}); !errors.Is(err, locksteward.ErrRefused) {
			t.Errorf("%s releases a %s lock: %v", other.Name, d.Format, err)
		}
	}
}

func TestClaimHasGoTimes(t *testing.T) {
	t.Parallel()
	s := readFixtures(t)["testdata/locksteward/with-metadata.json"].sample(t)
	c := formats.Recognise(s).Claim
	want := locksteward.Claim{
		Version: 2, ID: "A1B2", Class: "orders", Purpose: "charge card",
		Acquired: time.UnixMilli(1794970000000).UTC(), Renewed: time.UnixMilli(1794970010000).UTC(),
		TTL: 30 * time.Second, RenewEvery: 10 * time.Second, Expect: 5 * time.Second,
		Renewals: 1, Fence: 1794970000000123, Holds: 2, Session: "s1",
	}
	if !reflect.DeepEqual(*c, want) {
		t.Errorf("claim = %+v, want %+v", *c, want)
	}
	mad := formats.Recognise(readFixtures(t)["testdata/locksteward/mad-metadata.json"].sample(t)).Claim
	if !mad.Acquired.IsZero() || !mad.Renewed.IsZero() {
		t.Errorf("claim = %+v, want no times", mad)
	}
	if _, err := json.Marshal(mad); err != nil {
		t.Errorf("the claim cannot be known: %v", err)
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	var (
		low    = formats.Decoded{Confidence: locksteward.ConfidenceLow}
		medium = formats.Decoded{Confidence: locksteward.ConfidenceMedium}
		high   = formats.Decoded{Confidence: locksteward.ConfidenceHigh}
		short  = formats.Sample{Key: "k", Type: "string", Size: 256}
		long   = formats.Sample{Key: "k", Type: "string", Size: 257}
		hash   = formats.Sample{Key: "k", Type: "hash", Size: 1}
		helper = formats.Sample{Key: "redisson_lock_queue:{a}", Type: "list", Size: 1}
	)
	tests := []struct {
		name  string
		match class.Match
		s     formats.Sample
		d     formats.Decoded
		want  locksteward.Kind
	}{
		{"configured, whatever it is", class.Match{Configured: true}, long, low, locksteward.KindLock},
		{"configured helper", class.Match{Configured: true}, helper, low, ""},
		{"high confidence under any name", class.Match{}, hash, high, locksteward.KindLock},
		{"word and short string", class.Match{Word: true}, short, low, locksteward.KindLock},
		{"word and long string", class.Match{Word: true}, long, medium, locksteward.KindCandidate},
		{"word and plain hash", class.Match{Word: true}, hash, low, locksteward.KindCandidate},
		{"word and known hash", class.Match{Word: true}, hash, medium, locksteward.KindLock},
		{"candidate and known hash", class.Match{Candidate: true}, hash, medium, locksteward.KindCandidate},
		{"candidate and short string", class.Match{Candidate: true}, short, medium, locksteward.KindCandidate},
		{"candidate of high confidence", class.Match{Candidate: true}, short, high, locksteward.KindLock},
		{"nothing", class.Match{}, short, medium, ""},
	}
	for _, tt := range tests {
		kind, ok := formats.Decide(tt.match, tt.s, tt.d)
		if kind != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: Decide = %q, %t, want %q", tt.name, kind, ok, tt.want)
		}
	}
}

func TestAllAndGet(t *testing.T) {
	t.Parallel()
	names := []string{}
	for _, d := range formats.All() {
		names = append(names, d.Name)
		if got, ok := formats.Get(d.Name); !ok || got.Name != d.Name {
			t.Errorf("Get(%q) = %v, %t", d.Name, got, ok)
		}
		if _, err := os.Stat("../../../docs/libraries/" + d.Name + ".md"); err != nil {
			t.Errorf("format %s has no page: %v", d.Name, err)
		}
		if _, err := os.Stat("testdata/" + d.Name); err != nil {
			t.Errorf("format %s has no fixtures: %v", d.Name, err)
		}
	}
	if want := "unknown"; names[len(names)-1] != want {
		t.Errorf("the last format is %q, want %q", names[len(names)-1], want)
	}
	if d, ok := formats.Get("nonsense"); ok {
		t.Errorf("Get(nonsense) = %v", d)
	}
}

// FuzzRecognise feeds foreign bytes in every type: nothing panics, what was not
// read in full or understood is not released, and a script gets all that was seen
// to compare.
func FuzzRecognise(f *testing.F) {
	for _, seed := range []struct{ key, kind, value, more string }{
		{"lock:1", "string", "1", ""},
		{"{a}", "string", "lock_token:5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17", ""},
		{"a", "hash", "5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17:1", "1"},
		{"a", "hash", "5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17:1:write\nmode", "1\nwrite"},
		{"a", "hash", "mode\n5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17:1", "read\n2"},
		{"lock", "string", "ls2:a:b", ""},
		{"lock", "string", "s:3:\"abc\";", ""},
		{"lock", "string", "\xac\xed\x00\x05t\x00\x01a", ""},
		{"lock", "string", "ADDED:2026-11-21T03:00:00.123Z@h:5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17", ""},
		{"bull:a:1:lock", "string", "a_1_0f8fad5bd9cb469fa16570867728950e", ""},
		{"uniquejobs::LOCKED", "hash", "mode", "x"},
		{"l:", "string", "12@h", ""},
		{"{a}:timeout", "zset", "\x00\xff\x03\xc8\x11\x04\x09\xfa\x80!M\x01\x02c\xfe\x1f", "1794970030000"},
		{"a.readers", "set", "WEB_01_4711_0f8fad5bd9cb469fa16570867728950e", ""},
		{"semaphore:a", "zset", "5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17\nb", "1794970030000\nNaN"},
		{"a", "list", "1\n2", ""},
		{"a", "stream", "", ""},
	} {
		f.Add(seed.key, seed.kind, []byte(seed.value), int64(1000), seed.more, false)
	}
	f.Fuzz(func(t *testing.T, key, kind string, value []byte, ttl int64, more string, large bool) {
		s := foreignSample(key, kind, string(value), more)
		s.TTL, s.TooLarge = time.Duration(ttl), large
		s.Meta = &record.Meta{ID: more, Acquired: ttl, TTL: ttl, Renewed: ttl, Expect: ttl, Holds: ttl}
		for i, ask := range formats.AuxiliaryReads(s) {
			if i%2 == int(ttl&1) {
				s.Auxiliary = map[string]formats.Auxiliary{ask.Key: {Size: ttl, Value: []byte(more)}}
			}
		}
		formats.MayBeLock(key)
		s.Digest(locksteward.DigestKey{})
		d := formats.Recognise(s)
		formats.Decide(class.Match{Word: true}, s, d)
		found, ok := formats.Get(d.Format)
		if !ok {
			t.Fatalf("Recognise gave a format %q that is not there", d.Format)
		}
		if d.Count < 0 || d.Waiters < -1 || d.Fence < 0 {
			t.Errorf("%s: count %d, waiters %d, fence %d", d.Format, d.Count, d.Waiters, d.Fence)
		}
		command, err := found.Release(s, formats.Release{RequestID: "r", ExpireAt: 1})
		if err != nil {
			if !errors.Is(err, locksteward.ErrRefused) {
				t.Errorf("Release: %v", err)
			}
			return
		}
		if large || d.Format == formats.Unknown {
			t.Errorf("a sample that was not read or understood is releasable")
		}
		given := map[string]bool{}
		for _, arg := range command.Args {
			given[fmt.Sprintf("%s", arg)] = true
		}
		want := []string{string(s.Value)}
		if s.Type != "string" {
			want = nil
		}
		for field, value := range s.Fields {
			want = append(want, field, value)
		}
		for _, m := range s.Members {
			want = append(want, m.Name)
		}
		for _, w := range want {
			if !given[w] {
				t.Errorf("%s: the script does not get %q to compare", d.Format, w)
			}
		}
	})
}

// foreignSample is a sample of any type: lines of value are fields or members,
// lines of more their values or scores.
func foreignSample(key, kind, value, more string) formats.Sample {
	s := formats.Sample{Key: key, Type: kind}
	if kind == "string" || kind == "" {
		s.Value, s.Size = []byte(value), int64(len(value))
		return s
	}
	lines := strings.Split(more, "\n")
	for i, name := range strings.Split(value, "\n") {
		other := lines[min(i, len(lines)-1)]
		if kind == "hash" {
			if s.Fields == nil {
				s.Fields = map[string]string{}
			}
			s.Fields[name] = other
			continue
		}
		score, _ := strconv.ParseFloat(other, 64)
		s.Members = append(s.Members, formats.Member{Name: name, Score: score})
	}
	s.Size = int64(len(s.Fields) + len(s.Members))
	return s
}

func BenchmarkRecognise(b *testing.B) {
	for name, s := range map[string]formats.Sample{
		"locksteward": {Key: "lock:order:42", Type: "string", TTL: time.Second, Size: 17, Value: []byte("ls2:A1B2:Zk3q9XsT")},
		"uuid":        {Key: "lock:order:42", Type: "string", TTL: time.Second, Size: 36, Value: []byte("5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17")},
		"constant":    {Key: "lock:order:42", Type: "string", TTL: time.Second, Size: 1, Value: []byte("1")},
		"json":        {Key: "lock:order:42", Type: "string", TTL: time.Second, Size: 23, Value: []byte(`{"owner":"web-3","n":1}`)},
		"redisson":    {Key: "lock:order:42", Type: "hash", TTL: time.Second, Size: 1, Fields: map[string]string{"5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17:1": "1"}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				formats.Recognise(s)
			}
		})
	}
}
