package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// What was held is in the report with its bounds, while the locks are held and
// after a restart of the agent, and no token is.
func TestReport(t *testing.T) {
	t.Parallel()
	redis := testredis.Start(t)
	b := newBed(t, fmt.Sprintf(`targets: [{name: orders, url: 'redis://%s', schedule: '@every 1s', pace: {idle: 50%%, busy: 50%%}}]
classes: [{class: orders, match: ['lock:order:*'], team: checkout, expect: 30s}]`, redis.Addr()))
	ctx := t.Context()
	client := redis.Client(t)
	const token = "3f2b8c1e-9d1a-4b6e-8f0a-1c2d3e4f5a6b"
	seen := func(key string) func() bool {
		return func() bool {
			list, err := b.ana.Locks(ctx, apiclient.LocksQuery{Class: "orders"})
			return err == nil && len(list.Locks) == 1 && list.Locks[0].Key.Key == key
		}
	}
	of := func() (api.ClassReport, bool) {
		out, err := b.ana.Report(ctx, "orders", "orders", "1h")
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Classes) != 1 {
			return api.ClassReport{}, false
		}
		return out.Classes[0], true
	}

	if err := client.Set(ctx, "lock:order:1", token, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	taken := time.Now()
	testredis.Eventually(t, within, seen("lock:order:1"), "the lock is not seen")
	c, ok := of()
	if !ok || c.Holds != 0 || c.Open.Locks != 1 || c.P50 != nil || c.Team != "checkout" || !strings.Contains(strings.Join(c.Notes, " "), "no hold ended") {
		t.Errorf("while it is held: %+v", c)
	}
	if err := client.Del(ctx, "lock:order:1").Err(); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, within, func() bool { c, ok = of(); return ok && c.Holds == 1 }, "the hold is not counted")
	held := time.Since(taken).Milliseconds()
	if c.Ended.Released != 1 || c.Open.Locks != 0 || c.P50 == nil || c.P50.AtLeastMs > held || len(c.Worst) != 1 || c.Worst[0].Key.Key != "lock:order:1" {
		t.Errorf("after its end: %+v", c)
	}
	if c.Suggested.ExpectMs != nil || !strings.Contains(c.Suggested.ExpectReason, "1 hold") || c.TTL == nil || *c.TTL.AtMostMs < 50_000 {
		t.Errorf("suggested %+v, ttl %+v", c.Suggested, c.TTL)
	}

	b.stop()
	b.start()
	if c, ok = of(); !ok || c.Holds != 1 {
		t.Errorf("after a restart: %+v", c)
	}
	if strings.Contains(b.everything(), token) {
		t.Error("the token came out")
	}
	_, err := b.ana.Report(ctx, "elsewhere", "", "")
	if !errors.Is(err, locksteward.ErrNotFound) {
		t.Errorf("an unknown target: %v", err)
	}
	if _, err = b.ana.Report(ctx, "", "elsewhere", ""); !errors.Is(err, locksteward.ErrNotFound) {
		t.Errorf("an unknown class: %v", err)
	}
	if _, err = b.ana.Report(context.WithoutCancel(ctx), "", "", "5s"); !errors.Is(err, locksteward.ErrInvalid) {
		t.Errorf("too short a time: %v", err)
	}
}
