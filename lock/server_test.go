package lock_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

// wantCode wants an error reply of that code, which says so in the server's word.
func wantCode(t *testing.T, err error, want lock.Code, word string) *lock.ServerError {
	t.Helper()
	reply, ok := errors.AsType[*lock.ServerError](err)
	if !ok || reply.Code != want || !strings.Contains(reply.Err.Error(), word) {
		t.Fatalf("got %v, want code %s and the word %s", err, want, word)
	}
	return reply
}

var noPerm = regexp.MustCompile("NOPERM|[Nn]o permissions|can't run this command|can't access at least one of the keys")

// wantNoPerm wants the reply to a command that the user may not send: before Redis
// 7.0 scripts say so in words of their own.
func wantNoPerm(t *testing.T, err error) {
	t.Helper()
	if reply := wantCode(t, err, lock.CodeDenied, ""); !noPerm.MatchString(reply.Err.Error()) {
		t.Fatalf("got %v, want a missing right", err)
	}
}

// B26, B39, fault 51: another type under any of the lock's keys is a typed
// error at once, and nothing is written.
// fault: 51
func TestWrongTypeLeavesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	ctx := t.Context()
	fence := record.FenceKey(record.DefaultPrefix, "k")
	keys := map[string]string{"lock": "k", "metadata": metaKey("k"), "fence": fence}
	for typ, put := range map[string]func(key string) error{
		"list": func(key string) error { return b.rdb.RPush(ctx, key, "a", "b").Err() },
		"hash": func(key string) error { return b.rdb.HSet(ctx, key, "a", "1", "b", "2").Err() },
		"stream": func(key string) error {
			return b.rdb.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []string{"a", "1"}}).Err()
		},
	} {
		for name, key := range keys {
			if typ == "hash" && name == "metadata" {
				continue // that is what metadata is
			}
			what := typ + " under " + name
			b.rdb.Del(ctx, "k", metaKey("k"), fence)
			if err := put(key); err != nil {
				t.Fatal(err)
			}
			before := b.rdb.Dump(ctx, key).Val()
			began := time.Now()
			_, err := b.client.Acquire(ctx, "k", lease())
			reply := wantCode(t, err, lock.CodeWrongType, "WRONGTYPE")
			if reply.Temporary() || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", what, err)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("%s: took %s, a retry loop", what, took)
			}
			if n := exists(t, b.rdb, "k", metaKey("k"), fence); n != 1 {
				t.Errorf("%s: %d keys, want the %s alone", what, n, typ)
			}
			if after := b.rdb.Dump(ctx, key).Val(); after != before || before == "" {
				t.Errorf("%s: is %q, was %q", what, after, before)
			}
		}
	}
	for _, bad := range []string{"x", "-1", "1.5", "1e3", "0x10", "9007199254740992", strings.Repeat("9", 40), ""} {
		b.rdb.Del(ctx, "k", metaKey("k"), fence)
		b.rdb.Set(ctx, fence, bad, 0)
		_, err := b.client.Acquire(ctx, "k", lease())
		wantCode(t, err, lock.CodeFence, "FENCE")
		if n := exists(t, b.rdb, "k", metaKey("k")); n != 0 {
			t.Errorf("fence %q: %d keys left", bad, n)
		}
	}
}

