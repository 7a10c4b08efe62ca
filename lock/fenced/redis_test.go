package fenced_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/fenced"
)

// wantKey checks what a key has.
func wantKey(t *testing.T, rdb redis.UniversalClient, key, value string, fence int64) {
	t.Helper()
	gotValue, gotFence, err := fenced.Get(t.Context(), rdb, key)
	if err != nil || gotValue != value || gotFence != fence {
		t.Errorf("%q has %q with fence %d, %v; want %q with %d", key, gotValue, gotFence, err, value, fence)
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	rdb := testredis.Start(t).Client(t)
	ctx := t.Context()
	if _, _, err := fenced.Get(ctx, rdb, "k"); !errors.Is(err, redis.Nil) {
		t.Errorf("get of nothing: %v, want redis.Nil", err)
	}
	for _, step := range []struct {
		fence int64
		value string
		seen  int64 // of the refusal; 0: stored
	}{
		{7, "a", 0},
		{7, "b", 0}, // the same hold again
		{6, "late", 7},
		{10, "c", 0}, // not by the alphabet
		{9, "late", 10},
		{1 << 53, "d", 0},
		{1<<53 + 1, "e", 0}, // no number of Lua
		{1 << 53, "late", 1<<53 + 1},
		{math.MaxInt64, "", 0},
		{math.MaxInt64 - 1, "late", math.MaxInt64},
		{math.MaxInt64, "\x00\xff binary", 0},
	} {
		err := fenced.Set(ctx, rdb, "k", step.fence, step.value)
		if step.seen != 0 {
			wantStale(t, err, step.fence, step.seen)
			continue
		}
		if err != nil {
			t.Errorf("set with %d: %v", step.fence, err)
		}
		wantKey(t, rdb, "k", step.value, step.fence)
	}
	if ttl := rdb.PTTL(ctx, "k").Val(); ttl != -1 {
		t.Errorf("the key has a TTL of %s", ttl)
	}
	if err := rdb.ScriptFlush(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	if err := fenced.Set(ctx, rdb, strings.Repeat("k", fenced.MaxKey), 1, "v"); err != nil {
		t.Errorf("longest key, scripts flushed: %v", err)
	}
}

func TestSetOnCluster(t *testing.T) {
	t.Parallel()
	rdb := testredis.StartCluster(t).Client(t)
	for _, key := range []string{"a", "b", "c", "{a}", "x}y{z"} {
		if err := fenced.Set(t.Context(), rdb, key, 2, "v"); err != nil {
			t.Errorf("%q: %v", key, err)
		}
		wantStale(t, fenced.Set(t.Context(), rdb, key, 1, "late"), 1, 2)
		wantKey(t, rdb, key, "v", 2)
	}
}

// What is not a key of Set is refused and left as it was.
func TestSetOverSomethingElse(t *testing.T) {
	t.Parallel()
	rdb := testredis.Start(t).Client(t)
	for name, tc := range map[string]struct {
		make []any
		code string
	}{
		"string":            {[]any{"SET", "k", "v"}, "WRONGTYPE"},
		"list":              {[]any{"RPUSH", "k", "v"}, "WRONGTYPE"},
		"hash of others":    {[]any{"HSET", "k", "value", "v"}, "FENCE"},
		"word":              {[]any{"HSET", "k", "value", "v", "fence", "seven"}, "FENCE"},
		"empty":             {[]any{"HSET", "k", "value", "v", "fence", ""}, "FENCE"},
		"negative":          {[]any{"HSET", "k", "value", "v", "fence", "-1"}, "FENCE"},
		"zero":              {[]any{"HSET", "k", "value", "v", "fence", "0"}, "FENCE"},
		"leading zero":      {[]any{"HSET", "k", "value", "v", "fence", "01"}, "FENCE"},
		"float":             {[]any{"HSET", "k", "value", "v", "fence", "1e3"}, "FENCE"},
		"beyond 64 bits":    {[]any{"HSET", "k", "value", "v", "fence", "99999999999999999999"}, ""},
		"just beyond int64": {[]any{"HSET", "k", "value", "v", "fence", "9223372036854775808"}, ""},
	} {
		ctx := t.Context()
		if err := errors.Join(rdb.Del(ctx, "k").Err(), rdb.Do(ctx, tc.make...).Err()); err != nil {
			t.Fatal(err)
		}
		before := rdb.Dump(ctx, "k").Val()
		err := fenced.Set(ctx, rdb, "k", math.MaxInt64, "ours")
		notStale(t, err)
		if tc.code != "" && !redis.HasErrorPrefix(err, tc.code) {
			t.Errorf("%s: %v, want %s", name, err, tc.code)
		}
		if rdb.Dump(ctx, "k").Val() != before {
			t.Errorf("%s: the key was changed", name)
		}
	}
	if err := rdb.Del(t.Context(), "k").Err(); err != nil {
		t.Fatal(err)
	}
	for name, fields := range map[string][]any{
		"no fence": {"HSET", "g", "value", "v"},
		"no value": {"HSET", "h", "fence", "1"},
		"string":   {"SET", "s", "v"},
	} {
		if err := rdb.Do(t.Context(), fields...).Err(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := fenced.Get(t.Context(), rdb, fields[1].(string)); err == nil || errors.Is(err, redis.Nil) {
			t.Errorf("get, %s: %v, want an error that is not redis.Nil", name, err)
		}
	}
}

// Bad input is refused without a word to a server: there is none.
func TestSetInvalid(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	for want, err := range map[string]error{
		"fence is 0":           fenced.Set(t.Context(), rdb, "k", 0, "v"),
		"fence is -1":          fenced.Set(t.Context(), rdb, "k", -1, "v"),
		"fence is -9223":       fenced.Set(t.Context(), rdb, "k", math.MinInt64, "v"),
		"key is empty":         fenced.Set(t.Context(), rdb, "", 1, "v"),
		"key has 8193 bytes":   fenced.Set(t.Context(), rdb, strings.Repeat("k", fenced.MaxKey+1), 1, "v"),
		"client is nil":        fenced.Set(t.Context(), nil, "k", 1, "v"),
		"get fenced key: inva": second(fenced.Get(t.Context(), rdb, "")),
		"get fenced key":       second(fenced.Get(t.Context(), nil, "k")),
	} {
		if !errors.Is(err, fenced.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want ErrInvalid with %q", err, want)
		}
	}
}

func second(_ string, _ int64, err error) error { return err }

// A server that cannot be asked has refused nothing.
func TestSetWithoutServer(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	o := srv.Options()
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	if err := fenced.Set(t.Context(), rdb, "k", 2, "v"); err != nil {
		t.Fatal(err)
	}

	if err := rdb.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	err := fenced.Set(t.Context(), rdb, "k", 3, "too much")
	notStale(t, err)
	// Before 7.0 it is inside the error of a script.
	if err == nil || !strings.Contains(err.Error(), "OOM command not allowed") {
		t.Errorf("out of memory: %v", err)
	}
	wantKey(t, rdb, "k", "v", 2)

	srv.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = fenced.Set(ctx, rdb, "k", 1, "late")
	notStale(t, err)
	if !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "timeout") {
		t.Errorf("paused server: %v", err)
	}
	srv.Resume()
	srv.Kill()
	notStale(t, fenced.Set(t.Context(), rdb, "k", 1, "late"))
	notStale(t, second(fenced.Get(t.Context(), rdb, "k")))
}
