package agent_test

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testam"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// A broken lock is an alert in Alertmanager for as long as it is broken: past the
// time after which Alertmanager forgets, and over restarts of both sides.
func TestAlertmanagerFollowsTheAgent(t *testing.T) {
	t.Parallel()
	am := testam.Start(t, testam.Options{})
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	set(t, rdb, "lock:order:1", token, 0)
	b := newBed(t, target(srv.URL())+orders+`
alert:
  drain_timeout: 500ms
  first_sweep: fire
  grouping: {wait: 0s, interval: 0s}
  receivers:
    - {name: am, kind: alertmanager, url: '`+am.URL()+`', allow_private: true, resend: 1s, resolve_after: 4s}
`)
	alerts := func() []testam.Alert { return am.Alerts("alertname", "LockstewardTtlNone", "key", "lock:order:1") }
	stands := func(why string) testam.Alert {
		t.Helper()
		testredis.Eventually(t, within, func() bool { return len(alerts()) == 1 }, why)
		return alerts()[0]
	}
	first := stands("the alert does not come")
	if first.Labels["class"] != "orders" || first.Labels["team"] != "checkout" || first.Labels["target"] != "main" || first.Annotations["remedy"] == "" {
		t.Errorf("got %+v", first)
	}
	testredis.Eventually(t, within, func() bool { l := alerts(); return len(l) == 1 && l[0].EndsAt.After(first.EndsAt.Add(4*time.Second)) }, "the alert is not reported again")
	am.Restart()
	stands("the alert does not come back after a restart of Alertmanager")

	// While no agent runs the alert ends; the next one tells it again.
	b.stop()
	testredis.Eventually(t, within, func() bool { return len(alerts()) == 0 }, "the alert outlives the agent")
	b.start()
	if again := stands("the alert does not come back after a restart of the agent"); !again.StartsAt.Equal(first.StartsAt) {
		t.Errorf("it began at %s, before at %s", again.StartsAt, first.StartsAt)
	}
	rdb.Del(t.Context(), "lock:order:1")
	testredis.Eventually(t, within, func() bool { return len(alerts()) == 0 }, "the alert does not end")
	b.awaitMetric(`locksteward_notifications_queue_length{receiver="am"} 0`)
}
