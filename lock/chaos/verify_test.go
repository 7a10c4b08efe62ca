package chaos_test

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/lockcheck"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// damage is what a nemesis does to the state of the server.
type damage int

const (
	// intact: a lock ends by its release or its TTL. Exclusion must hold.
	intact damage = iota
	// drops: locks vanish. Answers must be those of a lock that may vanish.
	drops
	// restores: an older state comes back. Only fences help.
	restores
)

// nemesis breaks something while locks are being taken.
type nemesis struct {
	name     string
	topology string
	damage   damage
	// strays: requests may take effect long after their client gave them up.
	strays bool
	// killed: processes die without telling of their last acquires.
	killed bool
	// timeout is Options.Timeout of the workers in the bounded run; default tripTimeout.
	timeout time.Duration
	// times is how often to strike in the bounded run; default 2.
	times int
	// prepare is done once, before anybody works.
	prepare func(*bed)
	// strike breaks something, waits and mends it.
	strike func(*bed)
}

// storm runs workers while n strikes, and judges what they saw.
func storm(t *testing.T, n nemesis) {
	t.Helper()
	t.Parallel()
	stormAlone(t, n)
}

// stormAlone is storm for tests that must not be parallel.
func stormAlone(t *testing.T, n nemesis) {
	t.Helper()
	b := topologies[n.topology](t)
	b.timeout = n.timeout
	if n.prepare != nil {
		n.prepare(b)
	}
	b.work(6)
	b.progress(10)
	for range cmp.Or(n.times, 2) {
		n.strike(b)
		b.progress(10)
	}
	b.halt()
	b.judge(n)
}

// judge checks the record of a bed at rest that n has struck, and what is left
// on the server.
func (b *bed) judge(ns ...nemesis) {
	b.t.Helper()
	var worst damage
	rules := lockcheck.Rules{}
	for _, n := range ns {
		worst = max(worst, n.damage)
		rules.Strays = rules.Strays || n.strays
		if n.killed {
			b.rec.Killed()
		}
	}
	h := b.rec.History()
	b.t.Logf("%d acquisitions, %d failed acquires, %d writes; late writes that the fenced store refused: %d, that the other took: %d",
		len(h.Holds), len(h.Attempts), len(h.Fenced), rejected(h.Fenced), len(lockcheck.Store(h.Unfenced)))
	found := lockcheck.Store(h.Fenced)
	found = append(found, lockcheck.Fences(h)...)
	switch worst {
	case intact:
		found = append(found, lockcheck.Overlaps(h)...)
		found = append(found, lockcheck.Losses(h)...)
		found = append(found, lockcheck.ServerView(h, rules)...)
	case drops:
		rules.Drops = true
		found = append(found, lockcheck.ServerView(h, rules)...)
	case restores:
	}
	for i, v := range found {
		if i == 10 {
			b.t.Errorf("and %d more", len(found)-i)
			break
		}
		b.t.Error(v)
	}
	b.leftovers()
}

func rejected(writes []lockcheck.Write) int {
	n := 0
	for _, w := range writes {
		if w.Outcome == lockcheck.Rejected {
			n++
		}
	}
	return n
}

// leftovers checks that all locks end by themselves and that no key was left
// without a TTL but the fence counters.
func (b *bed) leftovers() {
	b.t.Helper()
	ctx := context.Background()
	testredis.Eventually(b.t, 10*time.Second, func() bool {
		for _, key := range b.locks {
			if n, err := b.admin.Exists(ctx, key).Result(); err != nil || n != 0 {
				return false
			}
		}
		return true
	}, "all locks are free when nobody works any more")
	check := func(ctx context.Context, c *redis.Client) error {
		keys, err := c.Keys(ctx, "*").Result()
		if err != nil {
			return err
		}
		for _, key := range keys {
			ttl, err := c.PTTL(ctx, key).Result()
			if err != nil {
				return err
			}
			if ttl == -1 && !strings.HasPrefix(key, "locksteward:fence:") {
				b.t.Errorf("key %q has no TTL", key)
			}
		}
		return nil
	}
	var err error
	switch c := b.admin.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, check)
	case *redis.Client:
		err = check(ctx, c)
	}
	if err != nil {
		b.t.Errorf("look for leftovers: %v", err)
	}
}

// keep writes the history of a test that failed, and what makes it again, to its
// artifacts.
func (b *bed) keep() {
	t, h := b.t, b.rec.History()
	if !t.Failed() {
		return
	}
	data, err := json.MarshalIndent(struct {
		Seed    uint64            `json:"seed"`
		Test    string            `json:"test"`
		History lockcheck.History `json:"history"`
	}{*seed, t.Name(), h}, "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(t.ArtifactDir(), "history.json"), data, 0o600)
	}
	if err != nil {
		t.Errorf("keep history: %v", err)
		return
	}
	t.Logf("history and logs of the servers are in %s", t.ArtifactDir())
}
