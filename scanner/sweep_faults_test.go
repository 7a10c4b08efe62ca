package scanner_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/source"
	redissource "github.com/locksteward/locksteward/source/redis"
)

// stat reads one number of a section of INFO; 0 where the line is not there.
func stat(t testing.TB, c *redis.Client, section, name string) int64 {
	t.Helper()
	info, err := c.Info(t.Context(), section).Result()
	must(t, err)
	for line := range strings.Lines(info) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			var n int64
			_, _ = fmt.Sscanf(rest, "%d", &n)
			return n
		}
	}
	return 0
}

// Each policy that can take a lock away is a finding before it takes one, and what
// it took is counted and named as the cause.
// fault: 43
func TestEveryPolicyThatEvicts(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{
		"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "allkeys-lru", "allkeys-lfu", "allkeys-random",
	} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t, testredis.WithConfig("maxmemory 100mb", "maxmemory-policy "+policy))
			c := srv.Client(t)
			s := fast(srv.URL()).build(t)
			e, err := rules.New(nil, nil, nil)
			must(t, err)
			heartbeat(t, c, "i1")
			const locks = 60
			for i := range locks {
				take(t, c, fmt.Sprint("lock:", i), record.Meta{ID: fmt.Sprint("id", i), Instance: "i1"}, time.Hour)
			}
			e.Evaluate(sweep(t, s))
			if got := firing(e); !strings.Contains(got, "server/evicts-locks") {
				t.Errorf("before anything was evicted: %q", got)
			}
			// Less room than is used: writes make room.
			must(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err())
			testredis.Eventually(t, 10*time.Second, func() bool {
				_ = c.Set(t.Context(), "data", "x", 0).Err()
				return len(c.Keys(t.Context(), "lock:*").Val()) == 0
			}, "locks are left: not what is to be tested")
			must(t, c.ConfigSet(t.Context(), "maxmemory", "100mb").Err())
			heartbeat(t, c, "i1") // its holder lives on
			got := sweep(t, s)
			events := happened(got, locksteward.ServerEvicted)
			if len(events) != 1 || events[0].Count < locks {
				t.Errorf("evictions %+v, want at least %d", events, locks)
			}
			if len(got.Endings) != locks {
				t.Errorf("%d endings, want %d", len(got.Endings), locks)
			}
			for _, end := range got.Endings {
				if end.How == locksteward.EndedReleased {
					t.Fatalf("%s counts as released by its holder", end.Lock.Key)
				}
			}
		})
	}
}

// What takes no writes, or lets nobody read, is reported once while it lasts, and is
// over by itself.
// fault: 44
func TestServerThatTakesNoWritesIsSweptAllTheSame(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithConfig("enable-protected-configs yes"))
	c := srv.Client(t)
	ctx := t.Context()
	must(t, c.Set(ctx, "lock:a", "tok", time.Hour).Err())
	s := fast(srv.URL()).build(t)
	sweep(t, s)
	refuses := func(prefix string) {
		t.Helper()
		testredis.Eventually(t, 10*time.Second, func() bool {
			return redis.HasErrorPrefix(c.Set(ctx, "other", "x", 0).Err(), prefix)
		}, "no "+prefix)
		if got := sweep(t, s); len(got.Locks) != 1 || len(got.Endings) != 0 {
			t.Errorf("%s: locks %q, endings %+v", prefix, names(got.Locks), got.Endings)
		}
		if state := s.State(); !state.Up {
			t.Errorf("%s: %+v", prefix, state)
		}
	}
	must(t, c.ConfigSet(ctx, "min-replicas-to-write", "1").Err())
	refuses("NOREPLICAS")
	must(t, c.ConfigSet(ctx, "min-replicas-to-write", "0").Err())
	// Nobody writes there.
	must(t, c.ConfigSet(ctx, "save", "3600 1").Err())
	must(t, c.ConfigSet(ctx, "dir", "/proc").Err())
	_ = c.BgSave(ctx).Err()
	refuses("MISCONF")
	must(t, c.Do(ctx, "config", "set", "save", "").Err())

	// A replica without its master that gives no old data. It may not be read: the
	// target is down, says why once, and resolves nothing.
	must(t, c.ConfigSet(ctx, "replica-serve-stale-data", "no").Err())
	must(t, c.Do(ctx, "replicaof", "127.0.0.1", "1").Err())
	testredis.Eventually(t, 10*time.Second, func() bool {
		return redis.HasErrorPrefix(c.Get(ctx, "lock:a").Err(), "MASTERDOWN")
	}, "no MASTERDOWN")
	for range 2 {
		got, err := s.Sweep(ctx)
		if err == nil || got.Complete() || len(got.Endings) != 0 || s.State().Reason == "" {
			t.Errorf("MASTERDOWN: %v, %+v, endings %+v", err, s.State(), got.Endings)
		}
	}
	must(t, c.Do(ctx, "replicaof", "no", "one").Err())
	got := sweep(t, s)
	if state := s.State(); !state.Up || state.Reason != "" || len(got.Locks) != 1 || len(got.Endings) != 0 || got.Locks[0].History.Looks < 4 {
		t.Errorf("afterwards: %+v, locks %+v, endings %+v", state, got.Locks, got.Endings)
	}
}

