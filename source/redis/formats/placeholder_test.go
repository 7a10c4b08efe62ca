package formats_test

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// ours are our own format and that of any string, as scripts.
var ours = []script{
	set(formats.Locksteward, "lock:order:ours", ourValue, "ls2:C3D4:other", 30000),
	set(formats.Token, "lock:order:token", uuidToken, uuidToken2, 30000),
}

// onServer runs a test for the lock of each format in turn, on one server.
func onServer(t *testing.T, test func(t *testing.T, c *redis.Client, sc script)) {
	t.Helper()
	c := testredis.Start(t).Client(t)
	for _, sc := range slices.Concat(scripts, ours) {
		t.Run(sc.format+"/"+sc.key, func(t *testing.T) {
			must(t, c.FlushAll(t.Context()).Err())
			test(t, c, sc)
		})
	}
}

// TestUndoPutsBackExactlyTheLock: bytes and expiry are as they were, and anyone who
// holds the lock by then keeps it.
func TestUndoPutsBackExactlyTheLock(t *testing.T) {
	t.Parallel()
	onServer(t, func(t *testing.T, c *redis.Client, sc script) {
		do(t, c, sc.take)
		s, r := seen(t, c, sc.key, "req-1")
		r.Undo = 10 * time.Minute
		before, at := c.Dump(t.Context(), sc.key).Val(), testredis.ExpireAt(t, c, sc.key)
		wantReply(t, run(t, c, plan(t, s, r)), formats.OutcomeReleased, formats.OutcomeReleased)
		aside := record.Companion(record.DefaultPrefix, record.KindUndo, sc.key)
		undo, err := formats.Undo(sc.format, sc.key, "req-1", formats.Release{RequestID: "req-2", ExpireAt: r.ExpireAt})
		if formats.WhyNoUndo(sc.format) != "" {
			if err == nil || exists(t, c, aside) {
				t.Errorf("undo of a format that has none: %v, kept aside %t", err, exists(t, c, aside))
			}
			return
		}
		must(t, err)
		if exists(t, c, sc.key) || !exists(t, c, aside) {
			t.Fatal("the lock was not set aside")
		}
		if left := c.PTTL(t.Context(), aside).Val(); left <= 0 || left > 10*time.Minute || r.ExpireAt > 0 && left > s.TTL {
			t.Errorf("kept for %s, the lock had %s left", left, s.TTL)
		}
		wantReply(t, run(t, c, undo), formats.OutcomeReleased, formats.OutcomeReleased)
		if c.Dump(t.Context(), sc.key).Val() != before || testredis.ExpireAt(t, c, sc.key) != at || exists(t, c, aside) {
			t.Error("what was put back is not what was taken away")
		}
		wantReply(t, run(t, c, undo), formats.OutcomeRepeated, formats.OutcomeReleased)

		// Somebody else has the key by then.
		s, r = seen(t, c, sc.key, "req-3")
		r.Undo = 10 * time.Minute
		release := plan(t, s, r)
		wantReply(t, run(t, c, release), formats.OutcomeReleased, formats.OutcomeReleased)
		must(t, c.Set(t.Context(), sc.key, "somebody else", time.Minute).Err())
		undo, err = formats.Undo(sc.format, sc.key, "req-3", formats.Release{RequestID: "req-4", ExpireAt: r.ExpireAt})
		must(t, err)
		wantReply(t, run(t, c, undo), formats.OutcomeChanged, formats.OutcomeChanged)
		if c.Get(t.Context(), sc.key).Val() != "somebody else" {
			t.Error("the undo touched the lock of somebody else")
		}
		// Not what another request set aside.
		undo, err = formats.Undo(sc.format, sc.key, "req-1", formats.Release{RequestID: "req-5", ExpireAt: r.ExpireAt})
		must(t, err)
		must(t, c.Del(t.Context(), sc.key).Err())
		wantReply(t, run(t, c, undo), formats.OutcomeAlreadyGone, formats.OutcomeAlreadyGone)
	})
}

