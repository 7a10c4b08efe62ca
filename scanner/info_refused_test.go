package scanner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
	redissource "github.com/locksteward/locksteward/source/redis"
)

// refusals returns how often the ACL refused a command, by its ACL LOG: equal entries
// within a minute are one with a count.
func refusals(t testing.TB, c *redis.Client, command string) (n int64) {
	t.Helper()
	entries, err := c.ACLLog(t.Context(), 1000).Result()
	must(t, err)
	for _, e := range entries {
		if e.Object == command {
			n += e.Count
		}
	}
	return n
}

// INFO that the ACL refuses is not asked for again, neither by sweeps under a budget
// nor by the watch: each refusal is an entry in the server's ACL LOG.
func TestRefusedInfoIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	for _, mode := range []source.WatchMode{source.WatchAuto, source.WatchKeyspace} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t, testredis.WithACL("scanner on nopass ~* &* +@all -info"))
			c := srv.Client(t)
			fill(t, c, 500)
			must(t, c.Set(t.Context(), "lock:a", "tok", 0).Err())
			r := fast(strings.Replace(srv.URL(), "redis://", "redis://scanner@", 1))
			r.scan, r.reads = scanner.Config{}, redissource.Config{Watch: mode}
			w := watch(t, r)
			sweep(t, w.s)
			asked := refusals(t, c, "info")
			began := time.Now()
			sweeps := 0
			for ; sweeps < 2 || time.Since(began) < 4*time.Second; sweeps++ {
				sweep(t, w.s)
			}
			if n := refusals(t, c, "info"); n != asked || asked == 0 || asked > 8 {
				t.Errorf("INFO was refused %d times at first, and %d times in %d more sweeps", asked, n-asked, sweeps)
			}
			if refused := w.s.Stats().Refused; len(refused) != 1 || refused[0] != "info" {
				t.Errorf("it is said to be without %q", refused)
			}
		})
	}
}

// A server that does not let us ask for INFO and is away by now counts as away.
func TestAwayWithoutInfo(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL("scanner on nopass ~* &* +@all -info"))
	proxy := testredis.NewProxy(t, srv.Addr())
	r := fast("redis://scanner@" + proxy.Addr() + "/0")
	r.connect.ReadTimeout = 200 * time.Millisecond
	s := r.build(t)
	sweep(t, s)
	for name, fault := range map[string]func(){"cut": proxy.Cut, "silent": func() { proxy.Freeze(true) }} {
		fault()
		got, err := s.Sweep(t.Context())
		if err == nil || len(got.Masters) != 0 || s.State().Up {
			t.Errorf("%s: masters %+v, %v, state %+v", name, got.Masters, err, s.State())
		}
		proxy.Heal()
		sweep(t, s)
	}
}
