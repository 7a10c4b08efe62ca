package browser_test

import (
	"context"
	"sync"
	"time"

	"github.com/locksteward/locksteward/lock"
)

// scene fills a server with what an incident looks like: locks without TTL, work
// that hangs, people who wait, and two that wait for each other.
func scene(s *stage) {
	t := s.t
	s.set("lock:invoice:2026-118", token)
	s.set("lock:order:41", "00000000-0000-4000-8000-000000000041")
	ctx := t.Context()
	if err := s.rdb.HSet(ctx, "lock:payment:7", "a850669f-bf72-476a-bdb1-9fd136cbfbcc:42", 1).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.rdb.PExpire(ctx, "lock:payment:7", 28*time.Second).Err(); err != nil {
		t.Fatal(err)
	}
	client := func(app, host string) *lock.Client {
		c, err := lock.New(s.rdb, lock.Options{App: app, Host: host})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	checkout, billing, stock := client("checkout", "web-3"), client("billing", "batch-1"), client("stock", "web-1")
	lease := lock.Lease{TTL: 30 * time.Second, Expect: 5 * time.Second}
	hold := func(ctx context.Context, c *lock.Client, key, purpose string) {
		l := lease
		l.Purpose = purpose
		if _, err := c.Acquire(ctx, key, l); err != nil {
			t.Fatal(err)
		}
	}
	var waits sync.WaitGroup
	over, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t.Cleanup(func() { cancel(); waits.Wait() })
	wait := func(ctx context.Context, c *lock.Client, key, purpose string) {
		l := lease
		l.Purpose = purpose
		waits.Go(func() { _, _ = c.Acquire(ctx, key, l) })
	}
	hold(lock.WithSession(over), checkout, "lock:order:42", "capture payment")
	for range 3 {
		wait(lock.WithSession(over), stock, "lock:order:42", "reserve stock")
	}
	one, two := lock.WithSession(over), lock.WithSession(over)
	hold(one, billing, "lock:ledger:eu", "close the month")
	hold(two, stock, "lock:ledger:us", "revalue stock")
	wait(one, billing, "lock:ledger:us", "close the month")
	wait(two, stock, "lock:ledger:eu", "revalue stock")
}

// everyPage are the pages of a stage, by a name for their pictures.
func everyPage(b *tab) map[string]string {
	b.t.Helper()
	fingerprint := js[string](b, "document.querySelector('main h3 a[href^=\"/findings/\"]').getAttribute('href')")
	return map[string]string{
		"overview": "/", "findings": "/findings", "finding": fingerprint, "findings-empty": "/findings?rule=none", "finding-gone": "/findings/0123456789abcdef0123456789abcdef",
		"locks": "/locks", "locks-empty": "/locks?q=nothing+is+called+so", "lock": "/locks/one?target=main&key=lock:order:42", "lock-no-ttl": "/locks/one?target=main&key=lock:invoice:2026-118",
		"lock-gone": "/locks/one?target=main&key=lock:order:1", "graph": "/graph", "requests": "/requests", "audit": "/audit", "targets": "/targets",
		"rules": "/rules", "rule": "/rules/ttl/none", "classes": "/classes", "release-pause": "/release-pause", "notifications": "/notifications", "missing": "/requests/r-none", "wrong": "/locks?colour=red",
	}
}