// TestAnOwnerThatNobodyIsKeepsOthersOut: a placeholder is a
// held lock to the library, no lock to us, and lifted by its own request alone.
func TestAnOwnerThatNobodyIsKeepsOthersOut(t *testing.T) {
	t.Parallel()
	onServer(t, func(t *testing.T, c *redis.Client, sc script) {
		do(t, c, sc.take)
		s, r := seen(t, c, sc.key, "req-1")
		r.Placeholder, r.Undo = time.Minute, 10*time.Minute
		d, _ := formats.Get(sc.format)
		release, err := d.Release(s, r)
		if why := formats.WhyNoPlaceholder(sc.format, r.ExpireAt); why != "" {
			if err == nil {
				t.Errorf("no placeholder is possible (%s), and yet %v", why, release.Keys)
			}
			return
		}
		must(t, err)
		wantReply(t, run(t, c, release), formats.OutcomeReleased, formats.OutcomeReleased)
		held, sr := seen(t, c, sc.key, "req-2")
		if !formats.IsPlaceholder(held) || held.Type != s.Type || held.TTL <= 0 || held.TTL > time.Minute {
			t.Fatalf("the key holds %+v", held)
		}
		if id, ok := formats.PlaceholderRequest(held); !ok || id != "req-1" {
			t.Errorf("it is the placeholder of request %q, %t", id, ok)
		}
		if kind, ok := formats.Decide(class.Match{}, held, formats.Recognise(held)); !ok || kind != locksteward.KindLock {
			t.Errorf("who does not know the release takes it for %q, %t", kind, ok)
		}
		if _, err := d.Release(held, sr); err == nil {
			t.Error("it can be released like a lock")
		}
		// An honest taker does not get it: nobody's compare finds its own owner.
		if sc.take[0][0] == "SET" && slices.Contains(sc.take[0], any("NX")) {
			if err := c.Do(t.Context(), sc.take[0]...).Err(); err != redis.Nil {
				t.Errorf("taken all the same: %v", err)
			}
		}
		other, err := formats.Lift(sc.format, sc.key, "req-9", formats.Release{RequestID: "req-3"})
		must(t, err)
		wantReply(t, run(t, c, other), formats.OutcomeChanged, formats.OutcomeChanged)
		must(t, c.PExpire(t.Context(), sc.key, time.Hour).Err()) // by a renewer that does not compare
		lift, err := formats.Lift(sc.format, sc.key, "req-1", formats.Release{RequestID: "req-4"})
		must(t, err)
		wantReply(t, run(t, c, lift), formats.OutcomeReleased, formats.OutcomeReleased)
		if exists(t, c, sc.key) {
			t.Error("it is still there")
		}
		wantReply(t, run(t, c, lift), formats.OutcomeRepeated, formats.OutcomeReleased)
		again, err := formats.Lift(sc.format, sc.key, "req-1", formats.Release{RequestID: "req-5"})
		must(t, err)
		wantReply(t, run(t, c, again), formats.OutcomeAlreadyGone, formats.OutcomeAlreadyGone)
	})
}

// TestUndoOfATakeOver puts the old holder back in the place of the placeholder.
func TestUndoOfATakeOver(t *testing.T) {
	t.Parallel()
	onServer(t, func(t *testing.T, c *redis.Client, sc script) {
		do(t, c, sc.take)
		s, r := seen(t, c, sc.key, "req-1")
		if formats.WhyNoPlaceholder(sc.format, r.ExpireAt) != "" || formats.WhyNoUndo(sc.format) != "" {
			return
		}
		r.Placeholder, r.Undo = time.Minute, 10*time.Minute
		before := c.Dump(t.Context(), sc.key).Val()
		wantReply(t, run(t, c, plan(t, s, r)), formats.OutcomeReleased, formats.OutcomeReleased)
		undo, err := formats.Undo(sc.format, sc.key, "req-1", formats.Release{RequestID: "req-2", ExpireAt: r.ExpireAt})
		must(t, err)
		wantReply(t, run(t, c, undo), formats.OutcomeReleased, formats.OutcomeReleased)
		if c.Dump(t.Context(), sc.key).Val() != before {
			t.Error("the old holder is not back")
		}
	})
}

