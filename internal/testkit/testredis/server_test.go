package testredis_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStartedServersShareNothing(t *testing.T) {
	t.Parallel()
	a, b := testredis.Start(t), testredis.Start(t)
	if a.Addr() == b.Addr() || a.PID() == b.PID() {
		t.Fatalf("two servers at %s (%d) and %s (%d)", a.Addr(), a.PID(), b.Addr(), b.PID())
	}
	mustSet(t, a.Client(t), "k", "v")
	if n := b.Client(t).Exists(t.Context(), "k").Val(); n != 0 {
		t.Error("a key of one server is on the other")
	}
	if _, err := redis.ParseURL(a.URL()); err != nil || a.URL() != "redis://"+a.Addr()+"/0" {
		t.Errorf("URL %q: %v", a.URL(), err)
	}
	if a.TLSConfig() != nil || a.CAFile() != "" {
		t.Error("a plain server has TLS settings")
	}
	log, err := os.ReadFile(a.LogPath())
	if err != nil || !strings.Contains(string(log), "Ready to accept connections") {
		t.Errorf("log of the server: %v, %q", err, log)
	}
	if err := a.Client(t).Do(t.Context(), "DEBUG", "JMAP").Err(); err == nil || strings.Contains(err.Error(), "not allowed") {
		t.Errorf("DEBUG: %v, want it allowed", err)
	}
}

func TestServerIsGoneAtTheEndOfItsTest(t *testing.T) {
	t.Parallel()
	var addrs []string
	t.Run("inner", func(t *testing.T) {
		running, paused := testredis.Start(t), testredis.Start(t)
		paused.Pause()
		addrs = append(addrs, running.Addr(), paused.Addr())
	})
	for _, addr := range addrs {
		client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1})
		if err := client.Ping(t.Context()).Err(); err == nil {
			t.Errorf("%s still answers", addr)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestWithConfig(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t, testredis.WithConfig("maxmemory 64mb"), testredis.WithConfig("databases 3", "requirepass swordfish"))
	client := s.Client(t)
	for name, want := range map[string]string{"maxmemory": "67108864", "databases": "3"} {
		got, err := client.ConfigGet(t.Context(), name).Result()
		if err != nil || got[name] != want {
			t.Errorf("%s is %q, %v; want %q", name, got[name], err, want)
		}
	}
	o := s.Options()
	o.Password = ""
	bare := redis.NewClient(o)
	defer bare.Close()
	if err := bare.Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("ping without the password: %v, want NOAUTH", err)
	}
}

func TestWithTLS(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t, testredis.WithTLS())
	mustSet(t, s.Client(t), "k", "v")
	if !strings.HasPrefix(s.URL(), "rediss://") {
		t.Errorf("URL is %q", s.URL())
	}
	for _, path := range []string{s.CAFile(), first(s.ClientCertFiles()), second(s.ClientCertFiles())} {
		if data, err := os.ReadFile(path); err != nil || !strings.Contains(string(data), "-----BEGIN ") {
			t.Errorf("%q is no PEM file: %v", path, err)
		}
	}
	refused := func(name string, change func(*redis.Options)) {
		t.Helper()
		o := s.Options()
		o.MaxRetries, o.DialerRetries = -1, 1
		change(o)
		client := redis.NewClient(o)
		defer client.Close()
		if err := client.Ping(t.Context()).Err(); err == nil {
			t.Errorf("ping %s succeeded", name)
		}
	}
	refused("without TLS", func(o *redis.Options) { o.TLSConfig = nil })
	refused("without the CA", func(o *redis.Options) { o.TLSConfig.RootCAs = nil })
}

func TestWithTLSCanDemandClientCertificates(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t, testredis.WithTLS(), testredis.WithConfig("tls-auth-clients yes"))
	mustSet(t, s.Client(t), "k", "v")
	o := s.Options()
	o.MaxRetries, o.DialerRetries = -1, 1
	o.TLSConfig.Certificates = nil
	client := redis.NewClient(o)
	defer client.Close()
	if err := client.Ping(t.Context()).Err(); err == nil {
		t.Error("ping without a certificate succeeded")
	}
}

func TestWithACL(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t, testredis.WithACL("user reader on >secret ~lock:* +@read +ping", "default off"))
	mustSet(t, s.Client(t), "lock:a", "v")
	reader := s.ClientAs(t, "reader", "secret")
	if got, err := reader.Get(t.Context(), "lock:a").Result(); err != nil || got != "v" {
		t.Errorf("get as reader: %q, %v", got, err)
	}
	if err := reader.Set(t.Context(), "lock:a", "w", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
		t.Errorf("set as reader: %v, want NOPERM", err)
	}
	if err := s.ClientAs(t, "reader", "wrong").Ping(t.Context()).Err(); err == nil || !strings.HasPrefix(err.Error(), "WRONGPASS") {
		t.Errorf("ping with a wrong password: %v, want WRONGPASS", err)
	}
	if err := s.ClientAs(t, "", "").Ping(t.Context()).Err(); err == nil {
		t.Error("the default user is off and may ping")
	}
}

func TestWithACLKeepsTheLastLineOfAUser(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t, testredis.WithACL("a on >one +ping"), testredis.WithACL("a on >two +ping"))
	if err := s.ClientAs(t, "a", "two").Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

func TestWithSocket(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t, testredis.WithSocket())
	mustSet(t, s.Client(t), "k", "v")
	o, err := redis.ParseURL(s.URL())
	if err != nil {
		t.Fatalf("URL %q: %v", s.URL(), err)
	}
	client := redis.NewClient(o)
	defer client.Close()
	if got := client.Get(t.Context(), "k").Val(); got != "v" {
		t.Errorf("through %q: got %q, want v", s.URL(), got)
	}
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	client := s.Client(t)
	mustSet(t, client, "k", "v")
	s.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	o := s.Options()
	o.ContextTimeoutEnabled, o.MaxRetries = true, -1
	impatient := redis.NewClient(o)
	defer impatient.Close()
	if err := impatient.Get(ctx, "k").Err(); !isTimeout(err) {
		t.Errorf("get from a paused server: %v, want a timeout", err)
	}
	s.Resume()
	if got, err := client.Get(t.Context(), "k").Result(); err != nil || got != "v" {
		t.Errorf("after resume: %q, %v; want v", got, err)
	}
}

func TestKillAndRestart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opts []testredis.Option
		kept int64
	}{
		"forgets":       {nil, 0},
		"keeps its AOF": {[]testredis.Option{testredis.WithConfig("appendonly yes", "appendfsync always")}, 1},
		"under TLS":     {[]testredis.Option{testredis.WithTLS()}, 0},
		"on a socket":   {[]testredis.Option{testredis.WithSocket()}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testredis.Start(t, tc.opts...)
			addr, pid := s.Addr(), s.PID()
			mustSet(t, s.Client(t), "k", "v")
			s.Kill()
			o := s.Options()
			o.MaxRetries, o.DialerRetries = -1, 1
			client := redis.NewClient(o)
			defer client.Close()
			if err := client.Ping(t.Context()).Err(); err == nil {
				t.Fatal("a killed server answers")
			}
			s.Restart()
			if s.Addr() != addr || s.PID() == pid {
				t.Errorf("restarted at %s as %d, was at %s as %d", s.Addr(), s.PID(), addr, pid)
			}
			if n, err := s.Client(t).Exists(t.Context(), "k").Result(); err != nil || n != tc.kept {
				t.Errorf("%d keys after the restart, %v; want %d", n, err, tc.kept)
			}
		})
	}
}

func first(a, _ string) string { return a }

func second(_, b string) string { return b }
