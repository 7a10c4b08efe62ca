package agent_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/store"
)

// A proposal that takes its time keeps neither verdicts on other locks waiting nor the
// next sweep.
func TestProposalsDoNotKeepVerdictsWaiting(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	b := layBed(t, target(srv.URL())+strings.Replace(orders, "release: approve", "release: approve, dead_when: [ttl/none]", 1), testpg.Database(t))
	b.start()
	entered, goOn := make(chan struct{}), make(chan struct{})
	enter, leave := sync.OnceFunc(func() { close(entered) }), sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(leave)
	b.agent.BeforeComposing(func(w store.Written) {
		if slices.ContainsFunc(w.Entries, func(e locksteward.Entry) bool { return e.Action == release.ActionPropose }) {
			enter()
			<-goOn
		}
	})
	set(t, rdb, "lock:order:1", token, 0)
	<-entered
	set(t, rdb, "lock:order:2", token, 0)
	b.awaitMetric(`locksteward_findings{class="orders",risk="deadlock",rule="ttl/none",severity="critical",target="main"} 2`)
	b.awaitSweeps(2)
	leave()
	b.awaitMetric(`locksteward_release_requests{state="pending"} 2`)
}
