package scanner_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// TestSweepOfAnEndlessScan has a server return names and cursors for ever: the sweep ends
// long before its timeout, and says why.
func TestSweepOfAnEndlessScan(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	must(t, srv.Client(t).Set(t.Context(), "lock:a", "token-1234567890", time.Hour).Err())
	liar := testredis.NewLiar(t, srv.Addr())
	page := 0
	liar.Tell("scan", func(w io.Writer) error {
		var b strings.Builder
		b.WriteString("*2\r\n$2\r\n17\r\n*1000\r\n")
		for i := range 1000 {
			fmt.Fprintf(&b, "$16\r\nname:%05d:%05d\r\n", page, i)
		}
		page++
		_, err := io.WriteString(w, b.String())
		return err
	})
	for _, throttled := range []bool{false, true} {
		r := fast("redis://" + liar.Addr() + "/0")
		r.scan.NoThrottle = !throttled
		r.scan.Timeout = time.Minute
		got, err := r.build(t).Sweep(t.Context())
		if reason := reasonOf(got, err); !strings.Contains(reason, "SCAN does not end: "+liar.Addr()+" returned ") {
			t.Errorf("throttled %t: reason %q does not say that SCAN does not end", throttled, reason)
		}
		if keys := got.Keys(); keys < 10_000 || keys > 60_000 {
			t.Errorf("throttled %t: %d names were taken of a server with one key", throttled, keys)
		}
	}
}

// TestSweepOfAGrowingKeyspace has keys come while SCAN goes on, of which INFO at first
// reported nothing.
func TestSweepOfAGrowingKeyspace(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	must(t, c.Eval(t.Context(), "for i = 1, 45000 do redis.call('set', 'key:' .. i, i) end return 1", nil).Err())
	liar := testredis.NewLiar(t, srv.Addr())
	asked := 0
	liar.Tell("info", func(w io.Writer) error {
		if asked++; asked == 3 { // its version, whether it is a Cluster, and all
			liar.Tell("", nil) // the truth from now on
		}
		_, err := io.WriteString(w, "$14\r\nredis_mode:a\r\n\r\n")
		return err
	})
	got := sweep(t, fast("redis://"+liar.Addr()+"/0").build(t))
	if got.Keys() < 45_000 {
		t.Errorf("%d keys, want 45,000", got.Keys())
	}
}

// TestSweepBesideALongName has an application write a name and a value of megabytes: the
// other keys are read, and these are counted.
func TestSweepBesideALongName(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	must(t, c.Set(t.Context(), "lock:"+strings.Repeat("n", 3<<20), "token-1234567890", time.Hour).Err())
	must(t, c.Set(t.Context(), "lock:value", strings.Repeat("v", 3<<20), time.Hour).Err())
	must(t, c.Set(t.Context(), "lock:a", "token-1234567890", time.Hour).Err())
	r := fast(srv.URL())
	r.classes = []class.Class{{Name: "locks", Match: []string{"lock:*"}}}
	s := r.build(t)
	for range 2 {
		got := sweep(t, s)
		find(t, got.Locks, "lock:a")
		stats := s.Stats()
		if stats.Long != 1 || !strings.Contains(strings.Join(stats.Degraded, "\n"), "names or values of more than 1 MiB: 1; ") {
			t.Errorf("long %d, degraded %q, want the one name reported", stats.Long, stats.Degraded)
		}
		for _, l := range got.Locks {
			if strings.Contains(l.Key, "long-string") {
				t.Errorf("what stands for the name is a lock: %q", l.Key)
			}
		}
	}
}
