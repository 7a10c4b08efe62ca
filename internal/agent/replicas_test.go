package agent_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

// leads are the targets that a bed's agent says it works on.
func (b *bed) leads() []string {
	var out []string
	for line := range strings.Lines(b.metrics()) {
		if name, ok := strings.CutPrefix(line, `locksteward_leader{target="`); ok {
			if name, one, _ := strings.Cut(name, `"`); strings.TrimSpace(one) == "} 1" {
				out = append(out, name)
			}
		}
	}
	return out
}

// beds are replicas on one database, with the same people and configuration.
func newBeds(t *testing.T, n int, text, dsn string) []*bed {
	t.Helper()
	first := layBed(t, text, dsn)
	out := []*bed{first}
	for len(out) < n {
		b := &bed{t: t, dir: first.dir, dsn: dsn, tokens: maps.Clone(first.tokens), file: first.file}
		out = append(out, b)
	}
	for _, b := range out {
		b.start()
	}
	return out
}

// share waits until the beds work on all targets, none on more than its share, and
// returns who has which. The singleton duties are one duty like a target: their owner may have no
// target.
func share(t *testing.T, beds []*bed, targets []string) map[string]*bed {
	t.Helper()
	var has map[string]*bed
	most := (len(targets) + len(beds)) / len(beds) // of the targets and the singleton duties, rounded up
	testredis.Eventually(t, within, func() bool {
		has = map[string]*bed{}
		for _, b := range beds {
			own := b.leads()
			if len(own) > most {
				return false
			}
			for _, name := range own {
				if has[name] != nil {
					return false // it moved between two scrapes
				}
				has[name] = b
			}
		}
		return len(has) == len(targets)
	}, "the targets are not shared")
	return has
}

