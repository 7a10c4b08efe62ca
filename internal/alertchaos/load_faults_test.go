package alertchaos_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/faults"
	"github.com/locksteward/locksteward/store"
)

// child runs an agent as the test binary does.
func (s *stage) child(env ...string) *process {
	s.tb.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(append(os.Environ(), childEnv+"="+s.file), env...)
	p := begin(s.tb, cmd, s.log)
	s.tb.Cleanup(func() { p.kill() })
	return p
}

// SIGTERM while ten thousand messages (2,000 under the race detector) wait for a
// receiver that hardly takes any: the agent sends for its time and no longer, ends well, and every message is there
// still, sent or waiting.
func TestStopWithManyWaiting(t *testing.T) {
	t.Parallel()
	faults.Covers(t, 83)
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
	s := newStage(t, `classes: [{class: orders, match: ["lock:order:*"]}]`,
		"alert: {drain_timeout: 3s, receivers: [{name: ops, webhook: {url: '"+slow.URL+"', allow_private: true}}]}")
	box, err := store.Open(t.Context(), "sqlite:"+s.db)
	if err != nil {
		t.Fatal(err)
	}
	var messages []store.Message
	for i := range waiting {
		messages = append(messages, store.Message{
			ID: fmt.Sprint("msg_", i), Receiver: "ops", Ordering: fmt.Sprint("group ", i), EventID: fmt.Sprint("event-", i), Target: "main",
			Body: fmt.Appendf(nil, `{"version":"1","type":"findings.firing","id":"msg_%d","seq":%d,"status":"firing","findings":[{"event_id":"event-%d","status":"firing"}]}`, i, i+1, i),
		})
	}
	if err := box.SaveFindings(t.Context(), "main", nil, store.Telling{Messages: messages}); err != nil {
		t.Fatal(err)
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	agent := s.child()
	s.await(within, "the agent does not start", func() bool {
		select {
		case <-agent.up:
			return true
		default:
			return false
		}
	})
	if err := agent.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	select {
	case <-agent.done:
	case <-time.After(within):
		t.Fatal("the agent does not end")
	}
	took := time.Since(began)
	if code := agent.cmd.ProcessState.ExitCode(); code != 0 {
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
	count := func(state store.MessageState) int {
		list, err := box.Messages(t.Context(), store.MessageQuery{State: state, Limit: 2 * waiting})
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
	sent, kept := count(store.MessageDelivered), count(store.MessageWaiting)
	t.Logf("%d sent and %d kept, ended after %s", sent, kept, took.Round(time.Millisecond))
	if sent+kept != waiting || kept == 0 {
		t.Errorf("%d sent and %d kept of %d", sent, kept, waiting)
	}
	claimed, err := box.Claim(t.Context(), "ops", time.Minute, 50)
	if err != nil || len(claimed) != 50 {
		t.Errorf("the next agent can send %d of 50 at once, %v", len(claimed), err)
	}
}

// gauge is a metric without labels.
func gauge(addr, name string) float64 {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: within}
	resp, err := client.Get("http://" + addr + "/metrics")
	if err != nil {
		return -1
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			v, _ := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			return v
		}
	}
	return -1
}

// Ten thousand locks (1,500 under the race detector) break at once under a memory limit of 256 MiB: machines are told
// of each, people in a few messages that say how many they leave out, and what is
// listed and left out adds up.
func TestTenTimesTheAlerts(t *testing.T) {
	t.Parallel()
	faults.Covers(t, 84)
	broken := 10_000
	if raced {
		broken = 1500
	}
	machine, people := newCounter(t), newCounter(t)
	s := newStage(t, `classes: [{class: orders, match: ["lock:order:*"]}]`, `alert:
  first_survey: fire
  grouping: {by: [target, class, rule], wait: 0s, interval: 1s}
  receivers:
    - {name: machine, webhook: {url: '`+machine.url+`', allow_private: true}}
    - {name: people, slack: {url: '`+people.url+`', allow_private: true}}`)
	s.fill(broken)
	agent := s.child("GOMEMLIMIT=256MiB")
	<-agent.up
	peak := 0.0
	s.await(within, "not all is told", func() bool {
		peak = max(peak, gauge(agent.metrics, "go_memstats_heap_inuse_bytes"))
		_, listed, _ := machine.told()
		return listed >= broken && metric(agent.metrics, "locksteward_outbox_depth", "") == 0 && people.total() > 0
	})
	requests, listed, omitted := machine.told()
	n := people.total()
	left := metric(agent.metrics, "locksteward_alerts_omitted_total", "people")
	t.Logf("machine: %d messages; people: %d messages, %v left out; heap at most %.0f MiB", requests, n, left, peak/(1<<20))
	if listed != broken || omitted != 0 || len(machine.fires) != broken {
		t.Errorf("the machine was told of %d and %d, of %d keys; want all", listed, omitted, len(machine.fires))
	}
	if n > 20 || int(left) < broken/2 {
		t.Errorf("people got %d messages, %v were left out", n, left)
	}
	if peak <= 0 || peak > 256<<20 {
		t.Errorf("the heap was %.0f MiB", peak/(1<<20))
	}
	if !agent.kill() {
		t.Error("the agent ended by itself")
	}
}
