package scanner_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/rules"
)

// notLocks are names that speak of locks, blocks and clocks, and are none.
var notLocks = []string{
	"blocked:ip:1", "clock:tick", "unlocked:u1", "account:locked:42", "stock:locked:sku1", "lock_stock:sku=57", "block:height",
	"block:0000000000000000000b", "blockchain:tip", "user:7:locked", "user:7:is_locked", "lockout:alice", "login:lockout:10.0.0.7",
	"unlock:code:7", "padlock:color", "wedlock", "clockwork:jobs", "o'clock:report", "interlocking:directorates", "locksmith:reviews",
	"lockdown:level", "gridlock:city:9", "stocks:AAPL", "overclocked:gpu:1", "lock_inventory:sku-9", "lockStock:17", "release:notes", "please:wait",
}

// Values that such keys have in applications, an expiry or none.
var notLockValues = []string{"1", "0", "57", "true", "locked", "2026-11-21T03:00:00Z", `{"reason":"abuse","by":"ops"}`, "1794970000"}

func TestNamesThatAreNotLocks(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	for i, value := range notLockValues {
		for _, name := range notLocks {
			key := name
			if i > 0 {
				key += ":" + strconv.Itoa(i)
			}
			must(t, c.Set(t.Context(), key, value, time.Duration(i%2)*time.Hour).Err())
		}
	}
	for _, name := range notLocks {
		must(t, c.HSet(t.Context(), name+":hash", "mode", "write", "by", "ops").Err())
		must(t, c.ZAdd(t.Context(), name+":zset", redis.Z{Member: "alice", Score: 1794970000}).Err())
		must(t, c.SAdd(t.Context(), name+":set", "alice", "bob").Err())
		must(t, c.RPush(t.Context(), name+":list", "alice").Err())
	}
	wantCalm(t, fast(srv.URL()), c)
}

// A store of the ordinary keys of well-known applications: names, types and
// values as those applications have them.
func TestOrdinaryKeysAreNoLocks(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	apps := map[string]int{}
	for _, k := range ordinary {
		apps[k.app]++
		for _, args := range k.commands {
			must(t, c.Do(t.Context(), args...).Err())
		}
	}
	if len(apps) < 20 {
		t.Fatalf("%d applications, want at least 20", len(apps))
	}
	wantCalm(t, fast(srv.URL()), c)
}

// wantCalm sweeps and judges as the agent does: candidates at most, no finding,
// nothing that could be released.
func wantCalm(t *testing.T, r rig, c *redis.Client) {
	t.Helper()
	classes, err := class.NewSet(nil)
	must(t, err)
	engine, err := rules.New(nil, classes, nil)
	must(t, err)
	s := r.build(t)
	for i := range 2 {
		got := sweep(t, s)
		for _, l := range got.Locks {
			t.Errorf("%q is taken for a lock of %s (%s, %s)", l.Key, l.Library, l.Confidence, l.TokenKind)
		}
		for _, o := range got.Orphans {
			t.Errorf("%q is taken for an orphan of %s", o.Key, o.Library)
		}
		engine.Evaluate(got)
		for _, f := range engine.Findings() {
			if !strings.HasPrefix(f.Rule, "server/") {
				t.Errorf("finding %s about %q: %s", f.Rule, f.Key, catalogue.Text("en", f.Summary))
			}
		}
		if i == 0 {
			passed(t, c, 20*time.Millisecond)
		}
	}
	// What is released is asked of the table.
	if n := s.Table().Len(); n != 0 {
		t.Errorf("%d locks in the table, want none", n)
	}
}
