package agent_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source"
)

const twoClasses = `
classes:
  - {class: orders, match: ["lock:order:*"]}
  - {class: stock, match: ["lock:stock:*"]}
`

// holdAfter takes a lock of ours in a session that has others already.
func holdAfter(t *testing.T, rdb redis.UniversalClient, key string, others ...string) {
	t.Helper()
	id := strings.ReplaceAll(key, ":", "-")
	m := record.Meta{
		V: record.Version, ID: "A-" + id, Session: "S-" + id, Holding: others, TTL: time.Minute.Milliseconds(),
		Acquired: time.Now().UnixMilli(), Renewed: time.Now().UnixMilli(),
	}
	meta := record.Companion(record.DefaultPrefix, record.KindHold, key)
	if err := rdb.Set(t.Context(), meta, m.Encode(), 0).Err(); err != nil {
		t.Fatal(err)
	}
	set(t, rdb, key, record.Value(m.ID, "x"), time.Minute)
}

// TestOrdersSurviveARestartOfTheAgent: what was taken in one order before it, and in
// the other after it, is an inversion.
func TestOrdersSurviveARestartOfTheAgent(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	b := newBed(t, target(srv.URL())+twoClasses)
	holdAfter(t, rdb, "lock:stock:1", "lock:order:1")
	swept := func(key string) func() bool {
		return func() bool {
			list, err := b.ana.Targets(t.Context())
			if err != nil || len(list.Targets) != 1 || list.Targets[0].LastSweep == nil {
				return false
			}
			locks, err := b.ana.Locks(t.Context(), apiclient.LocksQuery{})
			return err == nil && list.Targets[0].LastSweep.Locks > 0 &&
				slices.ContainsFunc(locks.Locks, func(l api.Lock) bool { return l.Key.Key == key })
		}
	}
	testredis.Eventually(t, within, swept("lock:stock:1"), "the first order is not seen")
	b.stop()
	if err := rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	b.start()
	holdAfter(t, rdb, "lock:order:7", "lock:stock:7")
	testredis.Eventually(t, within, func() bool {
		list, err := b.ana.Findings(t.Context(), apiclient.FindingsQuery{Rule: "wait/order-inversion"})
		return err == nil && len(list.Findings) == 1 && list.Findings[0].Class == "orders" && list.Findings[0].Subject == "stock"
	}, "no inversion after the restart")
}

// TestTargetsTellOfWatchAndBudget: the API says how each target is watched and what
// looking may cost it.
func TestTargetsTellOfWatchAndBudget(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	b := newBed(t, target(srv.URL())+twoClasses)
	var last api.Target
	testredis.Eventually(t, within, func() bool {
		list, err := b.ana.Targets(t.Context())
		if err != nil || len(list.Targets) != 1 {
			return false
		}
		last = list.Targets[0]
		return last.LastSweep != nil && last.Watch != nil && last.Watch.Mode == "tracking"
	}, "the target is not watched")
	if w := last.Watch; w.Missed != 0 || w.Reason != "" || len(w.Classes) != 3 || w.Classes[0] != (api.ClassWatch{Class: "orders", Coverage: "watched"}) {
		t.Errorf("watch %+v", w)
	}
	if g := last.Budget; g == nil || g.Idle != 0.5 || len(g.Servers) != 1 || len(g.ThrottledMs) != len(source.Reasons()) || g.Degraded == nil {
		t.Errorf("budget %+v", g)
	}
}
