package heartbeat

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
)

// senderOf returns a Sender whose receiver answers with a handler, and the status that it reads.
func senderOf(t *testing.T, every time.Duration, answer http.HandlerFunc) (*Sender, *Status, *observer.ObservedLogs) {
	t.Helper()
	srv := httptest.NewServer(answer)
	t.Cleanup(srv.Close)
	core, logs := observer.New(zapcore.InfoLevel)
	status := &Status{Stale: map[string]bool{"a": false, "b": false}, Swept: true, Up: 2}
	h := New(zap.New(core), func(time.Time) Status { return *status }, &shown{}, nil)
	h.id = "me"
	prepared, err := h.Prepare(&alert.Heartbeat{Every: every, Webhook: &alert.Endpoint{URL: locksteward.Secret(srv.URL), AllowPrivate: true}})
	if err != nil {
		t.Fatal(err)
	}
	prepared.Commit()
	t.Cleanup(func() {
		caller, _ := h.current()
		closeCaller(caller)
	})
	return h, status, logs
}

// shown keeps no metrics.
type shown struct{}

func (*shown) SetSweepStale(map[string]bool) {}
func (*shown) SetHeartbeat(time.Time)        {}

func logged(logs *observer.ObservedLogs) []string {
	var out []string
	for _, e := range logs.All() {
		out = append(out, e.Message)
	}
	return out
}

func TestHeartbeatsWhileSweepsAreComplete(t *testing.T) {
	t.Parallel()
	var beats []alert.Beat
	h, p, logs := senderOf(t, time.Minute, func(_ http.ResponseWriter, r *http.Request) {
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
		if h.check(t.Context(), now.Add(after)); len(beats) != want {
			t.Fatalf("%d beats after %s, want %d", len(beats), after, want)
		}
	}
	p.Swept = false
	look(0, 0) // the first sweeps are not over
	p.Swept, p.Oldest = true, now.Add(-3*time.Second)
	look(time.Second, 1)
	look(60*time.Second, 1)
	look(61*time.Second, 2)
	if b := beats[0]; b.Agent != "me" || b.Targets != (alert.BeatTargets{Total: 2, Up: 2}) || b.OldestSweepSeconds != 4 {
		t.Errorf("got %+v", b)
	}
	p.Stale = map[string]bool{"a": false, "b": true}
	for s := 62; s < 600; s++ {
		look(time.Duration(s)*time.Second, 2)
	}
	p.Stale = map[string]bool{"a": false, "b": false}
	look(600*time.Second, 3) // at once
	if got := logged(logs); !slices.Equal(got, []string{"heartbeats stop: complete sweeps are overdue", "heartbeats resume: sweeps are complete again"}) {
		t.Errorf("logged %q", got)
	}
	prepared, err := h.Prepare(nil)
	if err != nil {
		t.Fatal(err)
	}
	prepared.Commit()
	look(700*time.Second, 3) // no heartbeat is configured any more
}

// A heartbeat that failed is not repeated before the next one is due.
func TestAFailedHeartbeatIsNotRepeated(t *testing.T) {
	t.Parallel()
	var calls, fails atomic.Int64
	fails.Store(3)
	h, _, logs := senderOf(t, 10*time.Second, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1); fails.Add(-1) >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	now := time.Now()
	for s := range 60 {
		h.check(t.Context(), now.Add(time.Duration(s)*time.Second))
	}
	if n := calls.Load(); n != 6 {
		t.Errorf("%d attempts in a minute, want 6", n)
	}
	if got := logged(logs); !slices.Equal(got, []string{"a heartbeat failed; the next one is sent when it is due", "heartbeats arrive again"}) {
		t.Errorf("logged %q", got)
	}
}
