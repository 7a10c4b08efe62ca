package formats_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source/redis/formats"
)

const (
	redissonHolder = "5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17:37"
	ourValue       = "ls2:A1B2:Zk3q9XsT"
	uuidToken      = "0f8fad5b-d9cb-469f-a165-70867728950e"
)

// keys are names that a release must get through unharmed, in every mode.
var keys = map[string]string{
	"plain":      "lock:order:42",
	"own tag":    "lock:{order}:42",
	"braces":     "lock}a{b",
	"empty tag":  "lock{}:1",
	"binary":     "lock:\x00\n\r\xff\"'{",
	"whitespace": " lock \t",
}

// take puts a lock of each format that is released under key.
var take = map[string]func(t *testing.T, c redis.Cmdable, key string, ttl time.Duration){
	formats.Token: func(t *testing.T, c redis.Cmdable, key string, ttl time.Duration) {
		t.Helper()
		must(t, c.Set(t.Context(), key, "\x00\n\xffbinary token"+uuidToken, ttl).Err())
	},
	formats.Redisson: func(t *testing.T, c redis.Cmdable, key string, ttl time.Duration) {
		t.Helper()
		must(t, c.HSet(t.Context(), key, redissonHolder, 2).Err())
		if ttl > 0 {
			must(t, c.PExpire(t.Context(), key, ttl).Err())
		}
	},
	formats.Locksteward: func(t *testing.T, c redis.Cmdable, key string, ttl time.Duration) {
		t.Helper()
		must(t, c.Set(t.Context(), key, ourValue, ttl).Err())
		meta := record.Companion(record.DefaultPrefix, record.KindHold, key)
		must(t, c.Set(t.Context(), meta, (&record.Meta{V: record.Version, ID: "A1B2", Instance: "i1", Acquired: 1, TTL: 30000}).Encode(), 0).Err())
	},
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// look reads a key as the scanner does.
func look(t *testing.T, c redis.Cmdable, key string) (formats.Sample, formats.Release) {
	t.Helper()
	ctx := t.Context()
	s := formats.Sample{Key: key, Type: c.Type(ctx, key).Val(), TTL: c.PTTL(ctx, key).Val()}
	switch s.Type {
	case "string":
		value, err := c.Get(ctx, key).Bytes()
		must(t, err)
		s.Value, s.Size = value, int64(len(value))
	case "hash":
		s.Fields = c.HGetAll(ctx, key).Val()
		s.Size = int64(len(s.Fields))
	case "zset":
		for _, z := range c.ZRangeWithScores(ctx, key, 0, -1).Val() {
			s.Members = append(s.Members, formats.Member{Name: z.Member.(string), Score: z.Score})
		}
		s.Size = int64(len(s.Members))
	case "set":
		for _, name := range slices.Sorted(slices.Values(c.SMembers(ctx, key).Val())) {
			s.Members = append(s.Members, formats.Member{Name: name})
		}
		s.Size = int64(len(s.Members))
	}
	if text := c.Get(ctx, record.Companion(record.DefaultPrefix, record.KindHold, key)).Val(); text != "" {
		s.Meta, _ = record.Decode(text)
	}
	at := testredis.ExpireAt(t, c, key)
	if s.TTL < 0 {
		s.TTL = locksteward.NoExpiry
	}
	for _, ask := range formats.AuxiliaryReads(s) {
		var b formats.Auxiliary
		if ask.Type == "list" {
			b.Size = c.LLen(ctx, ask.Key).Val()
		} else {
			b.Value = []byte(c.Get(ctx, ask.Key).Val())
			b.Size = int64(len(b.Value))
		}
		if b.Size > 0 {
			if s.Auxiliary == nil {
				s.Auxiliary = map[string]formats.Auxiliary{}
			}
			s.Auxiliary[ask.Key] = b
		}
	}
	r := formats.Release{RequestID: "req-1", ExpireAt: at}
	if at < 0 {
		r.ExpireAt, s.TTL = locksteward.NoExpireAt, locksteward.NoExpiry
	}
	return s, r
}

func plan(t *testing.T, s formats.Sample, r formats.Release) formats.Command {
	t.Helper()
	d, _ := formats.Get(formats.Recognise(s).Format)
	command, err := d.Release(s, r)
	must(t, err)
	return command
}

func run(t *testing.T, c redis.Cmdable, command formats.Command) formats.Reply {
	t.Helper()
	raw, err := c.Eval(t.Context(), command.Script, command.Keys, command.Args...).Result()
	must(t, err)
	reply, err := formats.ParseReply(raw)
	must(t, err)
	return reply
}

func wantReply(t *testing.T, got formats.Reply, outcome, recorded formats.Outcome) {
	t.Helper()
	if got.Outcome != outcome || got.Recorded != recorded {
		t.Errorf("reply = %s (recorded %s), want %s (recorded %s)", got.Outcome, got.Recorded, outcome, recorded)
	}
}

func exists(t *testing.T, c redis.Cmdable, key string) bool {
	t.Helper()
	n, err := c.Exists(t.Context(), key).Result()
	must(t, err)
	return n == 1
}

// modes are the deployments on which all release tests run.
func modes(t *testing.T, test func(t *testing.T, c redis.UniversalClient)) {
	t.Helper()
	t.Run("standalone", func(t *testing.T) {
		t.Parallel()
		test(t, testredis.Start(t).Client(t))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		test(t, testredis.StartCluster(t).Client(t))
	})
}

func TestReleaseRemovesExactlyThisHold(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, c redis.UniversalClient) {
		for name, takeLock := range take {
			for what, suffix := range keys {
				for ttlName, ttl := range map[string]time.Duration{"ttl": time.Minute, "no ttl": 0} {
					t.Run(name+"/"+what+"/"+ttlName, func(t *testing.T) {
						key := suffix + name + ttlName
						takeLock(t, c, key, ttl)
						fence := record.FenceKey(record.DefaultPrefix, key)
						must(t, c.Set(t.Context(), fence, "7", 0).Err())
						s, r := look(t, c, key)
						command := plan(t, s, r)
						wantReply(t, run(t, c, command), formats.OutcomeReleased, formats.OutcomeReleased)
						if exists(t, c, key) || exists(t, c, record.Companion(record.DefaultPrefix, record.KindHold, key)) {
							t.Error("the lock or its metadata is still there")
						}
						if c.Get(t.Context(), fence).Val() != "7" {
							t.Error("the fence did not stay")
						}
						checkExec(t, c, key, "1")

						// The next holder of the name must be safe from the same request.
						takeLock(t, c, key, ttl)
						wantReply(t, run(t, c, command), formats.OutcomeRepeated, formats.OutcomeReleased)
						if !exists(t, c, key) {
							t.Error("a repeated request released the next hold")
						}
					})
				}
			}
		}
	})
}

