package histories_test

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// shape is how the user of one library takes a lock: a fixture of its format.
type shape struct {
	family string
	file   string
	key    string
	typ    string
	ttl    time.Duration // 0: none
	every  time.Duration // of its watchdog; 0: it does not renew
	value  string
	fields map[string]string
	list   []formats.Member
	beside map[string]formats.Auxiliary
	// named says that the name and value make it a lock without configuration.
	named bool
}

// fixture is a file of source/redis/formats/testdata/<family>/, as far as it is needed here.
type fixture struct {
	Key, Type string
	KeyB64    string `json:"key_b64"`
	TTLMs     int64  `json:"ttl_ms"`
	Value     string
	ValueB64  string `json:"value_b64"`
	Fields    map[string]string
	Members   []fixtureMember
	Beside    map[string]struct {
		Size  int64
		Value string
	}
	Size     *int64
	TooLarge bool            `json:"too_large"`
	Meta     json.RawMessage `json:"meta"`
	Want     struct {
		Library, Kind string
		RenewEveryMs  int64 `json:"renew_every_ms"`
	}
}

type fixtureMember struct {
	Name    string
	NameB64 string `json:"name_b64"`
	Score   float64
}

// library is all shapes that the histories draw from.
type library struct {
	families []string           // of the registry, sorted, without ours
	shapes   map[string][]shape // by family
	// noise are keys that are no locks, and candidates.
	noise []shape
	keys  []string // of all shapes, sorted
}

// readLibrary reads the fixtures of each format of the registry. A format
// without a fixture that can be taken as a lock fails the test: it would be a
// library that no history has.
func readLibrary(t *testing.T) *library {
	t.Helper()
	lib := &library{shapes: map[string][]shape{}}
	keys := map[string]bool{}
	for _, d := range formats.All() {
		if d.Name == formats.Unknown {
			continue
		}
		files, err := filepath.Glob(filepath.Join("..", "..", "source", "redis", "formats", "testdata", d.Name, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			s, f := readFixture(t, d.Name, file)
			switch {
			case f.Meta != nil || f.TooLarge || f.Size != nil || s.typ == "none":
			case cmp.Or(f.Want.Library, d.Name) == d.Name && f.Want.Kind != string(locksteward.KindCandidate) && !helper(s.key):
				lib.shapes[d.Name] = append(lib.shapes[d.Name], s)
				keys[s.key] = true
			case !s.named:
				lib.noise = append(lib.noise, s)
			}
		}
		if len(lib.shapes[d.Name]) == 0 {
			t.Errorf("format %s has no fixture that a history can take as a lock: add one to source/redis/formats/testdata/%s", d.Name, d.Name)
		}
	}
	lib.families = slices.Sorted(maps.Keys(lib.shapes))
	lib.keys = slices.Sorted(maps.Keys(keys))
	if len(lib.families) < 66 {
		t.Errorf("%d formats have users, want the 66 of the registry at least", len(lib.families))
	}
	return lib
}

// helper says that no configuration makes the key a lock.
func helper(key string) bool {
	_, _, ok := formats.AuxiliaryKey(key)
	return ok
}

func readFixture(t *testing.T, family, file string) (shape, fixture) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var f fixture
	if err := json.Unmarshal(raw, &f); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	s := shape{
		family: family, file: filepath.Base(file), key: unbase(t, f.Key, f.KeyB64), typ: f.Type,
		ttl: max(0, time.Duration(f.TTLMs)*time.Millisecond), every: time.Duration(f.Want.RenewEveryMs) * time.Millisecond,
		value: unbase(t, f.Value, f.ValueB64), fields: f.Fields, beside: map[string]formats.Auxiliary{},
		named: f.Want.Kind == string(locksteward.KindLock),
	}
	for key, b := range f.Beside {
		s.beside[key] = formats.Auxiliary{Size: b.Size, Value: []byte(b.Value)}
	}
	for _, m := range f.Members {
		s.list = append(s.list, formats.Member{Name: unbase(t, m.Name, m.NameB64), Score: m.Score})
	}
	return s, f
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

// sample is the lock as the scanner would read it.
func (s *shape) sample(ttl time.Duration) formats.Sample {
	out := formats.Sample{
		Key: s.key, Type: s.typ, TTL: ttl, Value: []byte(s.value), Fields: s.fields, Members: slices.Clone(s.list), Auxiliary: s.beside,
	}
	if ttl == 0 {
		out.TTL = locksteward.NoExpiry
	}
	out.Size = int64(len(s.value) + len(s.fields) + len(s.list))
	byScore := func(a, b formats.Member) int {
		return cmp.Or(cmp.Compare(a.Score, b.Score), strings.Compare(a.Name, b.Name))
	}
	switch s.typ {
	case "zset":
		slices.SortFunc(out.Members, byScore)
	case "set":
		slices.SortFunc(out.Members, func(a, b formats.Member) int { return strings.Compare(a.Name, b.Name) })
	}
	return out
}

// isLock says whether the agent judges what stands there, as
// the classes and formats decide.
func (s *shape) isLock(m class.Match, ttl time.Duration) bool {
	sample := s.sample(ttl)
	kind, ok := formats.Decide(m, sample, formats.Recognise(sample))
	return ok && kind == locksteward.KindLock
}

// The time in fixtures, and how times and tokens look there.
var (
	fixtureTime = time.Unix(1_794_970_000, 0)
	epochText   = regexp.MustCompile(`\b1794\d{6}(\d{3})?(\.\d+)?\b`)
	isoText     = regexp.MustCompile(`\b2026-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
	tokenTexts  = []*regexp.Regexp{
		regexp.MustCompile(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`),
		regexp.MustCompile(`[0-9a-f]{12,}`),
		regexp.MustCompile(`[0-9A-Za-z+/_-]{16,}=*`),
	}
)