// While clients are paused a sweep ends in time and resolves nothing. While writes
// are, a lock whose time is over is over, though the server may not delete it.
// fault: 45
func TestPausedClients(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	testredis.Since(t, 6, 2, "CLIENT PAUSE of writes alone")
	must(t, c.Set(ctx, "lock:short", "tok", 3*time.Second).Err())
	must(t, c.Set(ctx, "lock:long", "tok", time.Hour).Err())
	r := fast(srv.URL())
	r.connect.ReadTimeout = 300 * time.Millisecond
	s := r.build(t)
	if got := sweep(t, s); len(got.Locks) != 2 {
		t.Fatalf("locks %q", names(got.Locks))
	}
	must(t, c.Do(ctx, "client", "pause", 60_000, "WRITE").Err())
	testredis.Eventually(t, 30*time.Second, func() bool { return c.PTTL(ctx, "lock:short").Val() == -2 }, "the short lock expires")
	got := sweep(t, s)
	if how := ending(got, "lock:short"); how != locksteward.EndedExpired || len(got.Locks) != 1 || got.Locks[0].Key != "lock:long" {
		t.Errorf("writes are paused: ended %q, locks %q", how, names(got.Locks))
	}
	if again := sweep(t, s); len(again.Endings) != 0 {
		t.Errorf("it ends twice: %+v", again.Endings)
	}
	must(t, c.Do(ctx, "client", "unpause").Err())
	must(t, c.Do(ctx, "client", "pause", 1500, "ALL").Err())
	began := time.Now()
	got, err := s.Sweep(ctx)
	if took := time.Since(began); err == nil || got.Complete() || len(got.Endings) != 0 || took > 10*time.Second {
		t.Errorf("all are paused: %v after %s, %+v", err, took, got.Endings)
	}
	testredis.Eventually(t, 10*time.Second, func() bool {
		got, err = s.Sweep(ctx)
		return err == nil && got.Complete()
	}, "no complete sweep after the pause")
	if len(got.Locks) != 1 || len(got.Endings) != 0 {
		t.Errorf("after the pause: locks %q, endings %+v", names(got.Locks), got.Endings)
	}
}

// A user that loses rights while it works: what is missing is named, and what the
// others allow goes on. With its rights back all is as before.
// fault: 46
func TestRightsThatChange(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 7, 0, "taking a subcommand back in an ACL")
	line := strings.Join(redissource.ACL(), " ")
	srv := testredis.Start(t, testredis.WithACL("user scanner on >pw resetkeys resetchannels "+line))
	admin := srv.Client(t)
	ctx := t.Context()
	user := func(rules string) {
		t.Helper()
		args := []any{"acl", "setuser", "scanner"}
		for rule := range strings.FieldsSeq(rules) {
			args = append(args, rule)
		}
		must(t, admin.Do(ctx, args...).Err())
	}
	must(t, admin.Set(ctx, "lock:a", "tok", time.Hour).Err())
	must(t, admin.HSet(ctx, "lock:r", "5f3759df-a1b2-c3d4-e5f6-0123456789ab:42", "1").Err())
	r := fast(srv.URL())
	r.connect.Username, r.connect.Password = "scanner", "pw"
	s := r.build(t)
	if got := sweep(t, s); len(got.Locks) != 2 || len(s.Stats().Degraded) != 0 {
		t.Fatalf("locks %q, degraded %q", names(got.Locks), s.Stats().Degraded)
	}
	for command, says := range map[string]string{
		"-info": "grant +info", "-memory|usage": "grant +memory|usage", "-pexpiretime": "grant +pexpiretime",
	} {
		user(command)
		got := sweep(t, s)
		if !slices.ContainsFunc(s.Stats().Degraded, func(text string) bool { return strings.Contains(text, says) }) {
			t.Errorf("without %s: degraded %q", command, s.Stats().Degraded)
		}
		find(t, got.Locks, "lock:a")
		if len(got.Endings) != 0 {
			t.Errorf("without %s: endings %+v", command, got.Endings)
		}
	}
	// What cannot be done without is the reason why nothing is known.
	user("-scan")
	got, err := s.Sweep(ctx)
	if err == nil || got.Complete() || len(got.Endings) != 0 || !strings.Contains(s.State().Reason, "scan") || !strings.Contains(s.State().Reason, "locksteward acl") {
		t.Errorf("without SCAN: %v, %+v", err, s.State())
	}
	// Another password, and everybody has to log in again.
	user(line + " +scan resetpass >other")
	must(t, admin.ClientKillByFilter(ctx, "USER", "scanner").Err())
	if _, err := s.Sweep(ctx); err == nil || !strings.Contains(s.State().Reason, "password") || strings.Contains(err.Error()+s.State().Reason, "pw") {
		t.Errorf("with an old password: %v, %+v", err, s.State())
	}
	user("resetpass >pw")
	if got := sweep(t, s); len(got.Locks) == 0 || len(got.Endings) != 0 || !s.State().Up {
		t.Errorf("with the right one: locks %q, endings %+v, %+v", names(got.Locks), got.Endings, s.State())
	}
}

