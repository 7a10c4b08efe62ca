package soak_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// layout makes as many locks of one format as are wanted, from one of its
// documented examples.
type layout struct {
	name   string // format/example
	sample formats.Sample
	rename func(key string, n int) string
}

// document is what is read of one file of source/redis/formats/testdata.
type document struct {
	Key      string            `json:"key"`
	Type     string            `json:"type"`
	Value    string            `json:"value"`
	ValueB64 []byte            `json:"value_b64"`
	Fields   map[string]string `json:"fields"`
	Members  []struct {
		Name    string  `json:"name"`
		NameB64 []byte  `json:"name_b64"`
		Score   float64 `json:"score"`
	} `json:"members"`
	Beside   map[string]any  `json:"beside"`
	TooLarge bool            `json:"too_large"`
	Meta     json.RawMessage `json:"meta"`
	Want     struct {
		Kind string `json:"kind"`
	} `json:"want"`
}

// number is what may count in a key without changing whose key it is.
var number = regexp.MustCompile(`[0-9]+`)

// renames are ways to make many keys of one; which one leaves a key its format
// differs.
var renames = []func(key string, n int) string{
	func(key string, n int) string { return fmt.Sprintf("%s-%d", key, n) },
	func(key string, n int) string {
		if i := strings.IndexByte(key, '}'); i > 0 {
			return fmt.Sprintf("%s%d%s", key[:i], n, key[i:])
		}
		return ""
	},
	func(key string, n int) string {
		at := number.FindAllStringIndex(key, -1)
		if len(at) == 0 {
			return ""
		}
		last := at[len(at)-1]
		return key[:last[0]] + strconv.Itoa(n) + key[last[1]:]
	},
	func(key string, n int) string { return digits(key, n) },
	func(key string, n int) string { return fmt.Sprintf("%d-%s", n, key) },
}

// long is a run of digits in which a number can stand.
var long = regexp.MustCompile(`[0-9a-fA-F]{8,}`)

// digits puts n into the last long run of hexadecimal digits.
func digits(text string, n int) string {
	at := long.FindAllStringIndex(text, -1)
	if len(at) == 0 {
		return text
	}
	end := at[len(at)-1][1]
	return text[:end-8] + fmt.Sprintf("%08x", n) + text[end:]
}

// make returns the n-th lock of a layout.
func (l layout) make(n int) formats.Sample {
	s := l.sample
	s.Key = l.rename(s.Key, n)
	s.Value = []byte(vary(string(s.Value), n))
	if s.Fields != nil {
		fields := map[string]string{}
		for name, value := range s.Fields {
			fields[vary(name, n)] = value
		}
		s.Fields = fields
	}
	s.Members = slices.Clone(s.Members)
	for i := range s.Members {
		s.Members[i].Name = vary(s.Members[i].Name, n)
	}
	return s
}

// vary makes another token of the same kind: n stands in its hexadecimal digits, in four
// of its raw bytes, or in the letters and digits of its longest run of them, each in the
// place of one like it. A token with none of these is a constant, and stays.
func vary(token string, n int) string {
	if long.MatchString(token) {
		return digits(token, n)
	}
	out := []byte(token)
	if !utf8.ValidString(token) && len(out) >= 12 {
		binary.BigEndian.PutUint32(out[8:], uint32(n))
		return string(out)
	}
	at := alike.FindAllStringIndex(token, -1)
	if len(at) == 0 {
		return token
	}
	run := slices.MaxFunc(at, func(a, b []int) int { return cmp.Compare(a[1]-a[0], b[1]-b[0]) })
	// Its first and its last ones may mean something.
	for i := run[1] - 3; i > run[0] && n > 0; i-- {
		from, size := byte('0'), 10
		switch c := out[i]; {
		case c >= 'a':
			from, size = 'a', 26
		case c >= 'A':
			from, size = 'A', 26
		}
		out[i] = from + byte(n%size)
		n /= size
	}
	return string(out)
}

// alike is a run of letters and digits in which a number can stand.
var alike = regexp.MustCompile(`[0-9a-zA-Z]{10,}`)

// layouts reads the examples of locks that can stand alone, without keys beside them, and
// checks that what is made of them, with a TTL, is a lock of the same format.
func layouts(t *testing.T) []layout {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "source", "redis", "formats", "testdata", "*", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	classes, err := class.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []layout
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var d document
		if err := json.Unmarshal(raw, &d); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		name := filepath.Base(filepath.Dir(path))
		if d.Want.Kind != "lock" || d.Key == "" || d.TooLarge || len(d.Beside)+len(d.Meta) > 0 {
			continue
		}
		l := layout{name: name + "/" + strings.TrimSuffix(filepath.Base(path), ".json"), sample: formats.Sample{
			Key: d.Key, Type: d.Type, TTL: standingTTL, Value: append([]byte(d.Value), d.ValueB64...), Fields: d.Fields,
			Auxiliary: map[string]formats.Auxiliary{},
		}}
		for _, m := range d.Members {
			l.sample.Members = append(l.sample.Members, formats.Member{Name: m.Name + string(m.NameB64), Score: m.Score})
		}
		l.sample.Size = int64(len(l.sample.Value) + len(d.Fields) + len(d.Members))
		for _, rename := range renames {
			l.rename = rename
			if l.holds(classes, name) {
				all = append(all, l)
				break
			}
		}
	}
	return all
}

