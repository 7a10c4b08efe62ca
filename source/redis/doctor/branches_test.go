package doctor_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source"
	redissource "github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/doctor"
)

// within is how long an event may take on a loaded machine.
const within = 20 * time.Second

// look examines a server without a watch, which is another test's.
func look(t *testing.T, cfg connect.Config) doctor.Report {
	t.Helper()
	return doctor.Examine(t.Context(), doctor.Options{Target: "x", Connect: cfg, Redis: redissource.Config{Watch: source.WatchOff}})
}

// config sets settings of a server, one by one: Redis before 7.0 takes no more at once.
func config(t *testing.T, rdb *redis.Client, pairs ...string) {
	t.Helper()
	for pair := range slices.Chunk(pairs, 2) {
		if err := rdb.ConfigSet(t.Context(), pair[0], pair[1]).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// number is a field of INFO.
func number(t *testing.T, rdb *redis.Client, name string) int {
	t.Helper()
	_, rest, ok := strings.Cut(rdb.Info(t.Context()).Val(), name+":")
	text, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.Atoi(text)
	if !ok || err != nil {
		t.Fatalf("%s: %q, %v", name, text, err)
	}
	return n
}

func TestClockOfTheServer(t *testing.T) {
	t.Parallel()
	srv, clock := testredis.StartClocked(t)
	for _, test := range []struct {
		offset time.Duration
		want   doctor.Status
		words  []string
	}{
		{0, doctor.OK, nil},
		{4 * time.Second, doctor.Warn, []string{"ahead of ours", "run NTP"}},
		{-4 * time.Second, doctor.Warn, []string{"behind ours", "run NTP"}},
		{10 * time.Minute, doctor.Fail, []string{"ahead of ours", "run NTP"}},
		{-10 * time.Minute, doctor.Fail, []string{"behind ours", "run NTP"}},
	} {
		clock.Set(test.offset)
		r := look(t, connect.Config{URL: srv.URL()})
		expect(t, r, "clock", test.want, test.words...)
		if (r.Status == doctor.Fail) != (test.want == doctor.Fail) {
			t.Errorf("%s: the whole is %s", test.offset, r.Status)
		}
	}
	// A snapshot of long ago is reported with its day.
	old := time.Now().Add(-72 * time.Hour)
	clock.Set(-72 * time.Hour)
	if err := srv.Client(t).Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	clock.Set(0)
	expect(t, look(t, connect.Config{URL: srv.URL()}), "persistence", doctor.Warn, "which is of "+old.UTC().Format(time.DateOnly), "switch on appendonly")
}

func TestLatencyOfTheServer(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	proxy := testredis.NewProxy(t, srv.Addr())
	proxy.Delay(100 * time.Millisecond)
	r := look(t, connect.Config{URL: "redis://" + proxy.Addr()})
	expect(t, r, "latency", doctor.Warn, "PING p50 1", "a locker's TTL")
	if r.Forecast == nil {
		t.Errorf("no forecast: %+v", r.Checks)
	}
}

// TestConnectionsThatAreLeft: the server has few or too few for an agent.
func TestConnectionsThatAreLeft(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 6, 2, "maxclients in INFO")
	for name, test := range map[string]struct {
		limit, used int
		want        doctor.Status
		words       []string
	}{
		"enough":  {100, 10, doctor.OK, []string{"of 100 are in use; one agent has up to 6"}},
		"few":     {300, 280, doctor.Warn, []string{"of 300 are in use; one agent has up to 6", "lockers are refused too"}},
		"too few": {20, 15, doctor.Fail, []string{"of 20 are in use; one agent has up to 6", "raise maxclients or close some"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t)
			rdb := srv.Client(t)
			config(t, rdb, "maxclients", strconv.Itoa(test.limit))
			for range test.used - number(t, rdb, "connected_clients") {
				var d net.Dialer
				c, err := d.DialContext(t.Context(), "tcp", srv.Addr())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() }) // nothing was written
			}
			testredis.Eventually(t, within, func() bool { return number(t, rdb, "connected_clients") == test.used }, "the connections are not there")
			expect(t, look(t, connect.Config{URL: srv.URL()}), "connections", test.want, test.words...)
		})
	}
}

