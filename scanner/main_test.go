package scanner_test

import (
	"context"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
	redissource "github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/connect"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childArg {
		os.Exit(child(os.Args[2:]))
	}
	goleak.VerifyTestMain(testredis.Settled{M: m, SideBySide: 6})
}

// rig is a scanner over one target, with what a test may want to set.
type rig struct {
	connect connect.Config
	scan    scanner.Config
	reads   redissource.Config
	// placeholder is redissource.Options.Placeholder.
	placeholder func(key, requestID string) bool
	opts        scanner.Options
	classes     []class.Class
	digest      locksteward.DigestKey
	// page, if set, is called with each page of names that a sweep has read, which waits for it.
	page func()
	// gate is what page is of, in a rig of [slow].
	gate *gate
}

// paged is a source that calls page when a pass of a sweep has read a page of names.
type paged struct {
	source.Source
	page func()
}

func (p paged) Sweep(ctx context.Context, opts source.SweepOptions, sink source.Sink) (*source.Sweep, error) {
	return p.Source.Sweep(ctx, opts, pagedSink{sink, p.page})
}

type pagedSink struct {
	source.Sink
	page func()
}

func (s pagedSink) Scanned(names int) {
	s.Sink.Scanned(names)
	s.page()
}

// build returns the scanner; its connection is closed at the end of the test.
func (r rig) build(t testing.TB) *scanner.Scanner {
	t.Helper()
	if r.connect.ReadTimeout == 0 {
		r.connect.ReadTimeout = 2 * time.Second
	}
	conn, err := connect.Open(r.connect)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	classes, err := class.NewSet(r.classes)
	if err != nil {
		t.Fatalf("classes: %v", err)
	}
	target := locksteward.Target{Name: "test", Mode: conn.Mode()}
	log := zaptest.NewLogger(t)
	src, err := redissource.New(conn, redissource.Options{
		Log: log, Digest: r.digest, Config: r.reads, Pace: r.scan.Pace, Unpaced: r.scan.NoThrottle,
		Placeholder: r.placeholder, Clock: r.opts.Clock,
	})
	if err != nil {
		t.Fatalf("new: %v", err)
	}
	var from source.Source = src
	if r.page != nil {
		from = paged{src, r.page}
	}
	s, err := scanner.New(log, target, from, classes, r.scan, r.opts)
	if err != nil {
		t.Fatalf("new: %v", err)
	}
	return s
}

// fast is a configuration that does not slow tests down.
func fast(url string) rig {
	return rig{connect: connect.Config{URL: url}, scan: scanner.Config{NoThrottle: true}, digest: locksteward.NewDigestKey()}
}

// sweep makes a sweep that must be complete.
func sweep(t testing.TB, s *scanner.Scanner) locksteward.Sweep {
	t.Helper()
	got, err := s.Sweep(t.Context())
	if err != nil || !got.Complete() {
		t.Fatalf("sweep: complete %v, masters %+v, %v", got.Complete(), got.Masters, err)
	}
	return got
}

func find(t testing.TB, locks []locksteward.Lock, key string) locksteward.Lock {
	t.Helper()
	i := slices.IndexFunc(locks, func(l locksteward.Lock) bool { return l.Key == key })
	if i < 0 {
		t.Fatalf("lock %q is not among %q", key, names(locks))
	}
	return locks[i]
}

func names(locks []locksteward.Lock) []string {
	out := make([]string, len(locks))
	for i, l := range locks {
		out[i] = l.Key
	}
	return out
}

// take writes a lock of our own format with its metadata, as lock/ does.
func take(t testing.TB, c redis.Cmdable, key string, m record.Meta, ttl time.Duration) {
	t.Helper()
	ctx := t.Context()
	now, err := c.Time(ctx).Result()
	if err != nil {
		t.Fatal(err)
	}
	m.V, m.TTL = record.Version, ttl.Milliseconds()
	if m.Acquired == 0 {
		m.Acquired = now.UnixMilli()
	}
	if m.Renewed == 0 {
		m.Renewed = m.Acquired
	}
	meta := record.Companion(record.DefaultPrefix, record.KindHold, key)
	_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, key, record.Value(m.ID, "secret-of-"+m.ID), ttl)
		p.Del(ctx, meta)
		p.Set(ctx, meta, m.Encode(), 0)
		p.PExpire(ctx, meta, ttl+record.Grace)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// release removes lock and metadata together, as lock/ does.
func release(t testing.TB, c redis.Cmdable, key string) {
	t.Helper()
	must(t, c.Del(t.Context(), key, record.Companion(record.DefaultPrefix, record.KindHold, key)).Err())
}

// heartbeat writes a process's heartbeat.
func heartbeat(t testing.TB, c redis.Cmdable, id string) {
	t.Helper()
	key := record.InstanceKey(record.DefaultPrefix, id)
	i := record.Instance{ID: id, App: "app-" + id, Host: "host-" + id, PID: 7, Started: 1000}
	must(t, c.HSet(t.Context(), key, i.Fields()...).Err())
	must(t, c.PExpire(t.Context(), key, record.HeartbeatTTL).Err())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// passed waits until the server's clock is d further: tests of history need
// looks at different times.
func passed(t testing.TB, c redis.Cmdable, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	<-ctx.Done()
	must(t, c.Ping(t.Context()).Err())
}

// monitored notes all commands of a server; the function it returns gives those
// up to now.
func monitored(t *testing.T, srv *testredis.Server) func() []string {
	t.Helper()
	conn, err := net.Dial("tcp", srv.Addr())
	must(t, err)
	_, err = io.WriteString(conn, "MONITOR\r\n")
	must(t, err)
	var mu sync.Mutex
	var seen strings.Builder
	var group sync.WaitGroup
	group.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := conn.Read(buf)
			mu.Lock()
			seen.Write(buf[:n])
			mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	t.Cleanup(func() { _ = conn.Close(); group.Wait() })
	text := func() string { mu.Lock(); defer mu.Unlock(); return seen.String() }
	testredis.Eventually(t, 5*time.Second, func() bool { return strings.HasPrefix(text(), "+OK") }, "MONITOR")
	c := srv.Client(t)
	return func() []string {
		t.Helper()
		// A command that nobody else sends: what came before it is noted when it is.
		const last = "the last one of the test"
		must(t, c.Echo(t.Context(), last).Err())
		testredis.Eventually(t, soon, func() bool { return strings.Contains(text(), last) }, "the last command is seen")
		return strings.Split(text(), "\r\n")
	}
}