func checkExec(t *testing.T, c redis.Cmdable, key, outcome string) {
	t.Helper()
	exec := record.Companion(record.DefaultPrefix, record.KindExec, key)
	fields := c.HGetAll(t.Context(), exec).Val()
	if fields["request"] != "req-1" || fields["outcome"] != outcome || len(fields["at"]) != 13 {
		t.Errorf("exec record = %v, want req-1 with outcome %s and a time", fields, outcome)
	}
	if ttl := c.PTTL(t.Context(), exec).Val(); ttl <= formats.ExecTTL-time.Minute || ttl > formats.ExecTTL {
		t.Errorf("exec record lives %s, want %s", ttl, formats.ExecTTL)
	}
}

func TestReleaseTouchesNothingThatChanged(t *testing.T) {
	t.Parallel()
	changes := map[string]struct {
		only   string // format; "" for all
		change func(ctx context.Context, c redis.Cmdable, key string) error
		want   formats.Outcome
	}{
		"gone": {want: formats.OutcomeAlreadyGone, change: func(ctx context.Context, c redis.Cmdable, key string) error {
			return c.Del(ctx, key).Err()
		}},
		"renewed": {want: formats.OutcomeChanged, change: func(ctx context.Context, c redis.Cmdable, key string) error {
			return c.PExpire(ctx, key, 61*time.Second).Err()
		}},
		"expiry removed": {want: formats.OutcomeChanged, change: func(ctx context.Context, c redis.Cmdable, key string) error {
			return c.Persist(ctx, key).Err()
		}},
		"other type": {want: formats.OutcomeChanged, change: func(ctx context.Context, c redis.Cmdable, key string) error {
			at := testredis.ExpireAt(t, c, key)
			return errors.Join(c.Del(ctx, key).Err(), c.RPush(ctx, key, "x").Err(), c.PExpireAt(ctx, key, time.UnixMilli(at)).Err())
		}},
		"other value": {want: formats.OutcomeChanged, change: func(ctx context.Context, c redis.Cmdable, key string) error {
			return errors.Join(c.Del(ctx, key).Err(), c.Set(ctx, key, "ls2:C3D4:another", redis.KeepTTL).Err())
		}},
		"same expiry, other value": {only: "string", want: formats.OutcomeChanged, change: func(ctx context.Context, c redis.Cmdable, key string) error {
			return c.Set(ctx, key, "ls2:C3D4:another", redis.KeepTTL).Err()
		}},
		"longer value": {only: "string", want: formats.OutcomeChanged, change: func(ctx context.Context, c redis.Cmdable, key string) error {
			return c.Append(ctx, key, "x").Err()
		}},
		"taken once more": {only: formats.Redisson, want: formats.OutcomeChanged, change: func(ctx context.Context, c redis.Cmdable, key string) error {
			return c.HIncrBy(ctx, key, redissonHolder, 1).Err()
		}},
		"released once": {only: formats.Redisson, want: formats.OutcomeChanged, change: func(ctx context.Context, c redis.Cmdable, key string) error {
			return c.HIncrBy(ctx, key, redissonHolder, -1).Err()
		}},
		"another field": {only: formats.Redisson, want: formats.OutcomeChanged, change: func(ctx context.Context, c redis.Cmdable, key string) error {
			return c.HSet(ctx, key, "mode", "read").Err()
		}},
		"another thread": {only: formats.Redisson, want: formats.OutcomeChanged, change: func(ctx context.Context, c redis.Cmdable, key string) error {
			return errors.Join(c.HSet(ctx, key, redissonHolder+"8", 2).Err(), c.HDel(ctx, key, redissonHolder).Err())
		}},
	}
	modes(t, func(t *testing.T, c redis.UniversalClient) {
		for name, takeLock := range take {
			for what, ch := range changes {
				if ch.only != "" && ch.only != name && (ch.only != "string" || name == formats.Redisson) {
					continue
				}
				t.Run(name+"/"+what, func(t *testing.T) {
					key := "lock:" + name + ":" + what
					takeLock(t, c, key, time.Minute)
					s, r := look(t, c, key)
					command := plan(t, s, r)
					must(t, ch.change(t.Context(), c, key))
					before := c.Dump(t.Context(), key).Val()
					expiry := testredis.ExpireAt(t, c, key)
					wantReply(t, run(t, c, command), ch.want, ch.want)
					if after := c.Dump(t.Context(), key).Val(); after != before {
						t.Error("the lock was touched")
					}
					if after := testredis.ExpireAt(t, c, key); after != expiry {
						t.Errorf("its expiry is %d, want %d", after, expiry)
					}
					if name == formats.Locksteward && !exists(t, c, record.Companion(record.DefaultPrefix, record.KindHold, key)) {
						t.Error("the metadata is gone")
					}

					// The first run decides: when the lock looks again as it did, the same
					// request still does nothing.
					must(t, c.Del(t.Context(), key).Err())
					takeLock(t, c, key, 0)
					must(t, c.Do(t.Context(), "PEXPIREAT", key, r.ExpireAt).Err())
					wantReply(t, run(t, c, command), formats.OutcomeRepeated, ch.want)
					if !exists(t, c, key) {
						t.Error("the repeated request released the lock")
					}
					// A new request may.
					r.RequestID = "req-2"
					wantReply(t, run(t, c, plan(t, s, r)), formats.OutcomeReleased, formats.OutcomeReleased)
				})
			}
		}
	})
}

