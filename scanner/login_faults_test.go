package scanner_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/rules"
)

// A server that no longer accepts the scanner's login is a target that cannot be
// read: sweeps, rechecks and the watch learn nothing of its locks, and no rule finds
// anything about them. The watch looks at the locks when their leases end, and by then
// they have been renewed.
func TestLoginLost(t *testing.T) {
	t.Parallel()
	// Long enough for all to be seen, and renewed after the login was lost.
	const locks, lease = 200, 5 * time.Second
	srv := testredis.Start(t, testredis.WithACL("scanner on >secret ~* &* +@all"))
	c := srv.Client(t)
	ctx := t.Context()
	key := func(i int) string { return fmt.Sprintf("lock:%03d", i) }
	for i := range locks {
		must(t, c.Set(ctx, key(i), "tok:"+key(i), lease).Err())
	}
	ends := time.Now().Add(lease)
	w := tracked(t, fast("redis://scanner:secret@"+srv.Addr()+"/0"))
	e, err := rules.New(nil, nil, nil)
	must(t, err)
	before := judged(t, w.s, e)
	if len(before.Locks) != locks {
		t.Fatalf("%d locks before", len(before.Locks))
	}

	must(t, c.Do(ctx, "acl", "setuser", "scanner", "resetpass", ">new").Err())
	must(t, c.Do(ctx, "client", "kill", "user", "scanner").Err())
	pipe := c.Pipeline()
	for i := range locks {
		pipe.PExpire(ctx, key(i), time.Hour)
	}
	_, err = pipe.Exec(ctx)
	must(t, err)
	for time.Now().Before(ends.Add(time.Second)) {
		must(t, c.Do(ctx, "client", "kill", "user", "scanner").Err())
		got, err := w.s.Sweep(ctx)
		if err == nil || got.Complete() || w.s.State().Up {
			t.Fatalf("swept: up %v, error %v", w.s.State().Up, err)
		}
		e.Evaluate(got)
		again, err := w.s.Recheck(ctx, before.Locks)
		if err == nil || len(again.Locks)+len(again.Endings) != 0 {
			t.Fatalf("read again: %d locks, %d endings, error %v", len(again.Locks), len(again.Endings), err)
		}
		e.EvaluateDirect(again)
	}
	for _, l := range w.s.Table().Locks() {
		e.EvaluateDirect(locksteward.Update{Target: "test", At: l.At, Locks: []locksteward.Lock{l}})
		if how := w.ended(l.Key); len(how) != 0 || !l.At.Before(ends) {
			t.Fatalf("%s: ended %v, TTL %s at %s", l.Key, how, l.TTL, l.At)
		}
	}
	for _, f := range e.Findings() {
		if f.Key != "" {
			t.Fatalf("found: %s", catalogue.Text("en", f.Summary))
		}
	}
	must(t, c.Do(ctx, "acl", "setuser", "scanner", ">secret").Err())
	testredis.Eventually(t, soon, func() bool {
		got, _ := w.s.Sweep(ctx)
		return got.Complete() && len(got.Locks) == locks && find(t, got.Locks, key(0)).TTL > time.Minute
	}, "the target is not read after the login is back")
	for i := range locks {
		if how := w.ended(key(i)); len(how) != 0 {
			t.Fatalf("%s: ended %v", key(i), how)
		}
	}
}
