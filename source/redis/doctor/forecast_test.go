package doctor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
	redissource "github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/doctor"
)

// far is by how much a forecast may be wrong.
const far = 3

// near says whether a forecast is right.
func near(forecast, found float64) bool { return forecast <= far*found && found <= far*forecast }

// sweepOf is how long a sweep took and the server time of it, as the server counts.
func sweepOf(t *testing.T, rdb *redis.Client, s *scanner.Scanner, locks int) (took, server time.Duration) {
	t.Helper()
	if err := rdb.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	swept, err := s.Sweep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(swept.Locks); n != locks {
		t.Fatalf("%d locks, want %d", n, locks)
	}
	for line := range strings.Lines(rdb.Info(t.Context(), "commandstats").Val()) {
		if _, usec, ok := strings.Cut(line, "usec="); ok && !strings.HasPrefix(line, "cmdstat_config") {
			usec, _, _ = strings.Cut(usec, ",")
			d, err := time.ParseDuration(usec + "us")
			if err != nil {
				t.Fatal(err)
			}
			server += d
		}
	}
	return swept.Duration, server
}

// TestForecastIsASweep: of 30,000 keys, a third of them locks, a sweep takes as long as
// the forecast's range says, with a third of its lower end and three times the upper one allowed, and at most three times the
// server's own time. It is looked at up to five times: that it is wrong shows each time.
func TestForecastIsASweep(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	const locks, keys = 10_000, 30_000
	fill := `for i=1,tonumber(ARGV[1]) do redis.call('SET', 'lock:order:'..i, '3f2b8c1e-9d1a-4b6e-8f0a-'..string.format('%012d', i)) end
for i=1,tonumber(ARGV[2]) do redis.call('SET', 'item:'..i, 'x') end
return 1`
	if err := rdb.Eval(t.Context(), fill, nil, locks, keys-locks).Err(); err != nil {
		t.Fatal(err)
	}
	cfg := scanner.Config{Pace: pace.Config{Idle: 0.5, Busy: 0.05}, Schedule: "@every 10m"}
	conn, err := connect.Open(connect.Config{URL: srv.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	classes := set(t, orders)
	off := redissource.Config{Watch: source.WatchOff}
	src, err := redissource.New(conn, redissource.Options{Log: zap.NewNop(), Digest: locksteward.NewDigestKey(), Config: off, Pace: cfg.Pace})
	if err != nil {
		t.Fatal(err)
	}
	s, err := scanner.New(zap.NewNop(), locksteward.Target{Name: "x", Mode: conn.Mode()}, src, classes, cfg, scanner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var f *doctor.Forecast
	var took, server time.Duration
	for range 5 {
		f = doctor.Examine(t.Context(), doctor.Options{Target: "x", Connect: connect.Config{URL: srv.URL()}, Scan: cfg, Classes: classes}).Forecast
		if f == nil || f.ServerShare == nil {
			t.Fatalf("forecast %+v", f)
		}
		if f.Keys != keys || !near(float64(f.Locks), locks) || !near(float64(f.Read), locks) {
			t.Fatalf("forecast %+v", f)
		}
		took, server = sweepOf(t, rdb, s, locks)
		t.Logf("forecast: %.1f to %.1f ms, %.1f ms of the server, %.3g of it; a sweep: %s, %s", f.SweepMs, f.SweepBusyMs, f.ServerMs, *f.ServerShare, took, server)
		if share := f.ServerMs / float64((10 * time.Minute).Milliseconds()); *f.ServerShare < 0.99*share || *f.ServerShare > 1.01*share {
			t.Errorf("a share of %.3g, of %.1f ms every 10 m", *f.ServerShare, f.ServerMs)
		}
		if ms := float64(took.Microseconds()) / 1000; f.SweepMs <= far*ms && ms <= far*f.SweepBusyMs && f.ServerMs >= float64(server.Microseconds())/1000/far {
			return
		}
	}
	t.Errorf("forecast %+v, a sweep took %s and %s of the server", f, took, server)
}
