package agent_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// While a target is paused nothing new is found and nothing is called over; a
// reload keeps the pause, and afterwards all goes on.
func TestPausedTargetIsLeftAlone(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	set(t, rdb, "lock:order:1", token, time.Hour)
	b := newBed(t, target(srv.URL())+orders)
	b.awaitMetric(`locksteward_locks{class="orders",library="token",target="main"} 1`)
	b.awaitMetric(`locksteward_budget_paused{target="main"} 0`)
	if _, err := b.agent.Backend().Pause(t.Context(), "nothing", locksteward.Pause{By: "ann"}); !errors.Is(err, locksteward.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if names, err := b.agent.Backend().Pause(t.Context(), "", locksteward.Pause{By: "ann", Since: time.Now()}); err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	b.awaitMetric(`locksteward_budget_paused{target="main"} 1`)
	set(t, rdb, "lock:order:2", token, time.Hour)
	scans := func() string {
		_, rest, _ := strings.Cut(rdb.Info(t.Context(), "commandstats").Val(), "cmdstat_scan:calls=")
		calls, _, _ := strings.Cut(rest, ",")
		return calls
	}
	// A sweep under way may have one page left; the schedule is a second.
	calls, since := scans(), time.Now()
	testredis.Eventually(t, within, func() bool {
		if now := scans(); now != calls {
			calls, since = now, time.Now()
		}
		return time.Since(since) > 3*time.Second
	}, "a paused target is still scanned")

	b.write(strings.Replace(target(srv.URL()), "@every 1s", "@every 2s", 1) + orders)
	if err := b.agent.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.awaitMetric(`locksteward_budget_paused{target="main"} 1`)
	if list := b.agent.Backend().Targets(); len(list) != 1 || list[0].Paused == nil || list[0].Paused.By != "ann" {
		t.Errorf("targets %+v", list)
	}
	if names, err := b.agent.Backend().Resume(t.Context(), "main", "bob"); err != nil || len(names) != 1 {
		t.Error(names, err)
	}
	b.awaitMetric(`locksteward_budget_paused{target="main"} 0`)
	b.awaitMetric(`locksteward_locks{class="orders",library="token",target="main"} 2`)
	entries, err := b.ana.Audit(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for _, e := range entries.Entries {
		said.WriteString(e.Actor + " " + e.Action + "\n")
	}
	if !strings.Contains(said.String(), "ann target.pause") || !strings.Contains(said.String(), "bob target.resume") {
		t.Errorf("audit:\n%s", said.String())
	}
}