// Promise: the fence grows over releases, expiry, loss of the lock, and loss of
// the counter.
func TestFenceIsMonotone(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	ctx := t.Context()
	fence := record.FenceKey(record.DefaultPrefix, "k")
	var last int64
	next := func(what string) *lock.Handle {
		t.Helper()
		h := mustAcquire(t, b.client, "k", lease())
		if h.Fence() <= last {
			t.Errorf("after %s: fence %d, before %d", what, h.Fence(), last)
		}
		last = h.Fence()
		return h
	}
	if f := next("nothing").Fence(); f < time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() {
		t.Errorf("first fence %d is not the server's clock", f)
	}
	b.rdb.Del(ctx, "k")
	mustRelease(t, next("deletion"))
	for range 50 {
		mustRelease(t, next("release"))
	}
	b.rdb.Del(ctx, fence)
	mustRelease(t, next("loss of the counter"))
	b.rdb.FlushAll(ctx)
	h := next("flush")
	// A counter ahead of the clock (the clock was set back) goes on by one.
	ahead := last + int64(time.Hour/time.Microsecond)
	b.rdb.Set(ctx, fence, ahead, 0)
	mustRelease(t, h)
	h = next("a clock that was set back")
	if h.Fence() != ahead+1 {
		t.Errorf("fence %d, want %d", h.Fence(), ahead+1)
	}
	// Even without the counter, metadata of a lost hold keeps it.
	b.rdb.Del(ctx, fence, "k")
	if h := next("loss of counter and lock"); h.Fence() != ahead+2 {
		t.Errorf("fence %d, want %d", h.Fence(), ahead+2)
	}
	if v := b.rdb.Get(ctx, fence).Val(); strings.ContainsAny(v, ".e+") {
		t.Errorf("fence is stored as %q", v)
	}
	// A release that hands the lock over goes on from it, too.
	h = mustAcquire(t, b.client, "k2", lease())
	b.rdb.Set(ctx, metaKey("k2"), strings.Replace(b.rdb.Get(ctx, metaKey("k2")).Val(), strconv.FormatInt(h.Fence(), 10), strconv.FormatInt(ahead+9, 10), 1), time.Minute)
	got := make(chan *lock.Handle, 1)
	go func() {
		next, _ := b.client.Acquire(context.Background(), "k2", lease())
		got <- next
	}()
	queued(t, b.rdb, "k2", 1)
	b.listening(t) // a lock is handed over only to who listens
	b.rdb.Del(ctx, record.FenceKey(record.DefaultPrefix, "k2"))
	mustRelease(t, h)
	if next := served(t, got); next.Fence() != ahead+10 {
		t.Errorf("after a hand-over without a counter: fence %d, want %d", next.Fence(), ahead+10)
	}
	if ttl := b.rdb.PTTL(ctx, fence).Val(); ttl != -1 {
		t.Errorf("the counter has a TTL: %s", ttl)
	}
}

// B14, fault 41: a script that the server has forgotten is sent in full once, and
// from then on named by its hash again; who calls sees nothing of it.
// fault: 41
func TestScriptFlush(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	for range 3 {
		b.rdb.ScriptFlush(t.Context())
		h := mustAcquire(t, b.client, "k", lease())
		b.rdb.ScriptFlush(t.Context())
		if err := h.Extend(t.Context(), 0); err != nil {
			t.Error(err)
		}
		b.rdb.ScriptFlush(t.Context())
		mustRelease(t, h)
	}
	sent := evalsOf(t, b)
	b.rdb.ScriptFlush(t.Context())
	for n := range 2 {
		h := mustAcquire(t, b.client, "k", lease())
		if err := h.Extend(t.Context(), 0); err != nil {
			t.Error(err)
		}
		mustRelease(t, h)
		// Not the heartbeat, which comes when it likes.
		counts := sent()
		for _, file := range []string{"acquire.lua", "renew.lua", "release.lua"} {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(text), "\n")
			if got := counts[first]; got != 1 {
				t.Errorf("%s was sent in full %d times after %d uses, want once", file, got, n+1)
			}
		}
	}
}

