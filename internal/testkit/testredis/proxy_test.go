package testredis_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// through returns a client of one connection that goes through p and retries
// nothing.
func through(t *testing.T, s *testredis.Server, p *testredis.Proxy, timeout time.Duration) *redis.Client {
	t.Helper()
	o := s.Options()
	o.Addr = p.Addr()
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.PoolSize = 1
	o.ReadTimeout = timeout
	client := redis.NewClient(o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func mustSet(t *testing.T, client *redis.Client, key, value string) {
	t.Helper()
	if err := client.Set(t.Context(), key, value, 0).Err(); err != nil {
		t.Fatalf("set %s: %v", key, err)
	}
}

func isTimeout(err error) bool {
	var netErr net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &netErr) && netErr.Timeout()
}

func TestProxyPassesAndCounts(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	p := testredis.NewProxy(t, s.Addr())
	client := through(t, s, p, 5*time.Second)
	big := strings.Repeat("x", 1<<20)
	mustSet(t, client, "big", big)
	if got := client.Get(t.Context(), "big").Val(); got != big {
		t.Fatalf("got %d bytes back, want %d", len(got), len(big))
	}
	if p.BytesToServer() <= 1<<20 || p.BytesToClient() <= 1<<20 {
		t.Errorf("counted %d and %d bytes, want more than a MiB each way", p.BytesToServer(), p.BytesToClient())
	}
	if p.Accepted() != 1 || p.Open() != 1 {
		t.Errorf("accepted %d, open %d; want 1 and 1", p.Accepted(), p.Open())
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, 5*time.Second, func() bool { return p.Open() == 0 }, "a closed client leaves no connection")
}

func TestProxyCutAndHeal(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	p := testredis.NewProxy(t, s.Addr())
	client := through(t, s, p, 5*time.Second)
	mustSet(t, client, "k", "1")
	p.Cut()
	for range 2 {
		if err := client.Set(t.Context(), "k", "2", 0).Err(); err == nil {
			t.Fatal("set through a cut network succeeded")
		}
	}
	if got := s.Client(t).Get(t.Context(), "k").Val(); got != "1" {
		t.Errorf("server has %q, want what was set before the cut", got)
	}
	p.Heal()
	testredis.Eventually(t, 5*time.Second, func() bool {
		return client.Set(t.Context(), "k", "3", 0).Err() == nil
	}, "the healed network works")
}

func TestProxyDelays(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	direct := s.Client(t)
	p := testredis.NewProxy(t, s.Addr())
	client := through(t, s, p, 20*time.Second)
	mustSet(t, client, "k", "0")

	const d = 300 * time.Millisecond
	p.Delay(d)
	began := time.Now()
	answered := make(chan error, 1)
	go func() { answered <- client.Set(t.Context(), "k", "1", 0).Err() }()
	testredis.Eventually(t, 10*time.Second, func() bool { return direct.Get(t.Context(), "k").Val() == "1" },
		"a delayed reply leaves the request at once")
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < d {
		t.Errorf("reply came after %s, want at least %s", took, d)
	}

	p.Heal()
	p.DelayRequests(d)
	began = time.Now()
	mustSet(t, client, "k", "2")
	if took := time.Since(began); took < d {
		t.Errorf("delayed request was answered after %s, want at least %s", took, d)
	}
}

func TestProxyDropsReplies(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	p := testredis.NewProxy(t, s.Addr())
	client := through(t, s, p, 2*time.Second)
	mustSet(t, client, "k", "0")
	p.DropReplies(true)
	if err := client.Incr(t.Context(), "k").Err(); !isTimeout(err) {
		t.Fatalf("incr without a reply: %v, want a timeout", err)
	}
	if got := s.Client(t).Get(t.Context(), "k").Val(); got != "1" {
		t.Errorf("server has %q, want 1: the request was executed", got)
	}
	p.DropReplies(false)
	testredis.Eventually(t, 5*time.Second, func() bool {
		return client.Get(t.Context(), "k").Val() == "1"
	}, "replies come again")
}

// A connection that lost a reply must not deliver the next one in its place.
func TestProxyResetsWhatLostReplies(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	p := testredis.NewProxy(t, s.Addr())
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p.DropReplies(true)
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, 5*time.Second, func() bool { return p.Replies() == 1 }, "the server replied")
	p.DropReplies(false)
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 16)); n != 0 || err == nil || isTimeout(err) {
		t.Errorf("read %d bytes, %v; want a reset", n, err)
	}
}

func TestProxyFreezes(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	p := testredis.NewProxy(t, s.Addr())
	client := through(t, s, p, 2*time.Second)
	patient := through(t, s, p, 20*time.Second)
	mustSet(t, client, "k", "0")
	mustSet(t, patient, "k", "0")
	p.Freeze(true)
	if err := client.Get(t.Context(), "k").Err(); !isTimeout(err) {
		t.Fatalf("get on a frozen network: %v, want a timeout", err)
	}
	answered := make(chan error, 1)
	before := p.BytesToServer()
	go func() { answered <- patient.Set(t.Context(), "k", "1", 0).Err() }()
	select {
	case err := <-answered:
		t.Fatalf("set on a frozen network returned: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if got := p.BytesToServer(); got != before {
		t.Errorf("%d bytes reached the server of a frozen network", got-before)
	}
	p.Freeze(false)
	if err := <-answered; err != nil {
		t.Errorf("set after the thaw: %v", err)
	}
}

func TestProxyCutsAfterReplies(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	p := testredis.NewProxy(t, s.Addr())
	client := through(t, s, p, 5*time.Second)
	mustSet(t, client, "k", "0")
	p.CutAfterReplies(2)
	for i := range 2 {
		if err := client.Incr(t.Context(), "k").Err(); err != nil {
			t.Fatalf("incr %d: %v", i, err)
		}
	}
	if err := client.Incr(t.Context(), "k").Err(); err == nil || isTimeout(err) {
		t.Fatalf("third incr: %v, want a broken connection", err)
	}
	if got := s.Client(t).Get(t.Context(), "k").Val(); got != "3" {
		t.Errorf("server has %q, want 3: the last request was executed", got)
	}
	if got := client.Get(t.Context(), "k").Val(); got != "3" {
		t.Errorf("a new connection got %q, want 3", got)
	}
}

// A pipeline is cut inside: its first replies arrive, the rest does not.
func TestProxyCutsInsidePipeline(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	p := testredis.NewProxy(t, s.Addr())
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p.CutAfterReplies(3)
	if _, err := io.WriteString(conn, strings.Repeat("INCR k\r\n", 5)); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if isTimeout(err) {
		t.Fatal("the connection stays open")
	}
	if want := ":1\r\n:2\r\n:3\r\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := s.Client(t).Get(t.Context(), "k").Val(); got != "5" {
		t.Errorf("server has %q, want 5: the whole pipeline was executed", got)
	}
}

func TestProxyResetsWhenUpstreamIsGone(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	p := testredis.NewProxy(t, s.Addr())
	client := through(t, s, p, 5*time.Second)
	mustSet(t, client, "k", "0")
	s.Kill()
	if err := client.Ping(t.Context()).Err(); err == nil || isTimeout(err) {
		t.Errorf("ping of a dead server: %v, want a broken connection", err)
	}
}

func TestProxyPassesTLS(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t, testredis.WithTLS())
	p := testredis.NewProxy(t, s.Addr())
	client := through(t, s, p, 5*time.Second)
	mustSet(t, client, "k", "v")
	if p.Replies() != 0 {
		t.Errorf("counted %d replies in an encrypted stream", p.Replies())
	}
}