func TestReplicasShareTargets(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	one, two := testredis.Start(t), testredis.Start(t)
	e := newEar(t)
	targets := []string{"a", "b", "c", "d"}
	// A lease that a busy machine does not lose: the targets must stay where they are.
	text := fmt.Sprintf("cluster: {lease: 3s}\ntargets: [%s]\n", strings.Join([]string{
		replicaTarget("a", one, 0), replicaTarget("b", one, 1), replicaTarget("c", two, 0), replicaTarget("d", two, 1),
	}, ", ")) + orders + receivers("ops", e.url)
	beds := newBeds(t, 3, text, server.DSN())
	has := share(t, beds, targets)
	for i, srv := range []*testredis.Server{one, one, two, two} {
		rdb := srv.Client(t)
		if err := rdb.Conn().Select(t.Context(), 0).Err(); err != nil {
			t.Fatal(err)
		}
		c := rdb.Conn()
		defer c.Close()
		if err := c.Select(t.Context(), i%2).Err(); err != nil {
			t.Fatal(err)
		}
		if err := c.Set(t.Context(), "lock:order:1", token, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	// Every replica shows everything.
	for i, b := range beds {
		testredis.Eventually(t, within, func() bool {
			found, err := b.ana.Findings(t.Context(), apiclient.FindingsQuery{})
			if err != nil {
				return false
			}
			on := map[string]bool{}
			for _, f := range found.Findings {
				if f.Rule == "ttl/none" && f.Status == "firing" {
					on[f.Target] = true
				}
			}
			return len(on) == len(targets)
		}, fmt.Sprintf("replica %d does not show all findings", i))
		testredis.Eventually(t, within, func() bool {
			list, err := b.ana.Locks(t.Context(), apiclient.LocksQuery{})
			return err == nil && list.Total == len(targets)
		}, fmt.Sprintf("replica %d does not list all locks", i))
		testredis.Eventually(t, within, func() bool {
			list, err := b.ana.Targets(t.Context())
			return err == nil && len(list.Targets) == len(targets) && !slices.ContainsFunc(list.Targets, func(t api.Target) bool { return !t.Up || t.Replica == "" })
		}, fmt.Sprintf("replica %d does not know how the targets are", i))
		for _, name := range targets {
			l, err := b.ana.Lock(t.Context(), name, nil, "lock:order:1", "")
			if err != nil || l.TTLMs != -1 || len(l.Verdicts) == 0 {
				t.Errorf("replica %d: lock of %s: %+v, %v", i, name, l, err)
			}
		}
	}
	// Pages of one lock each give every lock once, in order.
	var seen []string
	for after := ""; ; {
		list, err := beds[0].ana.Locks(t.Context(), apiclient.LocksQuery{Limit: 1, Cursor: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range list.Locks {
			seen = append(seen, l.Target)
		}
		if after = list.Next; after == "" {
			break
		}
	}
	if !slices.Equal(seen, targets) {
		t.Errorf("page by page: %v", seen)
	}
	// Anybody asks, anybody approves, who has the target releases.
	for i, name := range targets {
		asked, decided := beds[i%3], beds[(i+1)%3]
		r, err := asked.ana.CreateRequest(t.Context(), api.CreateRequest{Target: name, Key: api.NewKey("lock:order:1"), Reason: "stuck"})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r, err = decided.bo.Approve(t.Context(), r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash}); err != nil || r.State != string(locksteward.RequestReleased) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	// A refusal is a refusal from afar too.
	for _, b := range beds {
		if _, err := b.ana.CreateRequest(t.Context(), api.CreateRequest{Target: "a", Key: api.NewKey("lock:order:none"), Reason: "stuck"}); !isProblem(err, api.CodeNotFound) {
			t.Errorf("request of what is not there: %v", err)
		}
	}
	// All of it was reported, once: a fire and an end for each, four messages for each request.
	testredis.Eventually(t, within, func() bool {
		fires, ends := map[string]int{}, map[string]int{}
		for _, h := range e.of("") {
			for _, f := range h.Findings {
				switch {
				case f.Rule != "ttl/none":
				case f.Status == "firing":
					fires[f.Target]++
				case f.Status == "resolved":
					ends[f.Target]++
				}
			}
		}
		return len(fires) == len(targets) && len(ends) == len(targets)
	}, "not all of it was reported")
	// One ends in order: the others have its targets at once.
	gone := has["a"]
	began := time.Now()
	gone.stop()
	rest := slices.DeleteFunc(slices.Clone(beds), func(b *bed) bool { return b == gone })
	share(t, rest, targets)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("a replica that ended in order was missed for %s", took)
	}
	for _, b := range rest {
		b.awaitMetric("locksteward_replicas 2")
		if _, err := b.ana.Lock(t.Context(), "a", nil, "lock:order:1", ""); !isProblem(err, api.CodeNotFound) {
			t.Errorf("a lock that was released: %v", err)
		}
	}
}

func replicaTarget(name string, srv *testredis.Server, db int) string {
	return fmt.Sprintf("{name: %s, url: '%s', schedule: '@every 1s', release_credentials: {}}", name, strings.TrimSuffix(srv.URL(), "/0")+fmt.Sprintf("/%d", db))
}

func isProblem(err error, code api.Code) bool {
	p := api.ProblemFor(err)
	return err != nil && p.Code == code
}

// A duty that somebody else took while this replica could not say that it is there is
// dropped without a word: it is the other's to tell.
func TestReplicaThatWasReplaced(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	srv := testredis.Start(t)
	b := newBedOn(t, target(srv.URL())+orders+"cluster: {lease: 1s}\n", server.DSN())
	set(t, srv.Client(t), "lock:order:1", token, 0)
	b.awaitMetric(`locksteward_findings{class="orders",risk="deadlock",rule="ttl/none",severity="critical",target="main"} 1`)
	st, err := store.Open(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	ctx := context.WithoutCancel(t.Context())
	testredis.Eventually(t, within, func() bool {
		leases, err := st.Leases(ctx) // the replica may have taken it again
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range leases {
			if l.Target == "main" {
				if err := st.ReleaseLease(ctx, l); err != nil {
					t.Fatal(err)
				}
			}
		}
		_, err = st.AcquireLease(ctx, "main", "other", "127.0.0.1:1", time.Minute)
		return err == nil
	}, "the lease cannot be taken")
	testredis.Eventually(t, within, func() bool { return len(b.leads()) == 0 && strings.Contains(logText(b), "another replica took over") }, "it goes on")
	// That other one is not there. People still get in, and hear of it.
	testredis.Eventually(t, within, func() bool { return b.readiness() == "ready\ntarget \"main\": no replica works on it at this moment\n" },
		"/-/ready does not say that the target is nobody's")
	if text := b.metrics(); strings.Contains(text, `locksteward_locks{`) {
		t.Error("metrics report a target that another replica has")
	}
	if found, err := st.LoadFindings(ctx, "main"); err != nil || len(found) == 0 {
		t.Errorf("the findings are gone: %v, %v", found, err)
	}
}
