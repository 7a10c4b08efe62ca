package acl_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source/redis/acl"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/formats"
	"github.com/locksteward/locksteward/source/redis/releaser"
)

// fixture is a lock of one of source/redis/formats/testdata, as far as it can be put on a
// server.
type fixture struct {
	path     string
	Key      string            `json:"key"`
	KeyB64   string            `json:"key_b64"`
	Type     string            `json:"type"`
	TTLMs    int64             `json:"ttl_ms"`
	Value    string            `json:"value"`
	ValueB64 string            `json:"value_b64"`
	Fields   map[string]string `json:"fields"`
	Members  []struct {
		Name    string  `json:"name"`
		NameB64 string  `json:"name_b64"`
		Score   float64 `json:"score"`
	} `json:"members"`
	Beside map[string]struct {
		Size  int64  `json:"size"`
		Value string `json:"value"`
	} `json:"beside"`
	Meta json.RawMessage `json:"meta"`
	Want struct {
		Library    string `json:"library"`
		Releasable bool   `json:"releasable"`
	} `json:"want"`
}

func text(t *testing.T, plain, b64 string) string {
	t.Helper()
	if b64 == "" {
		return plain
	}
	raw, err := base64.StdEncoding.DecodeString(b64)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// put makes the lock on a server, with what stands beside it, under its name or
// another one.
func (f fixture) put(t *testing.T, admin *redis.Client, key string) {
	t.Helper()
	pipe := admin.Pipeline()
	ctx := t.Context()
	switch f.Type {
	case "string":
		pipe.Set(ctx, key, text(t, f.Value, f.ValueB64), 0)
	case "hash":
		pipe.HSet(ctx, key, f.Fields)
	case "zset":
		for _, m := range f.Members {
			pipe.ZAdd(ctx, key, redis.Z{Score: m.Score, Member: text(t, m.Name, m.NameB64)})
		}
	case "set":
		for _, m := range f.Members {
			pipe.SAdd(ctx, key, text(t, m.Name, m.NameB64))
		}
	case "list":
		for _, m := range f.Members {
			pipe.RPush(ctx, key, text(t, m.Name, m.NameB64))
		}
	default:
		t.Fatalf("%s: a %s cannot be put on a server", f.path, f.Type)
	}
	if f.TTLMs > 0 {
		pipe.PExpire(ctx, key, max(time.Minute, time.Duration(f.TTLMs)*time.Millisecond))
	}
	for name, b := range f.Beside {
		switch {
		case b.Value != "":
			pipe.Set(ctx, name, b.Value, 0)
		case strings.HasPrefix(name, "redisson_lock_queue"):
			for range b.Size {
				pipe.RPush(ctx, name, "5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17:99")
			}
		}
	}
	if f.Meta != nil {
		pipe.Set(ctx, record.Companion(record.DefaultPrefix, record.KindHold, key), string(f.Meta), 0)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatalf("%s: %v", f.path, err)
	}
}

func fixtures(t *testing.T) (list []fixture) {
	t.Helper()
	paths, err := filepath.Glob("../formats/testdata/*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var f fixture
		if err := json.Unmarshal(raw, &f); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		f.path, f.Key = path, text(t, f.Key, f.KeyB64)
		if f.Want.Library == "" {
			f.Want.Library = filepath.Base(filepath.Dir(path))
		}
		if f.Want.Releasable {
			list = append(list, f)
		}
	}
	return list
}

// exactly is a class's pattern for one key.
func exactly(key string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(key)
}

// family is a pattern as people write it for such keys.
func family(key string) string {
	if i := strings.LastIndexByte(key, ':'); i > 0 {
		return exactly(key[:i+1]) + "*"
	}
	return exactly(key[:(len(key)+1)/2]) + "*"
}

// unclosed is a pattern that ends inside of braces.
func unclosed(glob string) bool { return strings.Count(glob, "{") > strings.Count(glob, "}") }

// acts are the ways in which a lock is taken from its holder.
var acts = map[string]func(e *locksteward.Evidence){
	"for good":  func(*locksteward.Evidence) {},
	"with undo": func(e *locksteward.Evidence) { e.Undo = 10 * time.Minute },
	"with a stand": func(e *locksteward.Evidence) {
		if formats.WhyNoPlaceholder(e.Library, e.ExpireAt) == "" {
			e.Placeholder = time.Minute
		}
	},
}

// Every lock of every format that can be released is, by a releaser whose only
// class has exactly that key, in each way; and the same lock under another name
// stays as it is.
func TestReleaserReleasesEveryLibraryAndNothingElse(t *testing.T) {
	t.Parallel()
	list := fixtures(t)
	seen := map[string]bool{}
	for _, f := range list {
		seen[f.Want.Library] = true
	}
	releasable := 0
	for _, d := range formats.All() {
		if formats.WhyNever(d.Name) != "" {
			continue
		}
		if releasable++; !seen[d.Name] {
			t.Errorf("no fixture of %s can be released", d.Name)
		}
	}
	t.Logf("%d locks of %d libraries", len(list), releasable)
	for how, change := range acts {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t, testredis.WithACL("releaser off"))
			admin := srv.Client(t)
			once := map[string]bool{}
			for _, f := range list {
				switch first := !once[f.Want.Library]; {
				case how == "for good":
					releaseOne(t, srv, admin, f, exactly, change)
				case first && how == "with undo":
					releaseOne(t, srv, admin, f, exactly, change)
				case first && unclosed(family(f.Key)):
					releaseOne(t, srv, admin, f, exactly, change)
				case first:
					releaseOne(t, srv, admin, f, family, change)
				}
				once[f.Want.Library] = true
			}
			if log := admin.Do(t.Context(), "acl", "log").Val().([]any); len(log) == 0 {
				t.Error("the locks of others were not even tried")
			}
		})
	}
}

