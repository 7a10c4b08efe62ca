package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// TestWatchTellsBetweenSweeps has sweeps an hour apart: all that people hear after
// the first one comes from the watch.
func TestWatchTellsBetweenSweeps(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	hook := newSink(t)
	b := newBed(t, `
targets:
  - {name: main, url: "`+srv.URL()+`", schedule: "@every 1h"}
classes:
  - {class: orders, match: ["lock:order:*"], expect: 1500ms}
alert:
  first_sweep: fire
  grouping: {by: [fingerprint], wait: 0s, interval: 0s}
  receivers: [{name: hook, kind: webhook, url: "`+hook.url+`", allow_private: true}]
`)
	b.awaitMetric(`locksteward_sweep_complete{target="main"} 1`)
	b.awaitMetric(`locksteward_watch_mode{mode="tracking",target="main"} 1`)
	b.awaitMetric(`locksteward_class_watched{class="orders",target="main"} 1`)
	b.awaitMetric(`locksteward_class_watched{class="default",target="main"} 0`)
	b.awaitMetric(`locksteward_watch_missed_total{target="main"} 0`)

	// ttl/none waits for a second look, hold/too-long for time alone to pass and
	// then for its own for: nobody writes to the keys meanwhile.
	began := time.Now()
	if err := c.SetNX(t.Context(), "lock:order:1", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.Set(t.Context(), "lock:order:2", "3f0e2f1c-8a53-4f30-9f53-2f7f4a1f9a11", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	awaitMessage(t, hook, "ttl/none", "lock:order:1", "firing")
	awaitMessage(t, hook, "hold/too-long", "lock:order:2", "firing")
	t.Logf("both reported after %s", time.Since(began))
	b.awaitMetric(`locksteward_findings{class="orders",risk="deadlock",rule="ttl/none",severity="critical",target="main"} 1`)

	if err := c.Del(t.Context(), "lock:order:1", "lock:order:2").Err(); err != nil {
		t.Fatal(err)
	}
	awaitMessage(t, hook, "ttl/none", "lock:order:1", "resolved")
	awaitMessage(t, hook, "hold/too-long", "lock:order:2", "resolved")
	b.awaitMetric(`locksteward_lock_acquires_total{class="orders",target="main"} 2`)
	if text := b.metrics(); strings.Contains(text, "locksteward_findings{") {
		b.awaitNoMetric(`locksteward_findings{`)
	}
	// A restart of the agent knows what was reported: nothing fires again.
	reported := len(hook.got())
	b.stop()
	b.start()
	b.awaitMetric(`locksteward_sweep_complete{target="main"} 1`)
	if got := hook.got()[reported:]; len(got) != 0 {
		t.Errorf("reported again after a restart: %s", got)
	}
}

func (b *bed) awaitNoMetric(text string) {
	b.t.Helper()
	testredis.Eventually(b.t, within, func() bool { return !strings.Contains(b.metrics(), text) }, "still there: "+text)
}

// awaitMessage waits for a notification that has all of texts.
func awaitMessage(t *testing.T, s *sink, texts ...string) {
	t.Helper()
	testredis.Eventually(t, within, func() bool {
	next:
		for _, body := range s.got() {
			for _, text := range texts {
				if !strings.Contains(body, text) {
					continue next
				}
			}
			return true
		}
		return false
	}, "no notification with "+strings.Join(texts, ", "))
}

// TestWatchOff asks the server for nothing, and says so.
func TestWatchOff(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	b := newBed(t, `
targets:
  - {name: main, url: "`+srv.URL()+`", schedule: "@every 1s", watch: "off"}
`)
	b.awaitMetric(`locksteward_watch_mode{mode="sweep",target="main"} 1`)
	if err := srv.Client(t).Set(t.Context(), "lock:a", "tok", 0).Err(); err != nil {
		t.Fatal(err)
	}
	b.awaitMetric(`locksteward_locks{class="default",library="token",target="main"} 1`)
	info, err := srv.Client(t).Info(t.Context(), "clients").Result()
	if err != nil || !strings.Contains(info, "tracking_clients:0") {
		t.Errorf("somebody tracks: %v %s", err, info)
	}
}
