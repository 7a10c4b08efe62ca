package agent_test

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap/zaptest"

	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/agent"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// readiness is what /-/ready says.
func (b *bed) readiness() string { return get("http://" + b.agent.MetricsAddr().String() + "/-/ready") }

func isReady(text string) bool { return strings.HasPrefix(text, "ready\n") }

// A replica is ready while it can answer for what it shows: before its first sweeps and
// whatever it takes over, but not while it has no word from the database.
func TestReadinessOfReplicas(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	at, err := url.Parse(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	proxy := testredis.NewProxy(t, filepath.Join(at.Query().Get("host"), ".s.PGSQL."+at.Query().Get("port")))
	srv := testredis.Start(t)
	pipe := srv.Client(t).Pipeline()
	for i := range 4_000 {
		pipe.Set(t.Context(), fmt.Sprintf("user:%d", i), "x", 0)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A lease that a busy machine does not lose: one must keep the target, and two be ready all the time.
	text := "cluster: {lease: 5s}\ntargets: [{name: main, url: '" + srv.URL() + "', schedule: '@every 1s', pace: {idle: 2%, busy: 2%}, watch: off}]\n" + orders
	const swept, leads, follows = `locksteward_sweep_complete{target="main"}`, `locksteward_leader{target="main"} 1`, `locksteward_leader{target="main"} 0`

	one := newBedOn(t, text, "postgres://postgres@"+proxy.Addr()+"/postgres?sslmode=disable")
	testredis.Eventually(t, within, func() bool {
		text := one.readiness()
		if text == "ready\n" && !strings.Contains(one.metrics(), swept) {
			t.Fatal("nothing is said of the first sweep before it ended")
		}
		return isReady(text) && strings.Contains(text, "first sweep")
	}, "not ready during the first sweep")
	one.awaitMetric(swept)
	one.awaitMetric(leads)
	two := newBedOn(t, text, server.DSN())
	testredis.Eventually(t, within, func() bool { return two.readiness() == "ready\n" }, "a replica without targets is not ready")
	if strings.Contains(two.metrics(), leads) {
		t.Fatal("it has the target: nothing was shown")
	}

	// One is cut off: it gets no requests, and the other one does all the time.
	proxy.Freeze(true)
	noted := false
	testredis.Eventually(t, within, func() bool {
		text := two.readiness()
		if !isReady(text) {
			t.Fatalf("a replica that takes over is taken away: %s", text)
		}
		noted = noted || strings.Contains(text, `target "main": its first sweep is under way: `)
		return strings.Contains(two.metrics(), swept)
	}, "nobody takes over")
	if !noted {
		t.Error("nothing was said of the first sweep")
	}
	if text := one.readiness(); !strings.HasPrefix(text, "not ready:\nthe database has not answered for ") {
		t.Errorf("a replica that was cut off and replaced: %s", text)
	}
	if text := one.metrics(); !strings.Contains(text, follows) {
		t.Error("a replica that was cut off and replaced says that the target is its own")
	}
	proxy.Freeze(false)
	testredis.Eventually(t, within, func() bool { return one.readiness() == "ready\n" }, "not ready with the database back")

	// The database is away for all.
	server.Pause()
	for _, b := range []*bed{one, two} {
		testredis.Eventually(t, within, func() bool {
			return strings.HasPrefix(b.readiness(), "not ready:\nthe database has not answered for ") && len(b.leads()) == 0
		}, "ready, or at work, without a word from the database")
	}
	server.Resume()
	for _, b := range []*bed{one, two} {
		testredis.Eventually(t, within, func() bool { return isReady(b.readiness()) }, "not ready with the database back")
	}
	testredis.Eventually(t, within, func() bool { return len(one.leads())+len(two.leads()) == 1 }, "nobody works on the target, or both")
}

// A replica that has not asked yet does not know what it is to do.
func TestReplicaIsNotReadyBeforeItKnowsItsDuties(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	b := layBed(t, target(srv.URL())+orders, testpg.Database(t))
	cfg, err := config.Load(b.file)
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(t.Context(), zaptest.NewLogger(t), cfg, agent.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	if got := a.Ready(); got.Waits == nil || !strings.Contains(got.Waits.Error(), "not joined the cluster yet") {
		t.Errorf("ready before it asked: %+v", got)
	}
}