// Values of other types are read as what they are: no command that the server
// refuses for its type, and no value of a large one. Where the name is that of a lock
// they are listed as of no library that we know, and nobody is said to hold them.
// fault: 51
func TestOtherTypesAreNotReadAsStrings(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	for _, cmd := range [][]any{
		{"rpush", "lock:list", "a", "b"},
		{"sadd", "lock:set", "a"},
		{"zadd", "lock:zset", "1", "a"},
		{"hset", "lock:hash", "a", "1"},
		{"xadd", "lock:stream", "*", "a", "b"},
		{"pfadd", "lock:hll", "a"},
		{"setbit", "lock:bits", 7, 1},
		{"geoadd", "lock:geo", 1, 1, "a"},
	} {
		must(t, c.Do(ctx, cmd...).Err())
	}
	r := fast(srv.URL())
	r.classes = []class.Class{{Name: "all", Match: []string{"lock:*"}}}
	s := r.build(t)
	for range 3 {
		got := sweep(t, s)
		for _, typ := range []string{"list", "set", "zset", "hash", "stream"} {
			l := find(t, got.Locks, "lock:"+typ)
			if l.Type != typ || l.Library != "unknown" || l.Identity != locksteward.IdentityNone || l.Claim != nil || l.Holder != (locksteward.Holder{}) {
				t.Errorf("%s: a %s of library %s, identity %s, claim %+v, holder %+v", l.Key, l.Type, l.Library, l.Identity, l.Claim, l.Holder)
			}
		}
		for _, l := range got.Locks {
			if l.Type != "string" && l.Identity != locksteward.IdentityNone && l.Library == "token" {
				t.Errorf("%s, a %s, is taken for a token", l.Key, l.Type)
			}
		}
		for _, key := range []string{"lock:list", "lock:stream"} {
			if l, ok := s.Table().Get(0, key); ok && l.Library != "unknown" {
				t.Errorf("%s is a lock of %s", key, l.Library)
			}
		}
	}
	if n := stat(t, c, "errorstats", "errorstat_WRONGTYPE:count="); n != 0 {
		t.Errorf("%d commands were of the wrong type", n)
	}
}

// twice stands before a server and says every key of every page of SCAN twice.
// pages counts them.
func twice(t *testing.T, upstream string, pages *atomic.Int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var group sync.WaitGroup
	relay := func(client net.Conn) {
		defer client.Close()
		server, err := net.Dial("tcp", upstream)
		if err != nil {
			return
		}
		group.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() })
		buf := make([]byte, 1<<20)
		for {
			n, err := server.Read(buf)
			data, hit := doubled(buf[:n])
			if hit {
				pages.Add(1)
			}
			if _, werr := client.Write(data); err != nil || werr != nil {
				return
			}
		}
	}
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() { relay(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); group.Wait() })
	return l.Addr().String()
}

