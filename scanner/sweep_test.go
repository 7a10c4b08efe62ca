package scanner_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/scanner"
	redissource "github.com/locksteward/locksteward/source/redis"
)

func TestSweepFindsEveryKindOfLock(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	for i := range 500 {
		must(t, c.Set(ctx, fmt.Sprintf("user:%d:stock", i), "x", 0).Err())
	}
	must(t, c.Set(ctx, "lock:setnx", "1", 0).Err())
	must(t, c.Set(ctx, "lock:token", "0d9f3f7e-52f9-4a38-9a53-64cbd2c04d6f", 30*time.Second).Err())
	redisson := "5f3759df-a1b2-c3d4-e5f6-0123456789ab:42"
	must(t, c.HSet(ctx, "inventory", redisson, "2").Err())
	must(t, c.PExpire(ctx, "inventory", 30*time.Second).Err())
	heartbeat(t, c, "i1")
	meta := record.Meta{ID: "01J", Instance: "i1", App: "billing", Host: "h", PID: 9, Class: "orders", Expect: 5000, Fence: 77}
	take(t, c, "any name at all", meta, time.Minute)
	waiter := record.Waiter{Instance: "i1", Since: 1, Until: time.Now().Add(time.Minute).UnixMilli()}.Encode()
	must(t, c.HSet(ctx, record.Companion("locksteward:", record.KindWaiter, "any name at all"), "w1", waiter, "w2", waiter).Err())
	must(t, c.Set(ctx, record.FenceKey("locksteward:", "x"), "7", 0).Err())
	must(t, c.HSet(ctx, record.Companion("locksteward:", record.KindExec, "lock:token"), "id", "x").Err())
	must(t, c.Set(ctx, "myclock:stock", "x", 0).Err())

	r := fast(srv.URL())
	r.classes = []class.Class{{Name: "stock", Match: []string{"inventory"}}}
	s := r.build(t)
	got := sweep(t, s)

	want := []string{"any name at all", "inventory", "lock:setnx", "lock:token"}
	if !slices.Equal(names(got.Locks), want) {
		t.Fatalf("locks %q, want %q", names(got.Locks), want)
	}
	if got.Keys() != 510 {
		t.Errorf("%d keys, want 510", got.Keys())
	}
	ours := find(t, got.Locks, "any name at all")
	if ours.Library != "locksteward" || ours.Claim == nil || ours.Claim.ID != "01J" || ours.Fence != 77 || ours.Waiters != 2 {
		t.Errorf("our lock: %+v, claim %+v", ours.Observation, ours.Claim)
	}
	if i := ours.Instance; i == nil || i.App != "app-i1" || i.Beat.IsZero() || ours.At.Sub(i.Beat) > 5*time.Second {
		t.Errorf("instance: %+v", i)
	}
	if ours.Holder.Instance != "i1" || ours.Holder.Host != "h" || ours.Identity != locksteward.IdentityStrong {
		t.Errorf("holder %+v, identity %s", ours.Holder, ours.Identity)
	}
	setnx := find(t, got.Locks, "lock:setnx")
	if setnx.TTL != locksteward.NoExpiry || setnx.ExpireAt != locksteward.NoExpireAt || setnx.Identity != locksteward.IdentityNone || !setnx.SharedToken {
		t.Errorf("setnx: %+v", setnx.Observation)
	}
	if setnx.Class != class.Default || setnx.Configured || setnx.Kind != locksteward.KindLock || setnx.Size != 1 || setnx.Idle < 0 {
		t.Errorf("setnx: %+v", setnx.Observation)
	}
	token := find(t, got.Locks, "lock:token")
	if left := time.UnixMilli(token.ExpireAt).Sub(token.At); left <= 0 || left > 30*time.Second || token.TTL > 30*time.Second {
		t.Errorf("token: expires in %s, ttl %s", left, token.TTL)
	}
	if !strings.HasPrefix(token.TokenDigest, "hmac-sha256:") {
		t.Errorf("digest %q", token.TokenDigest)
	}
	stock := find(t, got.Locks, "inventory")
	if stock.Library != "redisson" || stock.Class != "stock" || !stock.Configured || stock.Count != 2 || stock.Type != "hash" {
		t.Errorf("redisson: %+v", stock.Observation)
	}
	if got.At.IsZero() || got.Masters[0].Node != srv.Addr() {
		t.Errorf("sweep: %+v", got)
	}
	if l, ok := s.Table().Get(0, "lock:token"); !ok || l.Key != "lock:token" {
		t.Error("the table does not have lock:token")
	}
	if _, ok := s.Table().Get(1, "lock:token"); ok {
		t.Error("the table has a lock of another database")
	}
	if _, err := s.Table().Refresh(ctx, "nothing"); err == nil {
		t.Error("a key that is not there was read")
	}
	state := s.State()
	if n := state.Nodes; !state.Up || len(n) != 1 || n[0].Version == "" || (n[0].MaxClients <= 0) == testredis.Version(t).AtLeast(6, 2) || n[0].MemoryUsed <= 0 || n[0].CPUUser < 0 || n[0].RunID == "" {
		t.Errorf("state: %+v", state)
	}
}