// taken is the shape as a user writes it who takes the lock at a time: times are
// of that time, and tokens are drawn anew where the fixture's form allows. Where
// it does not, or fresh is false, the token is that of the fixture.
func (s *shape) taken(at time.Time, rng *rand.Rand, fresh bool) shape {
	now := s.rewritten(func(text string) string { return timesAt(text, at) })
	now.list = slices.Clone(now.list)
	for i := range now.list {
		now.list[i].Score = scoreAt(now.list[i].Score, at)
	}
	if !fresh {
		return now
	}
	want := formats.Recognise(now.sample(now.ttl))
	for range 40 {
		drawn := map[string]string{}
		got := now.rewritten(func(text string) string { return redrawn(text, tokenTexts, drawn, rng) })
		is := formats.Recognise(got.sample(got.ttl))
		if is.Format == want.Format && is.Identity == want.Identity && is.SharedToken == want.SharedToken &&
			is.TokenKind == want.TokenKind && (is.Asked || is.Acquired.Equal(want.Acquired)) {
			return got
		}
	}
	return now
}

// fresh says that the library draws a token for each hold, or writes the time into
// it.
func (s *shape) fresh() bool {
	return s.telling() || formats.Recognise(s.sample(s.ttl)).Identity == locksteward.IdentityStrong
}

// telling says that the value tells a time.
func (s *shape) telling() bool {
	reported := false
	s.rewritten(func(text string) string {
		reported = reported || epochText.MatchString(text) || isoText.MatchString(text)
		return text
	})
	return reported
}

// retaken is what the user writes who takes the lock again with the token that it
// had.
func (s *shape) retaken(before shape, at time.Time) shape {
	before.list = slices.Clone(before.list)
	for i := range before.list {
		before.list[i].Score = scoreAt(s.list[i].Score, at)
	}
	return before
}

// rewritten is the shape with all its texts changed, but for the key.
func (s *shape) rewritten(change func(string) string) shape {
	out := *s
	out.value = change(s.value)
	if s.fields != nil {
		out.fields = make(map[string]string, len(s.fields))
		for _, name := range slices.Sorted(maps.Keys(s.fields)) {
			out.fields[change(name)] = change(s.fields[name])
		}
	}
	out.list = nil
	for _, m := range s.list {
		out.list = append(out.list, formats.Member{Name: change(m.Name), Score: m.Score})
	}
	return out
}

