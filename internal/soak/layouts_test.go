package soak_test

import (
	"cmp"
	"context"
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

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/dialect"
)

// layout makes as many locks of one dialect as are wanted, from one of its
// documented examples.
type layout struct {
	name   string // dialect/example
	sample dialect.Sample
	rename func(key string, n int) string
}

// document is what is read of one file of dialect/testdata.
type document struct {
	Key     string            `json:"key"`
	Type    string            `json:"type"`
	TTLMs   int64             `json:"ttl_ms"`
	Value   string            `json:"value"`
	Fields  map[string]string `json:"fields"`
	Members []struct {
		Name  string  `json:"name"`
		Score float64 `json:"score"`
	} `json:"members"`
	Beside   map[string]any    `json:"beside"`
	TooLarge bool              `json:"too_large"`
	Meta     map[string]string `json:"meta"`
	Want     struct {
		Kind       string `json:"kind"`
		Releasable bool   `json:"releasable"`
		Shared     bool   `json:"shared"`
	} `json:"want"`
}

// number is what may count in a key without changing whose key it is.
var number = regexp.MustCompile(`[0-9]+`)

// renames are ways to make many keys of one; which one leaves a key its dialect
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
func (l layout) make(n int) dialect.Sample {
	s := l.sample
	s.Key = l.rename(s.Key, n)
	s.Value = []byte(digits(string(s.Value), n))
	if s.Fields != nil {
		fields := map[string]string{}
		for name, value := range s.Fields {
			fields[digits(name, n)] = digits(value, n)
		}
		s.Fields = fields
	}
	s.Members = slices.Clone(s.Members)
	for i := range s.Members {
		s.Members[i].Name = digits(s.Members[i].Name, n)
	}
	return s
}

// layouts reads the examples of locks that have a TTL and can stand alone, and
// checks that what is made of them is a lock of the same dialect.
func layouts(t *testing.T) []layout {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "dialect", "testdata", "*", "*.json"))
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
		if d.Want.Kind != "lock" || !d.Want.Releasable || d.Want.Shared || d.TTLMs <= 0 || d.Key == "" || d.TooLarge || len(d.Beside)+len(d.Meta) > 0 {
			continue
		}
		l := layout{name: name + "/" + strings.TrimSuffix(filepath.Base(path), ".json"), sample: dialect.Sample{
			Key: d.Key, Type: d.Type, TTL: time.Duration(d.TTLMs) * time.Millisecond, Value: []byte(d.Value), Fields: d.Fields,
			Beside: map[string]dialect.Beside{},
		}}
		for _, m := range d.Members {
			l.sample.Members = append(l.sample.Members, dialect.Member{Name: m.Name, Score: m.Score})
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

// holds says whether two locks of the layout are different locks of its dialect.
func (l layout) holds(classes *class.Set, name string) bool {
	a, b := l.make(4711), l.make(1234567)
	if a.Key == b.Key || a.Key == "" {
		return false
	}
	for _, s := range []dialect.Sample{a, b} {
		got := dialect.Recognise(s)
		kind, ok := dialect.Decide(classes.Classify(s.Key), s, got)
		if !ok || string(kind) != "lock" || got.Dialect != name {
			return false
		}
	}
	return string(a.Value) != string(b.Value) || !maps.Equal(a.Fields, b.Fields) || !slices.Equal(a.Members, b.Members)
}

// dialects are the dialects of layouts.
func dialects(all []layout) int {
	names := map[string]bool{}
	for _, l := range all {
		name, _, _ := strings.Cut(l.name, "/")
		names[name] = true
	}
	return len(names)
}

// whole writes a collection and its TTL in one step, so that a lock has a TTL from
// its first moment.
const whole = `redis.call('DEL', KEYS[1])
redis.call(unpack(ARGV, 2))
return redis.call('PEXPIRE', KEYS[1], ARGV[1])`

// put queues the writing of a lock.
func put(ctx context.Context, p redis.Pipeliner, s dialect.Sample, ttl time.Duration) {
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
func read(ctx context.Context, p redis.Pipeliner, s dialect.Sample) redis.Cmder {
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
func same(s dialect.Sample, c redis.Cmder) bool {
	switch c := c.(type) {
	case *redis.MapStringStringCmd:
		return maps.Equal(c.Val(), s.Fields)
	case *redis.ZSliceCmd:
		got := c.Val()
		want := slices.SortedFunc(slices.Values(s.Members), func(a, b dialect.Member) int {
			return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(a.Name, b.Name))
		})
		return slices.EqualFunc(got, want, func(z redis.Z, m dialect.Member) bool { return z.Member == m.Name && z.Score == m.Score })
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