// fault: 53
func TestHostileNamesAreExact(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	keys := []string{
		"lock: spaced", "lock:\n\r\nnew\tline", "lock:\"quotes'", "lock:\x00nul", "lock:\xff\xfe\x80", "lock:{", "lock:}{", "lock:{}",
		"lock:" + strings.Repeat("x", 64<<10), "lock:锁", "lock:\x1b[31m", "LOCK",
	}
	for i, k := range keys {
		must(t, c.Set(t.Context(), k, fmt.Sprint("v", i), 0).Err())
	}
	// Ours, under names that no pattern matches.
	ours := []string{"", "\x00", "a}b", "{x}}y", "\xff{", "locksteward:hold:{z}"}
	for i, k := range ours {
		take(t, c, k, record.Meta{ID: fmt.Sprint("id", i)}, time.Minute)
	}
	s := fast(srv.URL()).build(t)
	got := sweep(t, s)
	for i, k := range keys {
		if l := find(t, got.Locks, k); l.Size != int64(len(fmt.Sprint("v", i))) {
			t.Errorf("%q: size %d", k, l.Size)
		}
	}
	for i, k := range ours {
		if l := find(t, got.Locks, k); l.Claim == nil || l.Claim.ID != fmt.Sprint("id", i) {
			t.Errorf("%q: claim %+v", k, l.Claim)
		}
	}
	if len(got.Losses) > 0 {
		t.Errorf("losses: %+v", got.Losses)
	}
	for _, k := range append(keys, ours...) {
		if l, err := s.Table().Refresh(t.Context(), k); err != nil || l.Key != k {
			t.Errorf("Refresh(%q) = %q, %v", k, l.Key, err)
		}
	}
}

// outBytes is what the server has sent to clients.
func outBytes(t *testing.T, c *redis.Client) int64 {
	t.Helper()
	info, err := c.InfoMap(t.Context(), "stats").Result()
	must(t, err)
	var n int64
	_, err = fmt.Sscan(info["Stats"]["total_net_output_bytes"], &n)
	must(t, err)
	return n
}

// fault: 52
func TestLargeValuesCostLittle(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	must(t, c.Do(ctx, "setrange", "lock:huge", 512<<20-1, "x").Err())
	must(t, c.Set(ctx, "lock:just", strings.Repeat("x", 4096), 0).Err())
	fields := map[string]any{}
	for i := range 1000 {
		fields[fmt.Sprint(i)] = strings.Repeat("y", 1000)
	}
	must(t, c.HSet(ctx, "lock:many", fields).Err())
	must(t, c.HSet(ctx, "lock:fat", "a", strings.Repeat("z", 1<<20)).Err())
	must(t, c.HSet(ctx, "lock:fat2", "a", "1", "b", "2", "c", strings.Repeat("z", 1<<20)).Err())
	must(t, c.LPush(ctx, "lock:list", strings.Repeat("z", 1<<20)).Err())
	must(t, c.SAdd(ctx, "lock:set", "a", "b").Err())
	must(t, c.SAdd(ctx, "lock:fatset", "a", strings.Repeat("z", 1<<20)).Err())
	for i := range 65 {
		must(t, c.ZAdd(ctx, "lock:board", redis.Z{Member: fmt.Sprint(i), Score: float64(i)}).Err())
	}
	must(t, c.XAdd(ctx, &redis.XAddArgs{Stream: "lock:stream", Values: []string{"a", "b"}}).Err())
	// Metadata and a heartbeat that somebody blew up.
	must(t, c.Set(ctx, "mine", record.Value("id", "s"), 0).Err())
	must(t, c.Set(ctx, "locksteward:hold:{mine}", `{"id":"id","v":2,"purpose":"`+strings.Repeat("p", 64<<20)+`"}`, 0).Err())
	must(t, c.HSet(ctx, "locksteward:instance:fat", "app", strings.Repeat("p", 1<<20)).Err())

	r := fast(srv.URL())
	r.classes = []class.Class{{Name: "all", Match: []string{"lock:*", "mine"}}}
	s := r.build(t)
	before := outBytes(t, c)
	got := sweep(t, s)
	sent := outBytes(t, c) - before
	if sent > 2*4096+16<<10+record.MaxMeta {
		t.Errorf("the sweep read %d bytes", sent)
	}
	for key, want := range map[string]struct {
		size     int64
		tooLarge bool
	}{
		"lock:huge": {512 << 20, true}, "lock:just": {4096, false}, "lock:many": {1000, true}, "lock:fat": {1, true}, "lock:fat2": {3, true},
		"lock:list": {1, true}, "lock:set": {2, false}, "lock:fatset": {2, true}, "lock:board": {65, true}, "lock:stream": {0, true}, "mine": {8, false},
	} {
		l := find(t, got.Locks, key)
		if l.Size != want.size || l.TooLarge != want.tooLarge || (l.TokenDigest == "") != want.tooLarge {
			t.Errorf("%s: size %d too large %v digest %q, want %+v", key, l.Size, l.TooLarge, l.TokenDigest, want)
		}
	}
	if again := sweep(t, s); len(again.Endings) > 0 {
		t.Errorf("what cannot be read in full does not end with each look: %+v", again.Endings)
	}
}