// timesAt replaces the times in a text by one, in their own form.
func timesAt(text string, at time.Time) string {
	text = epochText.ReplaceAllStringFunc(text, func(was string) string {
		whole, fraction, _ := strings.Cut(was, ".")
		if len(whole) == 13 {
			return strconv.FormatInt(at.UnixMilli(), 10)
		}
		if fraction == "" {
			return strconv.FormatInt(at.Unix(), 10)
		}
		return fmt.Sprintf("%d.%s", at.Unix(), (fmt.Sprintf("%06d", at.Nanosecond()/1000) + "000000")[:len(fraction)])
	})
	return isoText.ReplaceAllString(text, at.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// scoreAt moves the time that a score is, in seconds or milliseconds.
func scoreAt(score float64, at time.Time) float64 {
	switch base := float64(fixtureTime.Unix()); {
	case score > base*1000*0.9 && score < base*1000*1.1:
		return score + float64(at.UnixMilli()) - base*1000
	case score > base*0.9 && score < base*1.1:
		return score + float64(at.Unix()) - base
	default:
		return score
	}
}

// redrawn replaces what looks like tokens by others of the same form, the same by
// the same.
func redrawn(text string, patterns []*regexp.Regexp, drawn map[string]string, rng *rand.Rand) string {
	if len(patterns) == 0 || text == "" {
		return text
	}
	if !utf8.ValidString(text) {
		return draw(text, rng)
	}
	var out strings.Builder
	rest := patterns[1:]
	last := 0
	for _, at := range patterns[0].FindAllStringIndex(text, -1) {
		out.WriteString(redrawn(text[last:at[0]], rest, drawn, rng))
		was := text[at[0]:at[1]]
		if drawn[was] == "" {
			drawn[was] = draw(was, rng)
		}
		out.WriteString(drawn[was])
		last = at[1]
	}
	if last == 0 {
		return redrawn(text, rest, drawn, rng)
	}
	out.WriteString(redrawn(text[last:], rest, drawn, rng))
	return out.String()
}

// draw returns another text with the same kinds of characters at the same places.
func draw(was string, rng *rand.Rand) string {
	if !utf8.ValidString(was) {
		raw := make([]byte, len(was))
		for i := range raw {
			raw[i] = byte(rng.Uint32())
		}
		return string(raw)
	}
	hex := !strings.ContainsFunc(was, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF-", r) })
	out := []byte(was)
	for i, c := range out {
		letters := 26
		if hex {
			letters = 6
		}
		switch {
		case c >= '0' && c <= '9':
			out[i] = '0' + byte(rng.IntN(10))
		case c >= 'a' && c <= 'z':
			out[i] = 'a' + byte(rng.IntN(letters))
		case c >= 'A' && c <= 'Z':
			out[i] = 'A' + byte(rng.IntN(letters))
		}
	}
	// The version and variant of a UUID stay, and of one that tells the time all but
	// the lowest part of that.
	switch {
	case len(was) == 36 && strings.Count(was, "-") == 4:
		out[14], out[19] = was[14], was[19]
	case len(was) == 32 && was[12] == '1':
		copy(out[8:17], was[8:17])
	case len(was) == 32:
		out[12], out[16] = was[12], was[16]
	}
	return string(out)
}

// renewedAt moves the times that a renewal writes: those in the scores of a
// sorted set.
func (s *shape) renewedAt(taken, at time.Time) {
	if s.typ != "zset" {
		return
	}
	s.list = slices.Clone(s.list)
	for i := range s.list {
		if sc := &s.list[i].Score; *sc > 1e12 && *sc < 1e13 {
			*sc += float64(at.Sub(taken).Milliseconds())
		} else if *sc > 1e9 && *sc < 1e10 {
			*sc += float64(at.Unix() - taken.Unix())
		}
	}
}

// TestUsersAreRecognised shows that what the users write is what their library
// writes, and that most of it is fresh in each hold.
func TestUsersAreRecognised(t *testing.T) {
	t.Parallel()
	lib := readLibrary(t)
	rng := rand.New(rand.NewPCG(1, 2))
	at := time.Date(2027, 5, 6, 7, 8, 9, 123_000_000, time.UTC)
	fresh := 0
	for _, family := range lib.families {
		for _, s := range lib.shapes[family] {
			one, two := s.taken(at, rng, true), s.taken(at, rng, true)
			if got := formats.Recognise(one.sample(one.ttl)).Format; got != family {
				t.Errorf("%s/%s as taken is of format %s", family, s.file, got)
			}
			a, b := one.sample(one.ttl), two.sample(two.ttl)
			same := bytes.Equal(a.Value, b.Value) && maps.Equal(a.Fields, b.Fields) && slices.Equal(a.Members, b.Members)
			if !same {
				fresh++
			} else if formats.Recognise(a).Identity == locksteward.IdentityStrong {
				t.Logf("%s/%s: the token of a strong identity is not drawn anew", family, s.file)
			}
		}
	}
	if fresh < 100 {
		t.Errorf("%d shapes have fresh tokens, want most", fresh)
	}
}
