package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// TestNothingIsProposedWhileVerdictsPause: after a restart of the server a rule of
// dead_when fires and is reported as ever, and an expression holds, but the agent asks
// for no release until one longest lease is over: anyone who lost a heartbeat with the
// server must be able to show themselves first.
func TestNothingIsProposedWhileVerdictsPause(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	set(t, rdb, "lock:order:1", token, 0)
	set(t, rdb, "lock:order:2", token, time.Hour) // the longest lease
	b := newBed(t, target(srv.URL())+strings.Replace(orders, "release: approve",
		`release: approve, dead_when: [ttl/none, "!lock.has_ttl"]`, 1))
	proposed := func() string {
		list, err := b.bo.Requests(t.Context(), apiclient.RequestsQuery{})
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, r := range list.Requests {
			keys = append(keys, r.Evidence.Key.Key)
		}
		return strings.Join(keys, " ")
	}
	firing := func(rule, key string) bool {
		list, err := b.bo.Findings(t.Context(), apiclient.FindingsQuery{Status: "firing"})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list.Findings {
			if f.Rule == rule && f.Key.Key == key {
				return true
			}
		}
		return false
	}
	testredis.Eventually(t, within, func() bool { return proposed() == "lock:order:1" }, "before the restart nothing is proposed")
	// The sweep that follows the restart must know of the server before it.
	srv.Restart()
	testredis.Eventually(t, within, func() bool { return firing("server/restarted", "") }, "the restart is not seen")
	set(t, rdb, "lock:order:3", token, 0)
	testredis.Eventually(t, within, func() bool { return firing("ttl/none", "lock:order:3") }, "the rule does not fire")
	b.awaitSweeps(3)
	if got := proposed(); got != "lock:order:1" {
		t.Errorf("proposed while verdicts pause: %s", got)
	}
}