// evalsOf watches the server; what it returns says how often each script has been
// sent in full since then, by its first line.
func evalsOf(t *testing.T, b *bundle) func() map[string]int {
	t.Helper()
	conn, err := net.Dial("tcp", b.srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(conn)
	read := func() string {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	read() // OK: from here on it tells
	counts := map[string]int{}
	return func() map[string]int {
		mark := rand.Text()
		if err := b.rdb.Echo(t.Context(), mark).Err(); err != nil {
			t.Fatal(err)
		}
		for {
			line := read()
			if strings.Contains(line, mark) {
				return maps.Clone(counts)
			}
			_, rest, ok := strings.Cut(line, `] "eval" `)
			if !ok {
				continue
			}
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				t.Fatal(err)
			}
			text, err := strconv.Unquote(quoted)
			if err != nil {
				t.Fatal(err)
			}
			// Valkey 8.1 tells letters beyond ASCII in a way of its own; our first lines have none.
			first, _, _ := strings.Cut(text, "\n")
			counts[first]++
		}
	}
}

// B28, fault 42: an acquire under OOM leaves nothing, a release works.
// fault: 42
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	ctx := t.Context()
	h := mustAcquire(t, b.client, "held", lease())
	if err := b.rdb.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := b.client.TryAcquire(ctx, "k", lease())
	wantCode(t, err, lock.CodeOOM, "OOM")
	if n := exists(t, b.rdb, "k", metaKey("k"), record.FenceKey(record.DefaultPrefix, "k")); n != 0 {
		t.Errorf("%d keys left", n)
	}
	if _, err := b.client.TryAcquire(ctx, "held", lease()); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("a held lock under OOM: %v", err)
	}
	if err := h.Extend(ctx, 0); err != nil {
		t.Errorf("renewal under OOM: %v", err)
	}
	mustRelease(t, h)
}

// Promise: nothing is left behind when any part fails. Each command that the
// acquire needs is denied in turn.
func TestDeniedCommandLeavesNothing(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 6, 2, "a channel in an ACL")
	srv := testredis.Start(t, testredis.WithACL("app on >secret ~* &* +@all"))
	admin := srv.Client(t)
	ctx := t.Context()
	for _, rule := range []string{"-set", "-time", "-eval -evalsha", "-set -del", "resetkeys ~k ~*fence*", "resetkeys ~k ~*fence* -del", "resetkeys ~k"} {
		t.Run(rule, func(t *testing.T) {
			admin.FlushAll(ctx)
			if err := admin.Do(ctx, append([]any{"ACL", "SETUSER", "app", "reset", "on", ">secret", "~*", "&*", "+@all"}, words(rule)...)...).Err(); err != nil {
				t.Fatal(err)
			}
			// No heartbeat: only what the acquire does.
			rdb := srv.ClientAs(t, "app", "secret")
			c := open(t, rdb, lock.Options{KeyPrefix: "p:"})
			_, err := c.Acquire(ctx, "k", lease())
			wantNoPerm(t, err)
			testredis.Eventually(t, 2*time.Second, func() bool {
				keys := admin.Keys(context.Background(), "*").Val()
				return !slices.ContainsFunc(keys, func(k string) bool {
					return !strings.HasPrefix(k, "p:fence:") && !strings.HasPrefix(k, "p:instance:")
				})
			}, "lock or metadata left behind")
			for _, key := range admin.Keys(ctx, "p:instance:*").Val() {
				testredis.Eventually(t, 2*time.Second, func() bool {
					return admin.PTTL(context.Background(), key).Val() != -1
				}, "heartbeat without TTL")
			}
		})
	}
}

func words(s string) []any {
	var list []any
	for w := range strings.FieldsSeq(s) {
		list = append(list, w)
	}
	return list
}

// Who may not read the lock can take it, as that reads nothing, but neither
// renew nor release it: both say so, and the lock ends with its lease.
func TestDeniedReadEndsWithTheLease(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 6, 2, "SET with GET, without which a lock is not taken unread,")
	srv := testredis.Start(t, testredis.WithACL("app on >secret ~* &* +@all -get"))
	c := open(t, srv.ClientAs(t, "app", "secret"), lock.Options{Timeout: 2 * time.Second})
	h := mustAcquire(t, c, "k", lock.Lease{TTL: 3 * time.Second, NoRenew: true})
	wantNoPerm(t, h.Extend(t.Context(), 0))
	wantNoPerm(t, h.Release(t.Context()))
	testredis.Eventually(t, 10*time.Second, func() bool { return exists(t, srv.Client(t), "k") == 0 }, "the lease ends")
}

