package connect_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// open connects with patience for a machine that is busy, unless cfg is about that.
func open(t *testing.T, cfg connect.Config) *connect.Conn {
	t.Helper()
	cfg.DialTimeout, cfg.ReadTimeout = cmp.Or(cfg.DialTimeout, time.Minute), cmp.Or(cfg.ReadTimeout, time.Minute)
	conn, err := connect.Open(cfg)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := conn.Close(); err != nil {
			t.Errorf("close again: %v", err)
		}
	})
	return conn
}

func TestOpenDoesNoIO(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"redis://192.0.2.1:6379/1", "unix:///does/not/exist.sock",
		"redis+cluster://192.0.2.1,192.0.2.2", "redis+sentinel://192.0.2.1/mymaster",
	} {
		began := time.Now()
		conn, err := connect.Open(connect.Config{URL: url})
		if err != nil {
			t.Errorf("Open(%s): %v", url, err)
			continue
		}
		if err := conn.Close(); err != nil {
			t.Errorf("Close(%s): %v", url, err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("Open(%s) took %s: it must not dial", url, took)
		}
		if _, err := conn.Masters(t.Context()); err == nil {
			t.Errorf("Masters(%s) after Close: no error", url)
		}
	}
}

func TestStandalone(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]testredis.Option{
		"tcp": testredis.WithConfig(), "socket": testredis.WithSocket(), "tls": testredis.WithTLS(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t, opt)
			cfg := connect.Config{URL: srv.URL(), CAFile: srv.CAFile()}
			cfg.CertFile, cfg.KeyFile = srv.ClientCertFiles()
			conn := open(t, cfg)
			masters, err := conn.Masters(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(masters) != 1 || masters[0].Addr != srv.Addr() || !masters[0].Owns("any") {
				t.Fatalf("masters = %+v, want %s alone", masters, srv.Addr())
			}
			if connect.Uncovered(masters) != nil {
				t.Error("a standalone server has no slots to miss")
			}
			if masters[0].Client != conn.Universal() {
				t.Error("a second client for one server")
			}
			list, err := masters[0].Client.ClientList(t.Context()).Result()
			if err == nil && !strings.Contains(list, "name=locksteward ") {
				t.Errorf("CLIENT LIST does not name us: %s", list)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDatabaseIsSelected(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	conn := open(t, connect.Config{URL: strings.TrimSuffix(srv.URL(), "/0") + "/5"})
	if err := conn.Universal().Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n := srv.Client(t).DBSize(t.Context()).Val(); n != 0 || conn.DB() != 5 {
		t.Errorf("db 0 has %d keys, DB() = %d", n, conn.DB())
	}
}

func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := testredis.StartCluster(t)
	urls := map[string]string{
		"all nodes":                 cluster.URL(),
		"one node as a plain URL":   cluster.Nodes[1].URL(),
		"a dead seed, then a node ": "redis+cluster://127.0.0.1:1," + cluster.Nodes[2].Addr(),
	}
	for name, url := range urls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := open(t, connect.Config{URL: url})
			masters, err := conn.Masters(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(masters) != 3 || conn.Mode() != locksteward.ModeCluster || conn.DB() != 0 {
				t.Fatalf("%d masters, mode %s, db %d", len(masters), conn.Mode(), conn.DB())
			}
			if gaps := connect.Uncovered(masters); gaps != nil {
				t.Errorf("uncovered: %v", gaps)
			}
			if gaps := connect.Uncovered(masters[1:]); len(gaps) != 1 {
				t.Errorf("without one master uncovered: %v", gaps)
			}
			for _, key := range []string{"a", "b", "c", "lock:{x}:1"} {
				m, err := conn.MasterFor(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				if err := m.Client.Set(t.Context(), key, "v", 0).Err(); err != nil {
					t.Errorf("set %q on the master of slot %d: %v", key, record.Slot(key), err)
				}
				if got := conn.Universal().Get(t.Context(), key).Val(); got != "v" {
					t.Errorf("universal client reads %q of %q", got, key)
				}
			}
			again, err := conn.Masters(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(masters, again, connect.Master.Equal) {
				t.Errorf("masters changed: %v, %v", masters, again)
			}
			for i := range masters {
				if masters[i].Client != again[i].Client {
					t.Error("a second client for one server")
				}
			}
		})
	}
}

func TestSentinelFollowsTheMaster(t *testing.T) {
	t.Parallel()
	s := testredis.StartSentinel(t)
	conn := open(t, connect.Config{URL: s.URL()})
	before, err := conn.Masters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if before[0].Addr != s.Master().Addr() {
		t.Fatalf("master %s, want %s", before[0].Addr, s.Master().Addr())
	}
	if err := conn.Universal().Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Failover(t)
	after, err := conn.Masters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if before[0].Equal(after[0]) || after[0].Addr != s.Master().Addr() {
		t.Errorf("master after the failover: %s, want %s", after[0].Addr, s.Master().Addr())
	}
	wrong := open(t, connect.Config{URL: strings.Replace(s.URL(), "/mymaster", "/nobody", 1)})
	if _, err := wrong.Masters(t.Context()); !strings.Contains(connect.Explain(err), "no master of that name") {
		t.Errorf("unknown master name: %v", err)
	}
}

func TestAddrMap(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	conn := open(t, connect.Config{
		URL:     "redis://inside.invalid:6379/0",
		AddrMap: map[string]string{"inside.invalid:6379": srv.Addr()},
	})
	if err := conn.Universal().Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

func TestPoolIsBounded(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	conn := open(t, connect.Config{URL: srv.URL(), PoolSize: 2})
	client := conn.Universal()
	done := make(chan error)
	for range 16 {
		go func() { done <- client.BLPop(t.Context(), 100*time.Millisecond, "none").Err() }()
	}
	admin := srv.Client(t)
	list := admin.ClientList(t.Context()).Val()
	if n := strings.Count(list, "name=locksteward "); n > 2 {
		t.Errorf("%d connections, want at most 2", n)
	}
	for range 16 {
		<-done
	}
}

// TestRedirectGoRedisLog is not parallel: the logger is the process's own.
func TestRedirectGoRedisLog(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	connect.RedirectGoRedisLog(zap.New(core))
	conn := open(t, connect.Config{URL: "redis+sentinel://127.0.0.1:1/mymaster", DialTimeout: 200 * time.Millisecond})
	if err := conn.Universal().Ping(t.Context()).Err(); err == nil {
		t.Fatal("nobody listens, yet a PING worked")
	}
	if logs.FilterMessage("redis client message").Len() == 0 {
		t.Error("go-redis's messages did not reach the logger")
	}
}

// A user without a password is who was asked for, never the default user.
func TestUserWithoutPasswordLogsIn(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL("scanner on nopass ~* +@all", "locked on >pw ~* +@all"))
	conn := open(t, connect.Config{URL: srv.URL(), Username: "scanner"})
	if who, err := conn.Universal().Do(t.Context(), "acl", "whoami").Text(); err != nil || who != "scanner" {
		t.Errorf("whoami = %q, %v", who, err)
	}
	conn = open(t, connect.Config{URL: srv.URL(), Username: "locked"})
	if err := conn.Universal().Ping(t.Context()).Err(); err == nil {
		t.Error("a user that has a password got in without")
	}
}
