package scan_test

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/scan"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/source/redis/connect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "9a2b8c1e-9d1a-4b6e-8f0a-1c2d3e4f5a6b"

// One command that looks for long enough sees a watchdog at work, and one that
// has stopped: nobody needs an agent to judge a foreign library's renewals.
func TestObserveJudgesRenewals(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t)
	client := server.Client(t)
	ctx := t.Context()
	for _, key := range []string{"lock:healthy", "lock:hung"} {
		if err := client.Set(ctx, key, token, 6*time.Second).Err(); err != nil {
			t.Fatal(err)
		}
	}
	looks := 0
	result, err := scan.Run(ctx, scan.Options{
		Connect: connect.Config{URL: "redis://" + server.Addr()}, Observe: 9 * time.Second,
		Record: func(locksteward.Sweep) error {
			looks++
			if looks <= 4 {
				if err := client.PExpire(ctx, "lock:hung", 6*time.Second).Err(); err != nil {
					return err
				}
			}
			return client.PExpire(ctx, "lock:healthy", 6*time.Second).Err()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	late := map[string]bool{}
	for _, f := range result.Findings {
		if f.Rule == "renewal/failing" {
			late[f.Key] = true
		}
	}
	if looks < 5 || !late["lock:hung"] || late["lock:healthy"] {
		t.Errorf("%d looks, late are %v", looks, late)
		for _, l := range result.Sweep.Locks {
			t.Logf("%s: %+v", l.Key, l.History)
		}
	}
}

// Explain looks again where the first look decides nothing, and tells a lock that
// is fine at once.
func TestExplainLooksTwice(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t)
	client := server.Client(t)
	ctx := t.Context()
	for key, ttl := range map[string]time.Duration{"lock:stuck": 0, "not-named-so": time.Minute} {
		if err := client.Set(ctx, key, token, ttl).Err(); err != nil {
			t.Fatal(err)
		}
	}
	opts := scan.Options{Connect: connect.Config{URL: "redis://" + server.Addr()}}
	verdict := func(key string) rules.Verdict {
		t.Helper()
		_, list, err := scan.Explain(ctx, opts, key)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range list {
			if v.Rule == rules.TTLNone {
				return v
			}
		}
		t.Fatal("no verdict of ttl/none")
		return rules.Verdict{}
	}
	if v := verdict("lock:stuck"); v.Finding == nil || v.Finding.Status != locksteward.StatusFiring {
		t.Errorf("stuck: %+v", v)
	}
	if v := verdict("not-named-so"); v.Finding != nil || !strings.Contains(v.Reason, "TTL") {
		t.Errorf("healthy: %+v", v)
	}
}

// A proposal knows the families of its locks and when they ended.
func TestReportOfAServer(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t)
	client := server.Client(t)
	ctx := t.Context()
	looks := 0
	out, err := scan.Report(ctx, scan.Options{
		Connect: connect.Config{URL: "redis://" + server.Addr()}, Observe: 4 * time.Second,
		Record: func(locksteward.Sweep) error {
			looks++
			switch looks {
			case 1:
				return client.Set(ctx, "lock:order:1", token, time.Minute).Err()
			case 3:
				return client.Del(ctx, "lock:order:1").Err()
			}
			return nil
		},
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Classes) != 1 {
		t.Fatalf("got %+v", out)
	}
	c := out.Classes[0]
	// Taken after the first sweep and gone before the fourth: seen twice, a second
	// apart, and held for two.
	if c.Class != "order" || c.Holds != 1 || c.P50 == nil || c.P50.AtMostMs == nil || c.P50.AtLeastMs < 900 || c.P50.AtLeastMs > 2100 || *c.P50.AtMostMs < 2000 {
		t.Errorf("got %+v, p50 %+v", c, c.P50)
	}
	if !strings.Contains(strings.Join(out.Notes, " "), "sweeps in") {
		t.Errorf("notes %q", out.Notes)
	}
}
