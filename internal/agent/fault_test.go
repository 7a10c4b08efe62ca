package agent_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

// TestTargetFaultIsReported: a request on a Redis that is away says so.
func TestTargetFaultIsReported(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	set(t, srv.Client(t), "lock:order:1", token, time.Hour)
	b := newBed(t, target(srv.URL())+orders)
	b.awaitMetric(`locksteward_locks{class="orders",library="token",target="main"} 1`)
	srv.Kill()
	_, err := b.ana.CreateRequest(t.Context(), api.CreateRequest{Target: "main", Key: api.NewKey("lock:order:1"), Reason: "stuck"})
	if p, ok := errors.AsType[*api.Problem](err); !ok || p.Code != api.CodeUnavailable || !strings.Contains(p.Detail, "main") || !strings.Contains(p.Detail, "refused") {
		t.Errorf("request: %v", err)
	}
	_, err = b.ana.Lock(t.Context(), "main", nil, "lock:order:1", "en")
	if p, ok := errors.AsType[*api.Problem](err); !ok || p.Code != api.CodeUnavailable {
		t.Errorf("lock: %v", err)
	}
}

// TestUnsettledReleasesDoNotKeepTheServersWaiting: health checks that get no
// answer end an agent before it can settle anything.
func TestUnsettledReleasesDoNotKeepTheServersWaiting(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	b := newBed(t, target(srv.URL())+orders)
	b.stop()
	st, err := store.Open(t.Context(), "sqlite:"+filepath.Join(b.dir, "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	for i := range 4 {
		err := st.CreateRequest(t.Context(), locksteward.Request{
			ID: fmt.Sprintf("r-%d", i), State: locksteward.RequestExecuting, Requester: "ana", Reason: "stuck", CreatedAt: now,
			ExpiresAt: now.Add(time.Hour), ApprovedUntil: now.Add(time.Minute),
			Evidence: locksteward.Evidence{Target: "main", Key: fmt.Sprintf("lock:order:%d", i), Class: "orders", Library: "token", Type: "string"},
		}, []locksteward.Entry{{At: now, Actor: "ana", Action: "release.request"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	srv.Pause() // accepts connections and answers nothing: each question takes seconds
	began := time.Now()
	b.start()
	if got := get("http://" + b.agent.MetricsAddr().String() + "/-/healthy"); !strings.Contains(got, "ok") {
		t.Errorf("healthy: %q", got)
	}
	if list, err := b.ana.Requests(t.Context(), apiclient.RequestsQuery{State: "executing"}); err != nil || len(list.Requests) != 4 {
		t.Errorf("requests: %+v, %v", list, err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the first answers took %s", took)
	}
	srv.Resume()
	testredis.Eventually(t, within, func() bool {
		list, err := b.ana.Requests(t.Context(), apiclient.RequestsQuery{State: "unknown"})
		return err == nil && len(list.Requests) == 4
	}, "the requests are not settled when the server answers again")
}

// TestReloadKeepsWhatWaits: alerts wait for a receiver that is down, and the
// agent is informed to reload meanwhile.
func TestReloadKeepsWhatWaits(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	set(t, rdb, "lock:order:1", token, 0)
	var well atomic.Bool
	var tries atomic.Int32
	var mu sync.Mutex
	var got []string
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		tries.Add(1)
		if err != nil || !well.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, string(raw))
	}))
	t.Cleanup(hook.Close)
	b := newBed(t, target(srv.URL())+orders+
		"alert: {drain_timeout: 100ms, first_sweep: fire, grouping: {by: [fingerprint], wait: 0s, interval: 0s}, receivers: [{name: ops, kind: webhook, url: '"+hook.URL+"', allow_private: true}]}")
	testredis.Eventually(t, within, func() bool { return tries.Load() > 0 }, "no attempt to tell")
	if err := b.agent.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	well.Store(true)
	testredis.Eventually(t, within, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(got) > 0
	}, "the alert that waited was lost by the reload")
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(got[0], `"status":"firing"`) || !strings.Contains(got[0], "ttl/none") {
		t.Errorf("reported %s", got[0])
	}
}