func TestReleaseLeavesMetadataOfOthers(t *testing.T) {
	t.Parallel()
	c := testredis.Start(t).Client(t)
	for what, write := range map[string]func(key string) error{
		"another hold": func(meta string) error { return c.Set(t.Context(), meta, `{"id":"C3D4","v":2}`, 0).Err() },
		"another type": func(meta string) error {
			return errors.Join(c.Del(t.Context(), meta).Err(), c.HSet(t.Context(), meta, "x", 0).Err())
		},
	} {
		key := "lock:" + what
		take[formats.Locksteward](t, c, key, time.Minute)
		s, r := look(t, c, key)
		meta := record.Companion(record.DefaultPrefix, record.KindHold, key)
		must(t, write(meta))
		wantReply(t, run(t, c, plan(t, s, r)), formats.OutcomeReleased, formats.OutcomeReleased)
		if exists(t, c, key) || !exists(t, c, meta) {
			t.Errorf("%s: want the lock gone and the metadata left", what)
		}
	}
}

func TestReleaseUnderOwnPrefix(t *testing.T) {
	t.Parallel()
	c := testredis.Start(t).Client(t)
	const prefix, key = "billing:ls:", "lock:1"
	must(t, c.Set(t.Context(), key, ourValue, time.Minute).Err())
	must(t, c.Set(t.Context(), record.Companion(prefix, record.KindHold, key), `{"id":"A1B2","v":2}`, 0).Err())
	s, r := look(t, c, key)
	r.MetaPrefix = prefix
	wantReply(t, run(t, c, plan(t, s, r)), formats.OutcomeReleased, formats.OutcomeReleased)
	left := c.Keys(t.Context(), "*").Val()
	if want := record.Companion(prefix, record.KindExec, key); len(left) != 1 || left[0] != want {
		t.Errorf("keys left = %q, want only %q", left, want)
	}
}

