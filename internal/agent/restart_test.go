package agent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

// What the store knows is shown from the start on, though no sweep ends: the findings of
// the last run, and that those on a hold that was released just before it was killed are
// over.
func TestRestartShowsWhatTheStoreKnows(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	set(t, rdb, "lock:order:1", token, 0)
	set(t, rdb, "lock:order:2", token, 0)
	b := newBed(t, target(srv.URL())+orders)
	const series = `locksteward_findings{class="orders",risk="deadlock",rule="ttl/none",severity="critical",target="main"} `
	b.awaitMetric(series + "2")
	r, err := b.ana.CreateRequest(t.Context(), api.CreateRequest{Target: "main", Key: api.NewKey("lock:order:1"), Reason: "pod gone"})
	if err != nil {
		t.Fatal(err)
	}
	stored := func(fn func(st *store.Store)) {
		st, err := store.Open(t.Context(), b.dsn)
		if err != nil {
			t.Fatal(err)
		}
		fn(st)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	b.stop()
	var before []locksteward.Finding
	stored(func(st *store.Store) {
		if before, err = st.LoadFindings(t.Context(), "main"); err != nil || len(before) < 2 {
			t.Fatalf("findings %+v, %v", before, err)
		}
	})
	b.start()
	if _, err := b.bo.Approve(t.Context(), r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash}); err != nil {
		t.Fatal(err)
	}
	b.stop()
	// As if it had been killed before it read the lock again.
	stored(func(st *store.Store) {
		if err := st.SaveFindings(t.Context(), "main", slices.Values(before)); err != nil {
			t.Fatal(err)
		}
	})

	srv.Pause()
	t.Cleanup(srv.Resume)
	b.start()
	b.awaitMetric(series + "1")
	if text := b.readiness(); !strings.HasPrefix(text, "ready\ntarget \"main\": its first sweep ") {
		t.Errorf("/-/ready: %s", text)
	}
	for _, e := range b.logs.All() {
		if strings.HasPrefix(e.Message, "target is ") || e.Message == "sweep ended" {
			t.Errorf("a sweep ended first: %s", e.Message)
		}
	}
	testredis.Eventually(t, within, func() bool {
		list, err := b.ana.Findings(t.Context(), apiclient.FindingsQuery{Rule: "ttl/none"})
		return err == nil && len(list.Findings) == 1 && list.Findings[0].Key.Key == "lock:order:2"
	}, "the finding on the lock that was released is not over, or the other one is")
}