// Renewal refused by ACL: counted, and the hold ends by the clock.
func TestDeniedRenewalEndsHoldInTime(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL("app on >secret ~* &* +@all"))
	admin := srv.Client(t)
	events := &recorder{}
	c := open(t, srv.ClientAs(t, "app", "secret"), lock.Options{})
	c.Observe(events.add)
	// A timer that is late by a tenth of it gives another reason.
	h := mustAcquire(t, c, "k", lock.Lease{TTL: 6 * time.Second})
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "app", "-pexpire").Err(); err != nil {
		t.Fatal(err)
	}
	if r := lostReason(t, h, 20*time.Second); r != lock.ReasonExpired {
		t.Errorf("reason %s", r)
	}
	wantNoPerm(t, context.Cause(h.Context()))
	if n := len(events.of(lock.EventRenewFailed)); n < 2 {
		t.Errorf("%d failed renewals told", n)
	}
}

// Fault 33: a replica is refused with a typed error after the budget, without a
// storm.
// fault: 33
func TestReadOnlyReplica(t *testing.T) {
	t.Parallel()
	master := testredis.Start(t)
	replica := testredis.StartReplica(t, master)
	c := open(t, replica.Client(t), lock.Options{Timeout: time.Second})
	began := time.Now()
	_, err := c.Acquire(t.Context(), "k", lease())
	reply := wantCode(t, err, lock.CodeUnavailable, "READONLY")
	if !reply.Temporary() || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}

// Faults 27 and 41 and a server that is down: bounded, and it works again
// afterwards, with scripts that the server does not know any more.
// fault: 27, 41
func TestServerRestart(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{Timeout: time.Second})
	h := mustAcquire(t, b.client, "k", lock.Lease{TTL: time.Minute, RenewFraction: 0.01})
	b.srv.Kill()
	began := time.Now()
	if _, err := b.client.Acquire(t.Context(), "k2", lease()); err == nil || errors.Is(err, lock.ErrHeld) {
		t.Errorf("server is down: %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	b.srv.Restart()
	if r := lostReason(t, h, 20*time.Second); r != lock.ReasonGone {
		t.Errorf("reason %s", r)
	}
	next := mustAcquire(t, b.client, "k", lease())
	if next.Fence() <= h.Fence() {
		t.Errorf("fence %d after the restart, before %d", next.Fence(), h.Fence())
	}
	mustRelease(t, next)
}

// A request that lay in the buffers of a stopped server is executed when it goes
// on, perhaps after what was sent to undo it: nothing is left all the same.
func TestStrayAcquireIsCleanedUp(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{Timeout: time.Second})
	mustRelease(t, mustAcquire(t, b.client, "warm", lease()))
	b.srv.Pause()
	_, err := b.client.TryAcquire(t.Context(), "k", lease())
	b.srv.Resume()
	if !errors.Is(err, lock.ErrUnknown) {
		t.Fatalf("got %v", err)
	}
	b.events.wait(t, lock.EventCleaned, 1, 10*time.Second)
	if n := exists(t, b.rdb, "k", metaKey("k")); n != 0 {
		t.Errorf("%d keys left", n)
	}
}