// doubled doubles the keys of a reply to SCAN: a cursor and a list.
func doubled(data []byte) ([]byte, bool) {
	head, rest, ok := bytes.Cut(data, []byte("\r\n*"))
	if !ok || !bytes.HasPrefix(head, []byte("*2\r\n$")) || bytes.Count(head, []byte("\r\n")) != 2 {
		return bytes.Clone(data), false
	}
	count, list, ok := bytes.Cut(rest, []byte("\r\n"))
	n, err := strconv.Atoi(string(count))
	if !ok || err != nil || n == 0 || bytes.Count(list, []byte("\r\n")) != 2*n {
		return bytes.Clone(data), false
	}
	out := append(bytes.Clone(head), fmt.Sprintf("\r\n*%d\r\n", 2*n)...)
	return append(append(out, list...), list...), true
}

// A key that SCAN returns twice is one lock with one history.
// fault: 62
func TestKeysThatComeTwice(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	const locks = 40
	for i := range locks {
		must(t, c.Set(t.Context(), fmt.Sprint("lock:", i), fmt.Sprint("tok", i), time.Hour).Err())
	}
	var pages atomic.Int64
	s := fast("redis://" + twice(t, srv.Addr(), &pages)).build(t)
	for n := range 3 {
		got := sweep(t, s)
		if len(got.Locks) != locks || len(got.Endings) != 0 || s.Table().Len() != locks {
			t.Errorf("%d locks, %d endings, %d in the table; want %d", len(got.Locks), len(got.Endings), s.Table().Len(), locks)
		}
		for _, l := range got.Locks {
			if l.History.Looks != n+1 {
				t.Fatalf("%s was looked at %d times in %d sweeps", l.Key, l.History.Looks, n+1)
			}
		}
	}
	if pages.Load() < 3 {
		t.Fatalf("%d pages were doubled: not what is to be tested", pages.Load())
	}
}

// A sweep reads locks and nothing else: the idle time of other keys, by which the
// server chooses what to evict, is what it was.
// fault: 64
func TestSweepLeavesOtherKeysAlone(t *testing.T) {
	t.Parallel()
	srv, clock := testredis.StartClocked(t, testredis.WithConfig("hz 500", "dynamic-hz no"))
	c := srv.Client(t)
	ctx := t.Context()
	const others, locks = 500, 20
	for i := range others {
		must(t, c.Set(ctx, fmt.Sprintf("user:%d", i), "data of somebody", 0).Err())
	}
	for i := range locks {
		must(t, c.Set(ctx, fmt.Sprintf("lock:%d", i), fmt.Sprintf("token-%d", i), 0).Err())
	}
	clock.Step(2 * time.Hour)
	testredis.Eventually(t, 10*time.Second, func() bool { return c.ObjectIdleTime(ctx, "user:1").Val() >= time.Hour }, "time passes")
	must(t, c.ConfigResetStat(ctx).Err())
	s := fast(srv.URL()).build(t)
	// The age of a lock is from before it was read.
	if l := find(t, sweep(t, s).Locks, "lock:1"); l.Idle < time.Hour {
		t.Errorf("its own read hides how long the lock was idle: %s", l.Idle)
	}
	sweep(t, s)
	for i := range others {
		if idle := c.ObjectIdleTime(ctx, fmt.Sprintf("user:%d", i)).Val(); idle < time.Hour {
			t.Fatalf("user:%d was touched %s ago", i, idle)
		}
	}
	read := stat(t, c, "commandstats", "cmdstat_get:calls=") + stat(t, c, "commandstats", "cmdstat_getrange:calls=")
	if read == 0 || read > 2*locks {
		t.Errorf("%d values were read in two sweeps of %d locks", read, locks)
	}
	if n := stat(t, c, "stats", "expired_keys:"); n != 0 {
		t.Errorf("%d keys expired", n)
	}
}

// Patterns of a configuration are matched here: the server never sees one.
// fault: 55
func TestPatternsStayHere(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	evil := strings.Repeat("a*", 60) + "b"
	bad := "lock:" + strings.Repeat("a", 200)
	must(t, c.Set(ctx, bad, "tok", time.Hour).Err())
	must(t, c.Set(ctx, "lock:[x]*?", "tok", time.Hour).Err())
	r := fast(srv.URL())
	r.classes = []class.Class{{Name: "evil", Match: []string{"lock:" + evil, "*" + evil}}, {Name: "odd", Match: []string{`lock:\[x\]\*\?`}}}
	monitor := monitored(t, srv)
	s := r.build(t)
	began := time.Now()
	got := sweep(t, s)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("a sweep of two keys took %s", took)
	}
	if l := find(t, got.Locks, "lock:[x]*?"); l.Class != "odd" {
		t.Errorf("%s is of class %s", l.Key, l.Class)
	}
	if l := find(t, got.Locks, bad); l.Class != class.Default {
		t.Errorf("%s is of class %s", l.Key, l.Class)
	}
	w := &reported{t: t, s: s, locks: map[string]locksteward.Lock{}}
	w.run(t)
	w.awaitTracking()
	for _, line := range monitor() {
		low := strings.ToLower(line)
		if strings.Contains(line, "a*a*") || strings.Contains(low, `"scan"`) && strings.Contains(low, `"match"`) || strings.Contains(low, `"keys"`) {
			t.Errorf("the server was given %s", line)
		}
	}
}

