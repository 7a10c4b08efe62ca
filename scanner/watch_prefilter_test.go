package scanner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source"
	redissource "github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// TestShortLocksAreAskedAboutTogether: what is over again when it is read is asked about
// many at a time, and what stands among it is read all the same: a lock that was set
// anew, one that may not be read beside others that may, and all of them where EXISTS
// is refused, or where keys of one question are in several slots.
func TestShortLocksAreAskedAboutTogether(t *testing.T) {
	t.Parallel()
	const short = 40
	least := func(rules ...string) testredis.Option {
		return testredis.WithACL("user scanner on >pw resetkeys resetchannels " + strings.Join(append(redissource.ACL(), rules...), " "))
	}
	for name, tc := range map[string]struct {
		acl testredis.Option
		// most is how many EXISTS may be for all.
		most    int
		refused []string
	}{
		"all may be read": {acl: least(), most: short},
		"some may not":    {acl: least("resetkeys", "%R~lock:[^f]*", "%R~locksteward:*"), most: 3 * short},
		"no EXISTS":       {acl: least("-exists"), most: 0, refused: []string{"exists"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t, tc.acl)
			c := srv.Client(t)
			r := fast(srv.URL())
			r.connect = connect.Config{URL: "redis://" + srv.Addr(), Username: "scanner", Password: "pw"}
			w := tracked(t, r)
			w.taken(c, "lock:known")
			must(t, c.ConfigResetStat(t.Context()).Err())
			w.shortLocks(c, short)
			if got := calls(t, c, "exists"); got > tc.most || got == 0 && tc.most > 0 {
				t.Errorf("%d EXISTS for %d locks, want 1 to %d", got, short, tc.most)
			}
			if got := w.s.Stats().Refused; !slices.Equal(got, tc.refused) {
				t.Errorf("refused: %v, want %v", got, tc.refused)
			}
		})
	}
	t.Run("Cluster", func(t *testing.T) {
		t.Parallel()
		sinceTracking(t)
		cluster := testredis.StartCluster(t)
		w := watch(t, fast(cluster.URL()))
		w.awaitState("tracking on all masters", func(s source.WatchState) bool { return whole(s) && len(s.Nodes) == 3 })
		c := cluster.Client(t)
		w.taken(c, "lock:known")
		w.shortLocks(c, short)
	})
}

// shortLocks has the known lock end and n others begin and end while nothing is read,
// one of them to stand, and awaits that this is reported.
func (w *reported) shortLocks(c redis.UniversalClient, n int) {
	w.t.Helper()
	ctx := w.t.Context()
	before := w.s.WatchState().Events
	w.hold.Lock()
	// In one slot with the known lock: each node of a Cluster has a reader of its own.
	const begins = "lock:{lock:known}"
	must(w.t, c.Set(ctx, begins, "tok", 0).Err())
	// Read, and kept by the hold: from here on nothing of this node is read.
	testredis.Eventually(w.t, soon, func() bool { return w.s.Table().Len() == 2 }, begins+" is not in the table")
	must(w.t, c.Set(ctx, "lock:known", "another", 0).Err())
	must(w.t, c.Del(ctx, "lock:known").Err())
	for i := range n {
		must(w.t, c.Set(ctx, fmt.Sprintf("lock:short:%d", i), "tok", time.Minute).Err())
		if i == n/2 {
			must(w.t, c.Set(ctx, "lock:forbidden:1", "tok", time.Minute).Err())
		}
	}
	for i := range n {
		if key := fmt.Sprintf("lock:short:%d", i); i == n/2 {
			must(w.t, c.Set(ctx, key, "another", time.Hour).Err())
			must(w.t, c.Set(ctx, "lock:forbidden:1", "another", time.Hour).Err())
		} else {
			must(w.t, c.Del(ctx, key).Err())
		}
	}
	w.awaitState("all pushes", func(s source.WatchState) bool { return s.Events >= before+int64(2*n+5) })
	w.hold.Unlock()
	w.awaitEnd("lock:known", 1)
	if how := w.ended("lock:known"); how[0] != locksteward.EndedReleased {
		w.t.Errorf("lock:known ended %v", how)
	}
	w.await(fmt.Sprintf("lock:short:%d", n/2), "set anew", func(l locksteward.Lock) bool { return l.TTL > time.Minute })
	testredis.Eventually(w.t, soon, func() bool { return w.s.Table().Len() <= 3 }, "locks that are over are in the table")
}

// calls returns how often the server ran a command.
func calls(t *testing.T, c redis.UniversalClient, command string) (n int) {
	t.Helper()
	stats, err := c.InfoMap(t.Context(), "commandstats").Result()
	must(t, err)
	_, _ = fmt.Sscanf(stats["Commandstats"]["cmdstat_"+command], "calls=%d", &n)
	return n
}
