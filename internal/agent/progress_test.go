package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// While the first sweep of a slow target lasts, nobody is notified that the target is
// down, nor that there are no locks: everybody hears that it is under way, and how
// far it is.
func TestFirstSweepIsReportedWhileItLasts(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	pipe := c.Pipeline()
	for i := range 8_000 {
		pipe.Set(t.Context(), fmt.Sprintf("user:%d", i), "x", 0)
	}
	pipe.Set(t.Context(), "lock:order:1", token, 0)
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := newBed(t, "targets: [{name: main, url: '"+srv.URL()+"', schedule: '@every 1s', pace: {idle: 5%, busy: 5%}, watch: off}]")
	testredis.Eventually(t, within, func() bool {
		list, err := b.ana.Targets(t.Context())
		if err != nil || len(list.Targets) != 1 {
			return false
		}
		got := list.Targets[0]
		if got.LastSweep != nil {
			t.Fatalf("the first sweep was over too soon: %+v", got.LastSweep)
		}
		return got.Up && got.Sweeping != nil && got.Sweeping.First && got.Sweeping.Keys > 0
	}, "the first sweep is not notified of")
	// Time to look around: a sweep that is paused stays as far as it is.
	if _, err := b.agent.Backend().Pause(t.Context(), "main", pauseBy("ana")); err != nil {
		t.Fatal(err)
	}
	b.awaitMetric(`locksteward_target_up{target="main"} 1`)
	list, err := b.ana.Targets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := list.Targets[0].Sweeping
	if s == nil || s.Percent == nil || *s.OfKeys != 8_001 || *s.Percent > 99 || !s.EndsAt.IsZero() {
		t.Fatalf("sweeping: %+v", s)
	}
	locks, err := b.ana.Locks(t.Context(), apiclient.LocksQuery{})
	if err != nil {
		t.Fatal(err)
	}
	findings, err := b.ana.Findings(t.Context(), apiclient.FindingsQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if len(locks.Locks) != 0 || len(locks.Unseen) != 1 || len(findings.Unseen) != 1 || locks.Unseen[0].Sweeping == nil ||
		!strings.Contains(locks.Unseen[0].Reason, "ana paused it") {
		t.Errorf("locks %+v, findings %+v", locks, findings.Unseen)
	}
	if _, err := b.agent.Backend().Resume(t.Context(), "main", "ana"); err != nil {
		t.Fatal(err)
	}
	ready := "http://" + b.agent.MetricsAddr().String() + "/-/ready"
	testredis.Eventually(t, within, func() bool {
		text := get(ready)
		if text == "ready\n" {
			t.Fatal("nothing is said of the first sweep before it ended")
		}
		return strings.Contains(text, "ready\ntarget \"main\": its first sweep is under way: ") && strings.Contains(text, " of 8001 keys scanned")
	}, "/-/ready does not say how far it is")
	// On a busy machine calls take longer, and so do the pauses between them.
	testredis.Eventually(t, time.Minute, func() bool {
		l, err := b.ana.Locks(t.Context(), apiclient.LocksQuery{})
		return err == nil && l.Total == 1 && len(l.Unseen) == 0
	}, "the first sweep does not end")
	if text := get(ready); !strings.HasPrefix(text, "ready") {
		t.Errorf("after the first sweep: %s", text)
	}
}

func pauseBy(name string) locksteward.Pause { return locksteward.Pause{By: name} }