// TestHolderAlive: what a renewal changes is not compared, what names the owner
// is.
func TestHolderAlive(t *testing.T) {
	t.Parallel()
	onServer(t, func(t *testing.T, c *redis.Client, sc script) {
		do(t, c, sc.take)
		s, r := seen(t, c, sc.key, "req-1")
		r.HolderAlive = true
		release := plan(t, s, r)
		must(t, c.PExpire(t.Context(), sc.key, 77*time.Second).Err())
		if s.Type == "zset" {
			for _, m := range s.Members {
				must(t, c.ZAdd(t.Context(), sc.key, redis.Z{Member: m.Name, Score: m.Score + 1}).Err())
			}
		}
		wantReply(t, run(t, c, release), formats.OutcomeReleased, formats.OutcomeReleased)

		must(t, c.FlushAll(t.Context()).Err())
		do(t, c, sc.take)
		s, r = seen(t, c, sc.key, "req-2")
		r.HolderAlive = true
		release = plan(t, s, r)
		must(t, c.Del(t.Context(), sc.key).Err())
		switch s.Type {
		case "string":
			must(t, c.Set(t.Context(), sc.key, "another owner", time.Minute).Err())
		case "hash":
			must(t, c.HSet(t.Context(), sc.key, "another owner", 1).Err())
		case "set":
			must(t, c.SAdd(t.Context(), sc.key, "another owner").Err())
		default:
			must(t, c.ZAdd(t.Context(), sc.key, redis.Z{Member: "another owner", Score: 1}).Err())
		}
		wantReply(t, run(t, c, release), formats.OutcomeChanged, formats.OutcomeChanged)
		if !exists(t, c, sc.key) {
			t.Error("another owner's lock was released")
		}
	})
}

// TestNothingIsTouchedWhereTheAsideIsRefused: rights that only an undo or a placeholder
// needs are tried before the lock is.
func TestNothingIsTouchedWhereTheAsideIsRefused(t *testing.T) {
	t.Parallel()
	for _, denied := range []string{"-rename", "-set", "-hset", "resetkeys ~lock:* ~locksteward:exec:* ~locksteward:hold:*"} {
		t.Run(denied, func(t *testing.T) {
			t.Parallel()
			server := testredis.Start(t, testredis.WithACL("releaser on >pw ~* &* +@all "+denied))
			admin, user := server.Client(t), server.ClientAs(t, "releaser", "pw")
			for name, takeLock := range take {
				key := "lock:" + name
				takeLock(t, admin, key, time.Minute)
				before := admin.Dump(t.Context(), key).Val()
				s, r := look(t, admin, key)
				r.Placeholder, r.Undo = time.Minute, time.Minute
				if denied == "-set" && s.Type != "string" {
					continue // not needed for this type
				}
				command := plan(t, s, r)
				if reply, err := user.Eval(t.Context(), command.Script, command.Keys, command.Args...).Result(); err == nil {
					t.Errorf("%s: reply %v, want an error", name, reply)
				}
				exec := record.Companion(record.DefaultPrefix, record.KindExec, key)
				if admin.Dump(t.Context(), key).Val() != before || exists(t, admin, exec) {
					t.Errorf("%s: the lock was touched, or a record reports what was not done", name)
				}
			}
		})
	}
}