// TestLargeValuesAreNotKept: of a value that is read in full a lock keeps what is said
// of it, and not the value. It runs alone, since it counts the heap of the program.
// fault: 52
func TestLargeValuesAreNotKept(t *testing.T) {
	srv := testredis.Start(t)
	c, ctx := srv.Client(t), t.Context()
	const locks, size, most = 2000, 4096, 1 << 10
	for from := 0; from < locks; from += 500 {
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := from; i < from+500; i++ {
				p.Set(ctx, fmt.Sprintf("lock:%d", i), fmt.Sprintf("%0*d", size, i), time.Hour)
			}
			return nil
		})
		must(t, err)
	}
	r := fast(srv.URL())
	r.classes = []class.Class{{Name: "all", Match: []string{"lock:*"}}}
	s := r.build(t)
	alive := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what pools keep goes with the second
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := alive()
	got := sweep(t, s)
	if l := find(t, got.Locks, "lock:1"); len(got.Locks) != locks || l.Size != size || l.TooLarge || l.TokenDigest == "" {
		t.Fatalf("%d locks, one of them %+v", len(got.Locks), l.Observation)
	}
	got = locksteward.Sweep{}
	grown := (alive() - before) / locks
	if t.Logf("%d bytes a lock", grown); grown > most || s.Table().Len() != locks {
		t.Errorf("%d locks are kept with %d bytes each, want at most %d", s.Table().Len(), grown, most)
	}
	runtime.KeepAlive(s)
}

func TestCandidatesAreCountedNotListed(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	pipe := c.Pipeline()
	for i := range 1500 {
		pipe.Set(t.Context(), fmt.Sprintf("mylocker%d", i), "v", 0)
	}
	_, err := pipe.Exec(t.Context())
	must(t, err)
	s := fast(srv.URL()).build(t)
	got := sweep(t, s)
	if got.Candidates != 1500 || len(got.Locks) != 0 {
		t.Errorf("%d candidates, %d locks", got.Candidates, len(got.Locks))
	}
	list, total := s.Table().Candidates()
	if total != 1500 || len(list) != 1000 {
		t.Errorf("table: %d names of %d", len(list), total)
	}
	l, err := s.Table().Refresh(t.Context(), "mylocker1")
	if err != nil || l.Kind != locksteward.KindCandidate {
		t.Errorf("refresh of a candidate: %+v, %v", l.Kind, err)
	}
	if s.Table().Len() != 0 {
		t.Error("the candidate was kept as a lock")
	}
}

// leastUser is the user of [redissource.ACL] on the server of the test.
func leastUser(t testing.TB) string {
	t.Helper()
	rules := redissource.ACL()
	if testredis.Version(t).AtLeast(7, 2) {
		rules = append(rules, redissource.ACLNoTouch)
	}
	return "user scanner on >pw resetkeys resetchannels " + strings.Join(rules, " ")
}

func TestLeastACLIsEnough(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL(leastUser(t)))
	admin := srv.Client(t)
	must(t, admin.Set(t.Context(), "lock:a", "tok", 0).Err())
	must(t, admin.HSet(t.Context(), "lock:r", "5f3759df-a1b2-c3d4-e5f6-0123456789ab:42", "1").Err())
	heartbeat(t, admin, "i")
	take(t, admin, "ours", record.Meta{ID: "x", Instance: "i"}, time.Minute)
	take(t, admin, "lost", record.Meta{ID: "y", Instance: "j"}, time.Minute)
	must(t, admin.Del(t.Context(), "lost").Err())

	r := fast(srv.URL())
	r.connect.Username, r.connect.Password = "scanner", "pw"
	r.scan = scanner.Config{} // throttled: upkeep and probes too
	s := r.build(t)
	for range 2 {
		got := sweep(t, s)
		if len(got.Locks) != 3 || len(got.Losses) != 1 {
			t.Fatalf("locks %q, losses %+v", names(got.Locks), got.Losses)
		}
	}
	_, err := s.Table().Refresh(t.Context(), "ours")
	must(t, err)
	stats, lacking := s.Stats(), 0
	if !testredis.Version(t).AtLeast(7, 0) && slices.Equal(stats.Refused, []string{"pexpiretime"}) {
		lacking = 1 // the server does not have it
	}
	if len(stats.Degraded) > lacking || stats.Forbidden > 0 {
		t.Errorf("degraded: %+v", stats)
	}
	entries, err := admin.Do(t.Context(), "acl", "log").Slice()
	must(t, err)
	if len(entries) > 0 {
		t.Errorf("the server refused something: %v", entries)
	}
}

