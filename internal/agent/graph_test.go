package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

// TestGraphShowsWhoWaits: two sessions in a deadlock and a third one that waits for
// it are reported apart, with the round and its victim; a lock that only counts its
// waiters is there with their number.
func TestGraphShowsWhoWaits(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	client, err := lock.New(rdb, lock.Options{App: "checkout", Host: "app-7"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	lease := lock.Lease{TTL: time.Minute}
	left, right := lock.WithSession(ctx), lock.WithSession(ctx)
	for key, session := range map[string]context.Context{"lock:order:1": left, "lock:order:2": right} {
		if _, err := client.Acquire(session, key, lease); err != nil {
			t.Fatal(err)
		}
	}
	waits := make(chan error, 3)
	for _, w := range []struct {
		session context.Context
		key     string
	}{{left, "lock:order:2"}, {right, "lock:order:1"}, {lock.WithSession(ctx), "lock:order:1"}} {
		go func() {
			_, err := client.Acquire(w.session, w.key, lease)
			waits <- err
		}()
	}
	t.Cleanup(func() {
		stop()
		for range 3 {
			if err := <-waits; err == nil {
				t.Error("one of a deadlock got its lock")
			}
		}
		_ = client.Close() // the server may be gone
	})

	b := newBed(t, target(srv.URL())+orders)
	var g api.Graph
	testredis.Eventually(t, within, func() bool {
		var err error
		g, err = b.ana.Graph(t.Context(), "main")
		// The third one may begin to wait after the first two were seen.
		return err == nil && len(g.Cycles) == 1 && g.Cycles[0].Proven && len(g.Edges) == 5
	}, "the deadlock is not seen, or not who waits for it")
	raw, err := json.MarshalIndent(g, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	cycle := g.Cycles[0]
	if len(cycle.Nodes) != 4 || !slices.Contains(cycle.Nodes, cycle.Victim) || !slices.Contains(cycle.Nodes, "lock main/0/lock:order:1") {
		t.Errorf("cycle %+v", cycle)
	}
	kinds, edges := map[string]int{}, map[string]int{}
	for _, n := range g.Nodes {
		kinds[n.Kind]++
		switch {
		case n.Lock != nil && (!n.Lock.Held || n.Lock.Class != "orders"):
			t.Errorf("lock %+v", n.Lock)
		case n.Session != nil && n.ID == cycle.Victim && (n.Session.Holder.App != "checkout" || n.Session.Holder.Host != "app-7"):
			t.Errorf("session %+v", n.Session)
		}
	}
	for _, e := range g.Edges {
		edges[fmt.Sprintf("%s %v", e.Kind, e.Cycle)]++
		if !slices.ContainsFunc(g.Nodes, func(n api.GraphNode) bool { return n.ID == e.From && n.Session != nil }) ||
			!slices.ContainsFunc(g.Nodes, func(n api.GraphNode) bool { return n.ID == e.To && n.Lock != nil }) {
			t.Errorf("edge %+v leads from or to nothing", e)
		}
	}
	if kinds["lock"] != 2 || kinds["session"] != 3 || edges["holds true"] != 2 || edges["waits-for true"] != 2 || edges["waits-for false"] != 1 || len(edges) != 3 {
		t.Errorf("nodes %v, edges %v:\n%s", kinds, edges, raw)
	}
	if all, err := b.ana.Graph(t.Context(), ""); err != nil || len(all.Nodes) != 5 || all.Target != "" {
		t.Errorf("of all targets: %+v, %v", all, err)
	}
	if _, err := b.ana.Graph(t.Context(), "nowhere"); err == nil {
		t.Error("there is a graph of no target")
	}
}
