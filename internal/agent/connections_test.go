package agent_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/doctor"
)

// TestConnectionsAreAsForecast: an agent that sweeps, watches, is asked by many and
// carries out one release after the other has no more connections to a server than
// `locksteward doctor` says, and not far less.
func TestConnectionsAreAsForecast(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	for i := range 200 {
		set(t, rdb, fmt.Sprintf("lock:order:%d", i), token, time.Hour)
	}
	f := doctor.Examine(t.Context(), doctor.Options{Target: "main", Connect: connect.Config{URL: srv.URL()}}).Forecast
	if f == nil {
		t.Fatal("no forecast")
	}
	b := newBed(t, target(srv.URL())+orders)
	b.awaitMetric(`locksteward_watch_mode{mode="tracking",target="main"} 1`)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 20 {
				key := fmt.Sprintf("lock:order:%d", worker*20+i)
				if _, err := b.ana.Lock(t.Context(), "main", nil, key, ""); err != nil {
					t.Error(err)
				}
				if worker > 0 || i%4 > 0 {
					continue // one of them releases
				}
				r, err := b.ana.CreateRequest(t.Context(), ask(key))
				if err == nil {
					_, err = b.bo.Approve(t.Context(), r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { defer close(done); group.Wait() }()
	most, list := 0, ""
	for working := true; working; {
		select {
		case <-done:
			working = false
		default:
		}
		now := rdb.ClientList(t.Context()).Val()
		if n := strings.Count(now, " name=locksteward"); n > most {
			most, list = n, now
		}
	}
	t.Logf("at most %d connections, forecast %d", most, f.ConnectionsPerMaster)
	if most > f.ConnectionsPerMaster || 2*most < f.ConnectionsPerMaster {
		t.Errorf("%d connections, the forecast says %d:\n%s", most, f.ConnectionsPerMaster, list)
	}
}