// fault: 46
func TestRefusedExtrasDegrade(t *testing.T) {
	t.Parallel()
	rules := strings.Join(redissource.ACL("lock:*", "locksteward:*"), " ") + " -object|idletime -memory|usage -pexpiretime -info"
	srv := testredis.Start(t, testredis.WithACL("user scanner on >pw resetkeys resetchannels "+rules))
	admin := srv.Client(t)
	must(t, admin.Set(t.Context(), "lock:a", "tok", time.Minute).Err())
	must(t, admin.Set(t.Context(), "secret:lock", "tok", time.Minute).Err())
	must(t, admin.HSet(t.Context(), "lock:r", "5f3759df-a1b2-c3d4-e5f6-0123456789ab:42", "1").Err())
	r := fast(srv.URL())
	r.connect.Username, r.connect.Password = "scanner", "pw"
	s := r.build(t)
	for range 2 {
		got := sweep(t, s)
		a := find(t, got.Locks, "lock:a")
		if left := time.UnixMilli(a.ExpireAt).Sub(a.At); a.Idle >= 0 || left <= 50*time.Second || left > time.Minute {
			t.Errorf("lock:a: idle %s, expires in %s", a.Idle, left)
		}
		if slices.Contains(names(got.Locks), "secret:lock") {
			t.Error("a key that may not be read was listed as a lock")
		}
	}
	stats := s.Stats()
	if len(stats.Degraded) != 4 || stats.Forbidden == 0 {
		t.Errorf("stats: %+v", stats)
	}
	n, err := admin.Do(t.Context(), "acl", "log").Slice()
	must(t, err)
	if len(n) > 8 {
		t.Errorf("%d entries in ACL LOG: refused commands are asked for again and again", len(n))
	}
}

func TestSweepOverTLSAndSocket(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]testredis.Option{"tls": testredis.WithTLS(), "socket": testredis.WithSocket()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t, opt)
			must(t, srv.Client(t).Set(t.Context(), "lock:a", "tok", 0).Err())
			r := fast(srv.URL())
			r.connect.CAFile = srv.CAFile()
			r.connect.CertFile, r.connect.KeyFile = srv.ClientCertFiles()
			if got := sweep(t, r.build(t)); len(got.Locks) != 1 || got.Masters[0].Node != srv.Addr() {
				t.Errorf("locks %q, masters %+v", names(got.Locks), got.Masters)
			}
		})
	}
}

// TestIdleTimeIsOfTheKey: Redis keeps one object of each small number for all
// keys, which may have been idle for as long as the server is up.
func TestIdleTimeIsOfTheKey(t *testing.T) {
	t.Parallel()
	srv, clock := testredis.StartClocked(t, testredis.WithConfig("hz 500", "dynamic-hz no"))
	c, ctx := srv.Client(t), t.Context()
	awaitIdle := func(key string, least time.Duration) {
		t.Helper()
		testredis.Eventually(t, 20*time.Second, func() bool { return c.ObjectIdleTime(ctx, key).Val() >= least }, "idle time of "+key)
	}
	set := func(key, value string) {
		t.Helper()
		if err := c.Set(ctx, key, value, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("lock:old", "a-token-of-somebody")
	set("lock:number", "10000")
	clock.Step(2 * time.Hour)
	awaitIdle("lock:old", time.Hour)
	set("lock:one", "1")
	set("lock:many", "9999")
	if c.ObjectRefCount(ctx, "lock:one").Val() > 1 { // Redis 8.6 and Valkey 8.1 keep one for each key
		awaitIdle("lock:one", time.Hour) // that is what makes it wrong to believe it
	}

	locks := sweep(t, fast(srv.URL()).build(t)).Locks
	for key, want := range map[string]bool{"lock:old": true, "lock:number": true, "lock:one": false, "lock:many": false} {
		if l := find(t, locks, key); (l.Idle > 50*time.Minute) != want || l.Idle < 0 || l.Idle > 3*time.Hour {
			t.Errorf("%s is said to be idle for %s", key, l.Idle)
		}
	}
}