// holds says whether the layout makes different locks of its format.
func (l layout) holds(classes *class.Set, name string) bool {
	a, b := l.make(4711), l.make(1234567)
	if a.Key == b.Key || a.Key == "" {
		return false
	}
	for _, s := range []formats.Sample{a, b} {
		got := formats.Recognise(s)
		kind, ok := formats.Decide(classes.Classify(s.Key), s, got)
		if !ok || string(kind) != "lock" || got.Format != name {
			return false
		}
	}
	return true
}

// formatNames are those of layouts, and those of source/redis/formats/testdata that none is of: their
// locks have keys beside them, or say in their names or tokens what is not made up.
func formatNames(t *testing.T, all []layout) (some, none []string) {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join("..", "..", "source", "redis", "formats", "testdata", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		name := filepath.Base(folder)
		if slices.ContainsFunc(all, func(l layout) bool { return strings.HasPrefix(l.name, name+"/") }) {
			some = append(some, name)
		} else {
			none = append(none, name)
		}
	}
	return some, none
}

// patterns are of the names that no agent would look at without a class of them: nothing
// in them says that they are of locks.
func patterns(all []layout) string {
	classes, err := class.NewSet(nil)
	if err != nil {
		panic(err) // of no class
	}
	var out []string
	for _, l := range all {
		a, b := l.make(4711).Key, l.make(1234567).Key
		if (classes.Classify(a) == class.Match{}) && !formats.MayBeLock(a) {
			out = append(out, strconv.Quote(pattern(a, b)))
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

// pattern is the pattern of names that begin and end as two do.
func pattern(a, b string) string {
	from := 0
	for from < min(len(a), len(b)) && a[from] == b[from] {
		from++
	}
	end := 0
	for end < min(len(a), len(b))-from && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return escape.Replace(a[:from]) + "*" + escape.Replace(a[len(a)-end:])
}

// escape is for what means something in a pattern.
var escape = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// whole writes a collection and its TTL in one step, so that a lock has a TTL from
// its first moment.
const whole = `redis.call('DEL', KEYS[1])
redis.call(unpack(ARGV, 2))
return redis.call('PEXPIRE', KEYS[1], ARGV[1])`

// put queues the writing of a lock.
func put(ctx context.Context, p redis.Pipeliner, s formats.Sample, ttl time.Duration) {
	args := []any{ttl.Milliseconds()}
	switch s.Type {
	case "string":
		p.Set(ctx, s.Key, s.Value, ttl)
		return
	case "hash":
		args = append(args, "HSET", s.Key)
		for name, value := range s.Fields {
			args = append(args, name, value)
		}
	case "zset":
		args = append(args, "ZADD", s.Key)
		for _, m := range s.Members {
			args = append(args, strconv.FormatFloat(m.Score, 'f', -1, 64), m.Name)
		}
	case "set", "list":
		args = append(args, map[string]string{"set": "SADD", "list": "RPUSH"}[s.Type], s.Key)
		for _, m := range s.Members {
			args = append(args, m.Name)
		}
	}
	p.Eval(ctx, whole, []string{s.Key}, args...)
}

// read queues the reading of a lock's token.
func read(ctx context.Context, p redis.Pipeliner, s formats.Sample) redis.Cmder {
	switch s.Type {
	case "hash":
		return p.HGetAll(ctx, s.Key)
	case "zset":
		return p.ZRangeWithScores(ctx, s.Key, 0, -1)
	case "set":
		return p.SMembers(ctx, s.Key)
	case "list":
		return p.LRange(ctx, s.Key, 0, -1)
	default:
		return p.Get(ctx, s.Key)
	}
}

// same says whether what was read is the lock that was written.
func same(s formats.Sample, c redis.Cmder) bool {
	switch c := c.(type) {
	case *redis.MapStringStringCmd:
		return maps.Equal(c.Val(), s.Fields)
	case *redis.ZSliceCmd:
		got := c.Val()
		want := slices.SortedFunc(slices.Values(s.Members), func(a, b formats.Member) int {
			return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(a.Name, b.Name))
		})
		return slices.EqualFunc(got, want, func(z redis.Z, m formats.Member) bool { return z.Member == m.Name && z.Score == m.Score })
	case *redis.StringSliceCmd:
		got, want := slices.Sorted(slices.Values(c.Val())), []string{}
		for _, m := range s.Members {
			want = append(want, m.Name)
		}
		slices.Sort(want)
		return slices.Equal(got, want)
	case *redis.StringCmd:
		return c.Val() == string(s.Value)
	}
	return false
}