// TestMemoryThatIsFull: what the server does about it is what matters.
func TestMemoryThatIsFull(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	if err := rdb.SetRange(t.Context(), "big", 30<<20, "x").Err(); err != nil {
		t.Fatal(err)
	}
	used := number(t, rdb, "used_memory")
	for _, test := range []struct {
		policy string
		limit  int
		want   doctor.Status
		words  []string
	}{
		{"volatile-lru", used + 256<<10, doctor.Fail, []string{"volatile-lru with ", "locks are being evicted", "maxmemory-policy noeviction"}},
		{"noeviction", used + 256<<10, doctor.Warn, []string{"soon no lock can be taken", "raise maxmemory"}},
		{"volatile-lru", 2 * used, doctor.Warn, []string{"the server may evict locks"}},
		{"noeviction", 2 * used, doctor.OK, []string{"noeviction, ", " in use"}},
		{"allkeys-lru", 0, doctor.OK, []string{"no memory limit"}},
	} {
		config(t, rdb, "maxmemory-policy", test.policy, "maxmemory", strconv.Itoa(test.limit))
		expect(t, look(t, connect.Config{URL: srv.URL()}), "eviction", test.want, test.words...)
	}
}

// TestSavingThatFails: the server writes into a directory where its file should be.
func TestSavingThatFails(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithConfig("dbfilename snapshot.rdb"))
	rdb := srv.Client(t)
	dir := rdb.ConfigGet(t.Context(), "dir").Val()["dir"]
	if err := os.MkdirAll(filepath.Join(dir, "snapshot.rdb", "in-the-way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := rdb.BgSave(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, within, func() bool {
		return strings.Contains(rdb.Info(t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err")
	}, "the snapshot does not fail")
	expect(t, look(t, connect.Config{URL: srv.URL()}), "persistence", doctor.Fail, "the last snapshot failed", "disk, permissions, fork")
}

// rewriting is a proxy before a server that says other words of the same length in its
// place: a proxy or a service that is not quite Redis, or an older one.
func rewriting(t *testing.T, upstream string, words ...string) connect.Config {
	t.Helper()
	for i := 0; i < len(words); i += 2 {
		if len(words[i]) != len(words[i+1]) {
			t.Fatalf("%q is not as long as %q", words[i], words[i+1])
		}
	}
	says := strings.NewReplacer(words...)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go relay(ctx, client, upstream, says)
		}
	}()
	t.Cleanup(func() {
		stop()
		_ = listener.Close()
		<-accepting
	})
	return connect.Config{URL: "redis://" + listener.Addr().String()}
}

// relay carries one connection until an end closes it or ctx does.
func relay(ctx context.Context, client net.Conn, upstream string, says *strings.Replacer) {
	var d net.Dialer
	server, err := d.DialContext(ctx, "tcp", upstream)
	if err != nil {
		_ = client.Close()
		return
	}
	end := context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })
	defer end()
	carry := func(to, from net.Conn, change func(string) string) {
		defer func() { _, _ = to.Close(), from.Close() }()
		var held []byte
		for buf := make([]byte, 64<<10); ; {
			n, err := from.Read(buf)
			if held = append(held, buf[:n]...); err != nil {
				return
			}
			if !strings.HasSuffix(string(held), "\r\n") {
				continue // a word may go on
			}
			if _, err := to.Write([]byte(change(string(held)))); err != nil {
				return
			}
			held = held[:0]
		}
	}
	go carry(server, client, func(text string) string { return text })
	carry(client, server, says.Replace)
}

