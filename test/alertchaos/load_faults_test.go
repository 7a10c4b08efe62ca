package alertchaos_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

// SIGTERM while ten thousand messages (2,000 under the race detector) wait for a
// receiver that hardly takes any: the agent sends for its time and no longer, ends well, and every message is there
// still, sent or waiting.
// fault: 83
func TestStopWithManyWaiting(t *testing.T) {
	t.Parallel()
	waiting := 10_000
	if raced {
		waiting = 2000
	}
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-time.After(100 * time.Millisecond):
		}
	}))
	t.Cleanup(slow.Close)
	s := newStage(t, "", `classes: [{class: orders, match: ["lock:order:*"]}]`,
		"alert: {drain_timeout: 3s, receivers: [{name: ops, kind: webhook, url: '"+slow.URL+"', allow_private: true}]}")
	box, err := store.Open(t.Context(), "sqlite:"+s.db)
	if err != nil {
		t.Fatal(err)
	}
	var messages []locksteward.Notification
	for i := range waiting {
		messages = append(messages, locksteward.Notification{
			ID: fmt.Sprint("msg_", i), Receiver: "ops", Ordering: fmt.Sprint("group ", i), EventID: fmt.Sprint("event-", i), Target: "main",
			Body: fmt.Appendf(nil, `{"version":"1","type":"findings.firing","id":"msg_%d","seq":%d,"status":"firing","findings":[{"event_id":"event-%d","status":"firing"}]}`, i, i+1, i),
		})
	}
	if err := box.SaveFindings(t.Context(), "main", nil, store.Outgoing{Notifications: messages}); err != nil {
		t.Fatal(err)
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	agent := s.agent()
	agent.Start()
	agent.Signal(syscall.SIGTERM)
	began := time.Now()
	select {
	case <-agent.Done():
	case <-time.After(within):
		t.Fatal("the agent does not end")
	}
	took := time.Since(began)
	if code := agent.ExitCode(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	if took > 13*time.Second {
		t.Errorf("it ended after %s, 3 s of sending are allowed", took)
	}
	box, err = store.Open(t.Context(), "sqlite:"+s.db)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	count := func(state locksteward.NotificationState) int {
		list, err := box.Notifications(t.Context(), store.NotificationQuery{State: state, Limit: 2 * waiting})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, m := range list {
			if strings.HasPrefix(m.ID, "msg_") {
				n++
			}
		}
		return n
	}
	sent, kept := count(locksteward.NotificationDelivered), count(locksteward.NotificationWaiting)
	t.Logf("%d sent and %d kept, ended after %s", sent, kept, took.Round(time.Millisecond))
	if sent+kept != waiting || kept == 0 {
		t.Errorf("%d sent and %d kept of %d", sent, kept, waiting)
	}
	claimed, err := box.Claim(t.Context(), "ops", time.Minute, 50)
	if err != nil || len(claimed) != 50 {
		t.Errorf("the next agent can send %d of 50 at once, %v", len(claimed), err)
	}
}

// Ten thousand locks (1,500 under the race detector) break at once under a memory limit of 256 MiB: machines are reported
// of each, people in a few messages that say how many they leave out, and what is
// listed and left out adds up.
// fault: 84
func TestTenTimesTheAlerts(t *testing.T) {
	t.Parallel()
	broken := 10_000
	if raced {
		broken = 1500
	}
	machine, people := newCounter(t), newCounter(t)
	s := newStage(t, "", `classes: [{class: orders, match: ["lock:order:*"]}]`, `alert:
  first_sweep: fire
  grouping: {by: [target, class, rule], wait: 0s, interval: 5s}
  receivers:
    - {name: machine, kind: webhook, url: '`+machine.url+`', allow_private: true}
    - {name: people, kind: slack, url: '`+people.url+`', allow_private: true}`)
	s.fill(broken)
	agent := s.agent("GOMEMLIMIT=256MiB")
	agent.Start()
	peak := 0.0
	testredis.Eventually(t, within, func() bool {
		peak = max(peak, metric(agent, "go_memstats_heap_inuse_bytes", ""))
		_, listed, _ := machine.reported()
		return listed >= broken && metric(agent, "locksteward_notifications_queue_length", "") == 0 && people.total() > 0
	}, "not all is reported")
	// That a group of theirs is still to be sent is in no queue, and what a message leaves out is counted beside sending it.
	testredis.Eventually(t, within, func() bool {
		return int(metric(agent, "locksteward_notifications_omitted_total", "people")) >= broken/2
	}, "people are notified of too little")
	requests, listed, omitted := machine.reported()
	n := people.total()
	left := metric(agent, "locksteward_notifications_omitted_total", "people")
	t.Logf("machine: %d messages; people: %d messages, %v left out; heap at most %.0f MiB", requests, n, left, peak/(1<<20))
	if listed != broken || omitted != 0 || len(machine.fires) != broken {
		t.Errorf("the machine was notified of %d and %d, of %d keys; want all", listed, omitted, len(machine.fires))
	}
	if n > 20 || int(left) < broken/2 {
		t.Errorf("people got %d messages, %v were left out", n, left)
	}
	if peak <= 0 || peak > 256<<20 {
		t.Errorf("the heap was %.0f MiB", peak/(1<<20))
	}
	if !agent.Kill() {
		t.Error("the agent ended by itself")
	}
}