func TestReleaseRefusals(t *testing.T) {
	t.Parallel()
	d, _ := formats.Get(formats.Token)
	s := formats.Sample{Key: "lock:1\n", Type: "string", Size: 1, Value: []byte("1")}
	for what, tt := range map[string]struct {
		s    formats.Sample
		r    formats.Release
		is   error
		text string
	}{
		"no request id":       {s, formats.Release{ExpireAt: 5}, locksteward.ErrInvalid, `release "lock:1\\n": request id is empty`},
		"expiry not known":    {s, formats.Release{RequestID: "r"}, locksteward.ErrRefused, "its expiry is not known"},
		"read in part":        {formats.Sample{Key: "k", Type: "string", Size: 5000, Value: []byte("1")}, formats.Release{RequestID: "r", ExpireAt: 5}, locksteward.ErrRefused, "not a token lock but unknown"},
		"another library's":   {formats.Sample{Key: "k", Type: "string", Size: 17, Value: []byte(ourValue)}, formats.Release{RequestID: "r", ExpireAt: 5}, locksteward.ErrRefused, "not a token lock but locksteward"},
		"a helper of another": {formats.Sample{Key: "lock-signal:a", Type: "string", Size: 1, Value: []byte("1")}, formats.Release{RequestID: "r", ExpireAt: 5}, locksteward.ErrRefused, "is no lock"},
	} {
		_, err := d.Release(tt.s, tt.r)
		if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v, want %v with %q", what, err, tt.is, tt.text)
		}
	}
	u, _ := formats.Get(formats.Unknown)
	for _, tt := range []struct {
		s   formats.Sample
		why string
	}{
		{formats.Sample{Key: "k", Type: "zset", Size: 1, Members: []formats.Member{{Name: "a"}}}, "no known library writes a zset"},
		{formats.Sample{Key: "k", Type: "stream", Size: 1, TooLarge: true}, "no known library writes a stream"},
		{formats.Sample{Key: "k", Type: "zset", Size: 65, TooLarge: true}, "the zset of size 65 was too large"},
		{formats.Sample{Key: "k", Type: "hash", Size: 65, TooLarge: true}, "the hash of size 65 was too large"},
		{formats.Sample{Key: "k", Type: "string", Size: 9}, "was not read in full"},
		{formats.Sample{Key: "k", Type: "none"}, "there is no such key"},
	} {
		_, err := u.Release(tt.s, formats.Release{RequestID: "r", ExpireAt: 5})
		if !errors.Is(err, locksteward.ErrRefused) || !strings.Contains(err.Error(), tt.why) || !strings.Contains(err.Error(), "docs/libraries/unknown.md") {
			t.Errorf("unknown: %v, want a refusal with %q that says what to do", err, tt.why)
		}
	}
}

func TestParseReply(t *testing.T) {
	t.Parallel()
	for _, bad := range []any{
		nil, "OK", int64(1),
		[]any{},
		[]any{int64(1), int64(0)},
		[]any{int64(1), "0", int64(1)},
		[]any{int64(2), int64(0), int64(1)},
		[]any{int64(-2), int64(0), int64(-2)},
		[]any{int64(1), int64(0), int64(1), int64(1)},
	} {
		if got, err := formats.ParseReply(bad); err == nil {
			t.Errorf("ParseReply(%v) = %v, want an error", bad, got)
		}
	}
	want := formats.Reply{Outcome: formats.OutcomeRepeated, Woken: 3, Recorded: formats.OutcomeReleased}
	if got, err := formats.ParseReply([]any{int64(-2), int64(3), int64(1)}); err != nil || got != want {
		t.Errorf("ParseReply = %v, %v, want %v", got, err, want)
	}
	for o, want := range map[formats.Outcome]string{1: "released", 0: "already_gone", -1: "changed", -2: "repeated", 9: "outcome(9)"} {
		if o.String() != want {
			t.Errorf("Outcome(%d) = %q, want %q", int64(o), o.String(), want)
		}
	}
}