// A server that has no room for another client is reported as such, asked again with
// growing pauses, and read as soon as it has room.
// fault: 47
func TestNoRoomForAnotherClient(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithConfig("maxclients 20"))
	c := srv.Client(t)
	must(t, c.Set(t.Context(), "lock:a", "tok", 0).Err())
	proxy := testredis.NewProxy(t, srv.Addr())
	var idle []net.Conn
	for range 40 {
		conn, err := net.Dial("tcp", srv.Addr())
		must(t, err)
		idle = append(idle, conn)
	}
	free := func() {
		for _, conn := range idle {
			_ = conn.Close()
		}
		idle = nil
	}
	defer free()
	s := fast("redis://" + proxy.Addr()).build(t)
	began := time.Now()
	run := start(t, s)
	for range 3 {
		got := run.await(t, "of a full server", func(locksteward.Sweep) bool { return true })
		if got.Complete() || len(got.Masters) != 0 {
			t.Fatalf("swept: %+v", got.Masters)
		}
	}
	if state := s.State(); state.Up || !strings.Contains(state.Reason, "max number of clients") && !strings.Contains(state.Reason, "maxclients") {
		t.Errorf("%+v", state)
	}
	// Waits of 0.25 to 0.5, 0.5 to 1, 1 to 2 s: few dials, however long it lasts.
	if n, took := proxy.Accepted(), time.Since(began); n > 5*int(took/time.Second+2) {
		t.Errorf("%d dials in %s", n, took)
	}
	free()
	run.await(t, "after there was room", complete)
	if state := s.State(); !state.Up {
		t.Errorf("%+v", state)
	}
}

// hog has a client that may not be dropped send a large command and never its end,
// until others were dropped in its place.
func hog(t *testing.T, srv *testredis.Server, until func()) {
	t.Helper()
	conn, err := net.Dial("tcp", srv.Addr())
	must(t, err)
	defer conn.Close()
	say := func(text string) {
		t.Helper()
		_, err := io.WriteString(conn, text)
		must(t, err)
	}
	hear := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		_, err := io.ReadFull(conn, got)
		must(t, err)
		if string(got) != want {
			t.Fatalf("the server said %q", got)
		}
	}
	const large = 1 << 20
	say("CLIENT NO-EVICT ON\r\n")
	hear("+OK\r\n")
	say("CONFIG SET maxmemory-clients 600kb\r\n")
	hear("+OK\r\n")
	say(fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$%d\r\n", large))
	say(strings.Repeat("x", large))
	until()
	say("\r\n")
	hear(fmt.Sprintf("$%d\r\n", large))
	_, err = io.CopyN(io.Discard, conn, large+2)
	must(t, err)
	say("CONFIG SET maxmemory-clients 0\r\n")
	hear("+OK\r\n")
}

// Clients that the server drops for want of memory come back, and all that is
// looked at is looked at again. A target costs a server few connections.
// fault: 47
func TestDroppedClients(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	w := tracked(t, fast(srv.URL()))
	run := start(t, w.s)
	run.await(t, "at once", complete)
	w.taken(c, "lock:before")
	ours := func() int {
		list, err := c.ClientList(ctx).Result()
		must(t, err)
		return strings.Count(list, "name=locksteward")
	}
	most := ours()
	for round := range 5 {
		blind := w.s.WatchState().Blind
		hog(t, srv, func() {
			w.awaitState("down", func(s source.WatchState) bool { return !whole(s) || s.Blind > blind })
		})
		w.awaitState("set up again", func(s source.WatchState) bool { return whole(s) && s.Blind > blind })
		key := fmt.Sprint("lock:after:", round)
		must(t, c.Set(ctx, key, "tok", 0).Err())
		w.awaitLock(key)
		most = max(most, ours())
	}
	if n := stat(t, c, "stats", "evicted_clients:"); n < 5 {
		t.Fatalf("%d clients were dropped: not what is to be tested", n)
	}
	// The pool's three, and the watch's two.
	if most > 5 {
		t.Errorf("%d connections to one server", most)
	}
	w.audit()
}