// TestServersThatAreOlder: what a version lacks is reported, and what follows from it.
func TestServersThatAreOlder(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	_, rest, _ := strings.Cut(srv.Client(t).Info(t.Context(), "server").Val(), "redis_version:")
	version, _, _ := strings.Cut(rest, "\r\n")
	for is, test := range map[string]struct {
		want  doctor.Status
		words []string
	}{
		"2.6": {doctor.Fail, []string{"has no SCAN", "update the server"}},
		"2.8": {doctor.Warn, []string{"no client tracking and no ACLs"}},
		"5.0": {doctor.Warn, []string{"no client tracking and no ACLs", "update the server to 6.2"}},
		"6.0": {doctor.Warn, []string{"its ACLs know no channels", "update the server to 6.2"}},
		"6.2": {doctor.OK, []string{"tracking, ACLs with channels; not: exact expiry times, sharded pub/sub, read-only key patterns, reads that leave no trace"}},
		"7.0": {doctor.OK, []string{"exact expiry times", "not: reads that leave no trace"}},
		"7.2": {doctor.OK, []string{"reads that leave no trace"}},
	} {
		t.Run(is, func(t *testing.T) {
			t.Parallel()
			r := look(t, rewriting(t, srv.Addr(), "valkey_version:", "hidden_version:", "redis_version:"+version[:3], "redis_version:"+is))
			expect(t, r, "version", test.want, append(test.words, "redis "+is)...)
		})
	}
}

// TestProxyThatHidesThings: nothing is taken for granted that is not reported.
func TestProxyThatHidesThings(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	r := look(t, rewriting(t, srv.Addr(), "redis_version:", "proxy_version:", "valkey_version:", "hidden_version:", "aof_enabled:", "aof_unknown:",
		"maxmemory_policy:", "maxmemory_hidden:", "connected_slaves:", "connected_secret:", "maxclients:", "maxhiddens:"))
	expect(t, r, "version", doctor.Warn, "a proxy, or not Redis", "point the target at the servers themselves")
	expect(t, r, "persistence", doctor.Warn, "does not tell")
	expect(t, r, "eviction", doctor.Warn, "does not tell its policy", "set maxmemory-policy noeviction")
	expect(t, r, "replication", doctor.Warn, "does not tell")
	expect(t, r, "connections", doctor.OK, "does not tell how many it has left")
	if r.Status != doctor.Warn {
		t.Errorf("the whole is %s: %+v", r.Status, r.Checks)
	}
	// Of a server whose pushes do not come through, the test of it says so.
	const key = "locksteward-doctor"
	r = doctor.Examine(t.Context(), doctor.Options{Target: "x", Connect: rewriting(t, srv.Addr(), key, "something-not-seen"[:len(key)]), PushTest: true})
	if !testredis.Version(t).AtLeast(6, 2) {
		expect(t, r, "tracking", doctor.Warn, "no CLIENT TRACKINGINFO, which came with Redis 6.2", "update the server to 6.2", "notify-keyspace-events")
		return
	}
	expect(t, r, "tracking", doctor.Fail, "no push came for a key that was written", "look for a proxy")
}

// TestRightsThatHideThings: what the server refuses to tell is said to be unknown.
func TestRightsThatHideThings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lacks string
		check string
		want  doctor.Status
		words []string
	}{
		"INFO": {"-info", "version", doctor.Warn, []string{"INFO is refused", "grant what `locksteward acl` prints"}},
		"TIME": {"-time", "clock", doctor.Warn, []string{"does not tell its time", "run time"}},
		"SCAN": {"-scan", "sweep", doctor.Warn, []string{"no forecast", "run scan"}},
		"SET":  {"-set", "tracking", doctor.Fail, []string{"the key of the push test cannot be written", "run set"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "SET" {
				testredis.Since(t, 6, 2, "CLIENT TRACKINGINFO")
			}
			srv := testredis.Start(t, testredis.WithACL(fmt.Sprintf("few on >%s ~* &* +@all %s", password, test.lacks)))
			r := doctor.Examine(t.Context(), doctor.Options{
				Target: "x", Connect: connect.Config{URL: srv.URL(), Username: "few", Password: password}, PushTest: true,
			})
			expect(t, r, test.check, test.want, test.words...)
			if (r.Forecast == nil) != (name == "SCAN") {
				t.Errorf("forecast %+v", r.Forecast)
			}
		})
	}
}
