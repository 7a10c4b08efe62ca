package scanner_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/redisproc"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
)

// evidenceOf is the evidence of a finding in English, a line each.
func evidenceOf(f *locksteward.Finding) string {
	var out strings.Builder
	for _, line := range f.Evidence {
		out.WriteString(catalogue.Text("en", line) + "\n")
	}
	return out.String()
}

// finding returns what a rule says of a key; nil if it is silent.
func finding(e *rules.Engine, rule, key string) *locksteward.Finding {
	for _, f := range e.Findings() {
		if f.Rule == rule && f.Key == key {
			return &f
		}
	}
	return nil
}

// judged makes a sweep and lets e judge it.
func judged(t *testing.T, s *scanner.Scanner, e *rules.Engine) locksteward.Sweep {
	t.Helper()
	got := sweep(t, s)
	e.Evaluate(got)
	return got
}

func gone(t *testing.T, c *redis.Client, key string) {
	t.Helper()
	testredis.Eventually(t, 30*time.Second, func() bool { return c.Exists(context.Background(), key).Val() == 0 }, key+" is still there")
}

// A real process is stopped past its TTL, another takes the lock, and the first
// one goes on: the change of the holder is seen, the loss is reported, and it becomes
// critical, with two writers possible, once the first one shows that it lives.
// fault: 1
func TestStoppedHolderMayStillWrite(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	s := fast(srv.URL()).build(t)
	e, err := rules.New(nil, nil, nil)
	must(t, err)
	process, id := startChild(t, srv.URL(), "lock:job", "", "3s")
	first := find(t, judged(t, s, e).Locks, "lock:job")
	if first.Holder.Instance != id {
		t.Fatalf("held by %+v, want %s", first.Holder, id)
	}
	must(t, redisproc.Freeze(process))
	gone(t, c, "lock:job")
	next, err := lock.New(c, lock.Options{App: "next"})
	must(t, err)
	defer next.Close()
	h, err := next.Acquire(t.Context(), "lock:job", lock.Lease{TTL: time.Minute})
	must(t, err)
	got := judged(t, s, e)
	if l := find(t, got.Locks, "lock:job"); l.Claim == nil || l.Claim.ID != h.ID() || l.Holder.App != "next" {
		t.Errorf("the lock after the change: %+v", l)
	}
	if how := ending(got, "lock:job"); how != locksteward.EndedReplaced {
		t.Errorf("the first hold ended %q", how)
	}
	f := finding(e, "hold/lost", "lock:job")
	if f == nil || f.Severity != locksteward.SeverityInfo {
		t.Fatalf("while the first one stands still: %+v", f)
	}
	must(t, process.Signal(syscall.SIGCONT))
	testredis.Eventually(t, 15*time.Second, func() bool { // its heartbeat comes every 5 s
		judged(t, s, e)
		f = finding(e, "hold/lost", "lock:job")
		return f != nil && f.Severity == locksteward.SeverityCritical
	}, "it is not reported that the first holder lives")
	if !strings.Contains(catalogue.Text("en", f.Summary), "two writers are possible") {
		t.Errorf("summary %q", catalogue.Text("en", f.Summary))
	}
	must(t, h.Release(t.Context()))
}

// Two processes are killed with a lock each. That with a TTL ends by itself and
// nobody is alarmed; that whose TTL somebody took away is left for good, and is.
// fault: 6
func TestKilledHolderLeavesAnOrphanOnlyWithoutTTL(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	s := fast(srv.URL()).build(t)
	e, err := rules.New(nil, nil, nil)
	must(t, err)
	for _, key := range []string{"lock:leased", "lock:bare"} {
		process, _ := startChild(t, srv.URL(), key, "", "5s")
		judged(t, s, e)
		must(t, process.Kill())
		_, _ = process.Wait()
	}
	must(t, c.Persist(t.Context(), "lock:bare").Err())
	gone(t, c, "lock:leased")
	testredis.Eventually(t, 10*time.Second, func() bool {
		judged(t, s, e)
		f := finding(e, rules.TTLNone, "lock:bare")
		return f != nil && f.Status == locksteward.StatusFiring && f.Severity == locksteward.SeverityCritical
	}, "the lock that stays is not reported")
	for _, f := range e.Findings() {
		if f.Key == "lock:leased" && (f.Rule != "hold/lost" || f.Severity != locksteward.SeverityInfo) {
			t.Errorf("of the lock that ended by its lease: %s, %s: %s", f.Rule, f.Severity, catalogue.Text("en", f.Summary))
		}
	}
}

// The agent's clock differs from the server's by an hour, either way, and drifts:
// ages, expiries and findings are those that an agent with the right clock has,
// and the watch looks at a deadline when it is due.
// fault: 9
func TestAgesAreByTheServersClock(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"right": 0, "behind": time.Hour, "ahead": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, clock := testredis.StartClocked(t)
			// It stands still between two steps, so that ages are exact.
			at := time.Now().Add(off).Truncate(time.Second)
			clock.Freeze(at)
			c := srv.Client(t)
			ctx := t.Context()
			r := fast(srv.URL())
			r.classes = []class.Class{{Name: "work", Match: []string{"lock:*"}, Expect: time.Minute, MaxTTL: time.Hour}}
			set, err := class.NewSet(r.classes)
			must(t, err)
			e, err := rules.New(nil, set, nil)
			must(t, err)
			w := tracked(t, r)
			must(t, c.Set(ctx, "lock:a", "tok-a", 30*time.Minute).Err())
			must(t, c.Set(ctx, "lock:long", "tok-b", 2*time.Hour).Err())
			judged(t, w.s, e)
			clock.Freeze(at.Add(59 * time.Second)) // of which the agent's clock knows nothing
			l := find(t, judged(t, w.s, e).Locks, "lock:a")
			if age, basis, _ := l.Age(); age < 58*time.Second || age > 60*time.Second || basis != locksteward.AgeObserved {
				t.Errorf("age %s by %s, want 59 s", age, basis)
			}
			if left := l.TTL; left < 29*time.Minute || left > 29*time.Minute+2*time.Second {
				t.Errorf("TTL %s", left)
			}
			if f := finding(e, rules.HoldTooLong, "lock:a"); f != nil {
				t.Errorf("too long, after 59 s of a minute: %s", catalogue.Text("en", f.Summary))
			}
			if f := finding(e, "ttl/too-long", "lock:long"); f == nil {
				t.Error("nothing is said of the long TTL")
			}
			clock.Freeze(at.Add(61 * time.Second))
			judged(t, w.s, e)
			if f := finding(e, rules.HoldTooLong, "lock:a"); f == nil {
				t.Error("nothing is said after 61 s of a minute")
			}
			clock.Set(off + 61*time.Second)
			// A deadline of the server is kept by the agent's timer.
			w.awaitState("the clocks are compared anew", func(s source.WatchState) bool { return whole(s) })
			must(t, c.Set(ctx, "lock:short", "tok", 3*time.Second).Err())
			w.awaitLock("lock:short")
			w.awaitEnd("lock:short", 1)
			if how := w.ended("lock:short"); how[0] != locksteward.EndedExpired {
				t.Errorf("ended %v", how)
			}
		})
	}
}