func releaseOne(t *testing.T, srv *testredis.Server, admin *redis.Client, f fixture, match func(string) string, change func(*locksteward.Evidence)) {
	t.Helper()
	ctx := t.Context()
	if err := admin.FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	u := releaserOf(t, running(t), acl.Free{Hash: acl.Hash(password), Classes: []class.Class{
		{Name: "one", Match: []string{match(f.Key)}, Release: class.ReleaseApprove},
	}})
	set := []any{}
	for word := range strings.SplitSeq(strings.Replace(u.FileLine(), "user releaser", "acl setuser releaser reset", 1), " ") {
		set = append(set, word)
	}
	if err := admin.Do(ctx, set...).Err(); err != nil {
		t.Fatalf("%s: %v", f.path, err)
	}
	other := "other" + f.Key
	f.put(t, admin, f.Key)
	f.put(t, admin, other)
	before := admin.Dump(ctx, other).Val()

	executor, err := releaser.New(releaser.Config{
		Connect: connect.Config{URL: srv.URL(), Username: "releaser", Password: password},
	})
	if err != nil {
		t.Fatal(err)
	}
	req := locksteward.Request{ID: "r-1", Evidence: locksteward.Evidence{Key: f.Key}}
	now, err := executor.Preview(ctx, req)
	if err != nil || !now.Found {
		t.Errorf("%s: look: found %t, %v", f.path, now.Found, err)
		return
	}
	req.Evidence = now.Now
	if change(&req.Evidence); req.Evidence.Library != f.Want.Library {
		t.Errorf("%s: it is a %s on a server", f.path, req.Evidence.Library)
		return
	}
	if now, err := executor.Preview(ctx, req); err != nil || now.Script == "" || now.MissingRights != "" {
		t.Errorf("%s: preview: script %q, %s, %v", f.path, now.Script, now.MissingRights, err)
	}
	result, err := executor.Release(ctx, req)
	if err != nil || result.State != locksteward.RequestReleased {
		t.Errorf("%s (%s, %s): %s %s, %v", f.path, f.Want.Library, match(f.Key), result.State, result.Reason, err)
		return
	}

	// The same hold under a name of no class: it can be neither read nor removed.
	if now, err := executor.Preview(ctx, locksteward.Request{ID: "r-2", Evidence: locksteward.Evidence{Key: other}}); err != nil || now.Found || now.MissingRights == "" {
		t.Errorf("%s: the releaser read %q: %+v, %v", f.path, other, now, err)
	}
	req.ID, req.Evidence.Key = "r-3", other
	if result, err := executor.Release(ctx, req); err != nil || result.State != locksteward.RequestFailed {
		t.Errorf("%s: %q: %s %s, %v", f.path, other, result.State, result.Reason, err)
	}
	rdb := srv.ClientAs(t, "releaser", password)
	for _, args := range [][]any{
		{"del", other},
		{"eval", "return redis.call('DEL', KEYS[1])", 1, other},
		{"eval", "return redis.call('DEL', ARGV[1])", 0, other},
		{"eval", "return redis.call('RENAME', ARGV[1], ARGV[2])", 0, other, f.Key},
		{"del", record.Companion(record.DefaultPrefix, record.KindHold, other)},
	} {
		if err := rdb.Do(ctx, args...).Err(); err == nil {
			t.Errorf("%s: %v was carried out", f.path, args)
		}
	}
	if admin.Dump(ctx, other).Val() != before {
		t.Errorf("%s: %q is not as it was", f.path, other)
	}
}
