package agent

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/exporter"
)

// heartOf is a heart that beats to a server, with targets as a test says.
func heartOf(t *testing.T, every time.Duration, answer http.HandlerFunc) (*heart, *pulse, *observer.ObservedLogs) {
	t.Helper()
	srv := httptest.NewServer(answer)
	t.Cleanup(srv.Close)
	classes, err := class.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := exporter.New(exporter.Config{}, classes, exporter.BuildInfo{})
	if err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zapcore.InfoLevel)
	p := &pulse{stale: map[string]bool{"a": false, "b": false}, whole: true, up: 2}
	h := &heart{log: zap.New(core), show: e, id: "me", pulse: func(time.Time) pulse { return *p }}
	apply, err := h.prepare(alert.Config{Heartbeat: &alert.Heartbeat{Every: every, Webhook: &alert.Webhook{
		Endpoint: alert.Endpoint{URL: locksteward.Secret(srv.URL), Network: alert.Network{AllowPrivate: true}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	apply()
	t.Cleanup(func() { h.caller.Close() })
	return h, p, logs
}

func logged(logs *observer.ObservedLogs) []string {
	var out []string
	for _, e := range logs.All() {
		out = append(out, e.Message)
	}
	return out
}

func TestAHeartBeatsWhileSweepsAreComplete(t *testing.T) {
	t.Parallel()
	var beats []alert.Beat
	h, p, logs := heartOf(t, time.Minute, func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var b alert.Beat
		if err := json.Unmarshal(raw, &b); err != nil || b.ID != r.Header.Get(alert.HeaderID) {
			t.Errorf("%v: %s", err, raw)
		}
		beats = append(beats, b)
	})
	now := time.Now()
	look := func(after time.Duration, want int) {
		t.Helper()
		if h.look(t.Context(), now.Add(after)); len(beats) != want {
			t.Fatalf("%d beats after %s, want %d", len(beats), after, want)
		}
	}
	p.whole = false
	look(0, 0) // the first sweeps are not over
	p.whole, p.oldest = true, now.Add(-3*time.Second)
	look(time.Second, 1)
	look(60*time.Second, 1)
	look(61*time.Second, 2)
	if b := beats[0]; b.Agent != "me" || b.Targets != (alert.BeatTargets{Total: 2, Up: 2}) || b.OldestSweepSeconds != 4 {
		t.Errorf("got %+v", b)
	}
	p.stale = map[string]bool{"a": false, "b": true}
	for s := 62; s < 600; s++ {
		look(time.Duration(s)*time.Second, 2)
	}
	p.stale = map[string]bool{"a": false, "b": false}
	look(600*time.Second, 3) // at once
	if got := logged(logs); !slices.Equal(got, []string{"heartbeats stop: complete sweeps are missing", "heartbeats go on: sweeps are complete again"}) {
		t.Errorf("logged %q", got)
	}
	apply, err := h.prepare(alert.Config{})
	if err != nil {
		t.Fatal(err)
	}
	was := h.caller
	apply()
	look(700*time.Second, 3) // nobody is told any more
	h.caller = was
}

// A beat that does not arrive is not repeated before the next one is due.
func TestAHeartDoesNotRepeat(t *testing.T) {
	t.Parallel()
	var calls, fails atomic.Int64
	fails.Store(3)
	h, _, logs := heartOf(t, 10*time.Second, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1); fails.Add(-1) >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	now := time.Now()
	for s := range 60 {
		h.look(t.Context(), now.Add(time.Duration(s)*time.Second))
	}
	if n := calls.Load(); n != 6 {
		t.Errorf("%d attempts in a minute, want 6", n)
	}
	if got := logged(logs); !slices.Equal(got, []string{"a heartbeat did not arrive; the next one is sent when it is due", "heartbeats arrive again"}) {
		t.Errorf("logged %q", got)
	}
}

func TestSweepsAreMissedByTheirSchedule(t *testing.T) {
	t.Parallel()
	t0 := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	overdue := func(after time.Time) time.Time { return after.Add(time.Minute) }
	var s sweeps
	check := func(after time.Duration, want bool) {
		t.Helper()
		if _, stale := s.at(t0.Add(after), overdue); stale != want {
			t.Errorf("after %s: stale is %t", after, stale)
		}
	}
	check(time.Hour, false) // not watched yet
	s.begin(t0)
	check(time.Minute+sweepSlack, false)
	check(time.Minute+sweepSlack+1, true) // the first one does not end
	whole := locksteward.Sweep{Duration: 10 * time.Second, Masters: []locksteward.MasterPass{{Node: "n", Complete: true}}}
	s.note(whole, t0.Add(time.Hour))
	check(time.Hour+time.Minute+20*time.Second+sweepSlack, false)
	check(time.Hour+time.Minute+20*time.Second+sweepSlack+1, true)
	s.note(locksteward.Sweep{Masters: []locksteward.MasterPass{{Node: "n"}}}, t0.Add(2*time.Hour)) // cut short
	check(2*time.Hour, true)
	if last, stale := s.at(t0.Add(24*time.Hour), func(time.Time) time.Time { return time.Time{} }); stale || !last.Equal(t0.Add(time.Hour)) {
		t.Errorf("without further dates: %s, %t", last, stale)
	}
}