// Fault 53: any bytes may be a name; nothing but that name is touched.
// fault: 53
func TestHostileNames(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	for _, key := range []string{
		"a", "{a}", "a}b", "{}x", "a{}b{c}", "{", "}", "{{a}", "a{b", " ", "\n", "\x00", "\xff\xfe", `"'\`, "*", "日本",
		strings.Repeat("x", lock.MaxKey),
	} {
		h := mustAcquire(t, b.client, key, lease())
		if m := meta(t, b.rdb, key); m == nil || m.ID != h.ID() {
			t.Errorf("%q: metadata %+v", key, m)
		}
		mustRelease(t, h)
		if n := exists(t, b.rdb, key, metaKey(key)); n != 0 {
			t.Errorf("%q: %d keys left", key, n)
		}
	}
}

// The heartbeat: who this process is, with a TTL, and gone at Close unless a
// lock is held.
func TestInstanceHeartbeat(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	for _, held := range []bool{false, true} {
		c, err := lock.New(rdb, lock.Options{App: "billing", Host: "web-1", Slot: "billing-0"})
		if err != nil {
			t.Fatal(err)
		}
		key := record.InstanceKey(record.DefaultPrefix, c.Instance())
		if exists(t, rdb, key) != 0 {
			t.Error("heartbeat before the first acquire")
		}
		h := mustAcquire(t, c, "k", lease())
		testredis.Eventually(t, 5*time.Second, func() bool { return exists(t, rdb, key) == 1 }, "heartbeat")
		i, err := record.DecodeInstance(rdb.HGetAll(t.Context(), key).Val())
		if err != nil {
			t.Fatal(err)
		}
		now := rdb.Time(t.Context()).Val()
		started := time.UnixMilli(i.Started)
		if i.ID != c.Instance() || i.App != "billing" || i.Host != "web-1" || i.Slot != "billing-0" || i.PID == 0 ||
			now.Sub(started) < 0 || now.Sub(started) > 10*time.Second {
			t.Errorf("heartbeat: %+v at %s", i, now)
		}
		if ttl := rdb.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > record.HeartbeatTTL {
			t.Errorf("TTL %s", ttl)
		}
		want := int64(1)
		if !held {
			mustRelease(t, h)
			want = 0
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if n := exists(t, rdb, key); n != want {
			t.Errorf("held %t: heartbeat keys after Close: %d", held, n)
		}
	}
}

var _ redis.UniversalClient = (*redis.Ring)(nil)

// The ACL that docs/lock.md prints is enough for everything, and nothing is
// denied under it.
func TestDocumentedACLIsEnough(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 7, 0, "the list of the page")
	doc, err := os.ReadFile("../docs/lock.md")
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for l := range strings.SplitSeq(string(doc), "\n") {
		if rest, ok := strings.CutPrefix(l, "    "); ok && (strings.HasPrefix(rest, "+") || strings.HasPrefix(rest, "~")) {
			rules = append(rules, strings.ReplaceAll(rest, "~<your locks>", "~lock:*"))
		}
	}
	srv := testredis.Start(t, testredis.WithACL("app on >secret "+strings.ReplaceAll(strings.Join(rules, " "), "+client|setinfo ", "")))
	events := &recorder{}
	c := open(t, srv.ClientAs(t, "app", "secret"), lock.Options{})
	c.Observe(events.add)
	h := mustAcquire(t, c, "lock:1", lock.Lease{TTL: 30 * time.Second, RenewFraction: 0.01})
	got := make(chan error, 1)
	go func() {
		h, err := c.Acquire(context.Background(), "lock:1", lease())
		if err == nil {
			err = h.Release(context.Background())
		}
		got <- err
	}()
	events.wait(t, lock.EventRenewed, 2, 5*time.Second)
	admin := srv.Client(t)
	instance := record.InstanceKey(record.DefaultPrefix, c.Instance())
	testredis.Eventually(t, 5*time.Second, func() bool {
		n := admin.PubSubNumSub(context.Background(), instance).Val()
		return n[instance] == 1 && exists(t, admin, instance) == 1
	}, "subscriptions and heartbeat")
	mustRelease(t, h)
	if err := <-got; err != nil {
		t.Error(err)
	}
	if log := admin.ACLLog(t.Context(), 10).Val(); len(log) != 0 {
		for _, e := range log {
			t.Errorf("denied: %s %s", e.Reason, e.Object)
		}
	}
}