// TestWhatCannotBeReleasedSaysWhy: each refusal is a sentence of its own kind.
func TestWhatCannotBeReleasedSaysWhy(t *testing.T) {
	t.Parallel()
	never := map[string]bool{}
	for _, d := range formats.All() {
		why := formats.WhyNever(d.Name)
		never[d.Name] = why != ""
		if why != "" && d.Name != formats.Unknown {
			page, err := os.ReadFile("../../../docs/libraries/" + d.Name + ".md")
			must(t, err)
			if !bytes.Contains(page, []byte("**Refused.**")) || !bytes.Contains(page, []byte("## By hand")) {
				t.Errorf("docs/libraries/%s.md does not say that a release is refused, or how a person does it", d.Name)
			}
		}
		if why != "" && formats.WhyNoPlaceholder(d.Name, locksteward.NoExpireAt) == "" {
			t.Errorf("%s: cannot be released, and yet taken over", d.Name)
		}
	}
	for _, name := range []string{"huey-lock", "redisson-semaphore", "redisson-latch", "asynq-lease", "rq-maintenance", formats.Unknown} {
		if !never[name] {
			t.Errorf("%s counts as releasable", name)
		}
	}
	for _, name := range []string{formats.Token, formats.Locksteward, formats.Redisson} {
		if never[name] {
			t.Errorf("%s counts as not releasable", name)
		}
	}
}

// TestForgedPlaceholders: a placeholder is one of the forms that a release writes, and nothing
// else; what has its mark is a lock to who does not know the release, and no format
// releases it.
func TestForgedPlaceholders(t *testing.T) {
	t.Parallel()
	mark := formats.PlaceholderOwner("r-1")
	text := func(value string) formats.Sample {
		return formats.Sample{Type: "string", Value: []byte(value), Size: int64(len(value))}
	}
	hash := func(fields map[string]string) formats.Sample {
		return formats.Sample{Type: "hash", Fields: fields, Size: int64(len(fields))}
	}
	zset := func(members ...formats.Member) formats.Sample {
		return formats.Sample{Type: "zset", Members: members, Size: int64(len(members))}
	}
	live := "b983c153-7421-469a-addb-44fb92259a1b:1"
	cut := text(mark)
	cut.Size, cut.TooLarge = 5000, true
	for name, tc := range map[string]struct {
		s     formats.Sample
		whole bool
	}{
		"string":                       {text(mark), true},
		"string and more":              {text(mark + ":more"), false},
		"no request":                   {text(formats.PlaceholderOwner("")), false},
		"string read in part":          {cut, false},
		"Redisson hash":                {hash(map[string]string{mark: "1"}), true},
		"with another count":           {hash(map[string]string{mark: "2"}), false},
		"field in a live Redisson":     {hash(map[string]string{mark: "1", live: "1"}), false},
		"Redisson write lock":          {hash(map[string]string{mark + ":write": "1", "mode": "write"}), true},
		"field in a live write lock":   {hash(map[string]string{mark + ":write": "1", live + ":write": "1", "mode": "write"}), false},
		"go-redislock writer":          {hash(map[string]string{"writer": mark, "mode": "write", "wcount": "1"}), true},
		"go-redislock with a reader":   {hash(map[string]string{"writer": mark, "mode": "write", "wcount": "1", "r:x": "1"}), false},
		"Symfony":                      {zset(formats.Member{Name: mark, Score: 1.9e12}, formats.Member{Name: "__write__", Score: 1.9e12}), true},
		"member in a live Symfony set": {zset(formats.Member{Name: mark, Score: 1.9e12}, formats.Member{Name: "x", Score: 1.9e12}), false},
	} {
		s := tc.s
		s.Key, s.TTL = "job:17", time.Minute
		if id, ok := formats.PlaceholderRequest(s); ok != tc.whole || ok && id != "r-1" {
			t.Errorf("%s: placeholder of %q, %t", name, id, ok)
		}
		d := formats.Recognise(s)
		if kind, ok := formats.Decide(class.Match{}, s, d); !ok || kind != locksteward.KindLock {
			t.Errorf("%s: %q, %t, and not a lock", name, kind, ok)
		}
		as, _ := formats.Get(d.Format)
		if _, err := as.Release(s, formats.Release{RequestID: "r-2", ExpireAt: time.Now().UnixMilli()}); err == nil {
			t.Errorf("%s: it can be released", name)
		}
	}
}
