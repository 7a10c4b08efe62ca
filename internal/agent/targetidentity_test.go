package agent_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// TestTargetThatLeadsElsewhere: the configuration has another server under the same
// name, where a lock of the same name and value stands. A reload is refused and
// changes nothing. A restart takes it, says so, ends what was known of the old
// server without a word that its locks are gone, and executes nothing that was
// approved there: the locks of both servers stand.
// fault: 26
func TestTargetThatLeadsElsewhere(t *testing.T) {
	t.Parallel()
	one, two := testredis.Start(t), testredis.Start(t)
	for _, srv := range []*testredis.Server{one, two} {
		set(t, srv.Client(t), "lock:order:1", "1", 0) // no identity: two such locks cannot be distinguished
	}
	b := newBed(t, target(one.URL())+orders)
	fires := func() bool {
		list, err := b.ana.Findings(t.Context(), apiclient.FindingsQuery{})
		return err == nil && len(list.Findings) > 0 && list.Findings[0].Status == "firing"
	}
	testredis.Eventually(t, within, fires, "the lock without TTL is not found")
	r, err := b.ana.CreateRequest(t.Context(), api.CreateRequest{Target: "main", Key: api.NewKey("lock:order:1"), Reason: "stuck"})
	if err != nil {
		t.Fatal(err)
	}

	b.write(target(two.URL()) + orders)
	err = b.agent.Reload(t.Context())
	if err == nil || !strings.Contains(err.Error(), "targets[0].url: ") || !strings.Contains(err.Error(), "give the other server a name of its own") ||
		!strings.Contains(err.Error(), one.Addr()) || !strings.Contains(err.Error(), two.Addr()) {
		t.Errorf("a reload with another server: %v", err)
	}
	if !fires() {
		t.Error("the refused reload ended a finding")
	}
	if got, err := b.ana.Request(t.Context(), r.ID); err != nil || got.State != "pending" {
		t.Errorf("the request is %s, %v", got.State, err)
	}
	b.awaitMetric("locksteward_config_last_reload_successful 0")

	b.stop()
	b.start()
	got, err := b.ana.Request(t.Context(), r.ID)
	if err != nil || got.State != "superseded" || !strings.Contains(got.Outcome, "leads to another server") {
		t.Errorf("after the restart the request is %s (%s), %v", got.State, got.Outcome, err)
	}
	if n := b.logs.FilterMessageSnippet("leads to another server").Len(); n != 1 {
		t.Errorf("%d lines say that the target leads elsewhere", n)
	}
	entries, err := b.bo.AuditEntries(t.Context(), apiclient.AuditQuery{Action: "target.moved"})
	if err != nil || len(entries.Entries) != 1 || !strings.Contains(entries.Entries[0].Reason, two.Addr()) {
		t.Errorf("audit entries %+v, %v", entries, err)
	}
	b.awaitMetric(`locksteward_sweep_complete{target="main"} 1`)
	lock, err := b.ana.Lock(t.Context(), "main", nil, "lock:order:1", "")
	if err != nil {
		t.Fatal(err)
	}
	if lock.Lock.AgeMs != nil && *lock.Lock.AgeMs > within.Milliseconds() {
		t.Errorf("the lock of the new server has the age of the old one's: %d ms", *lock.Lock.AgeMs)
	}
	for _, srv := range []*testredis.Server{one, two} {
		if srv.Client(t).Exists(t.Context(), "lock:order:1").Val() != 1 {
			t.Errorf("the lock of %s is gone", srv.Addr())
		}
	}

	// The next start finds the place as it was.
	b.stop()
	b.start()
	if n := b.logs.FilterMessageSnippet("leads to another server").Len(); n != 0 {
		t.Error("the second restart says it again")
	}
}

// TestTargetAtAnotherSpelling: a login, TLS files or a second seed do not make
// another server.
func TestTargetAtAnotherSpelling(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	b := newBed(t, target(srv.URL())+orders)
	b.awaitMetric(`locksteward_target_up{target="main"} 1`)
	u, err := url.Parse(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("", "")
	b.write(strings.Replace(target("redis://"+strings.ToUpper(u.Host)+"/"), "'@every 1s'", "'@every 2s'", 1) + orders)
	if err := b.agent.Reload(t.Context()); err != nil {
		t.Errorf("the same server in other words: %v", err)
	}
	b.write(target("redis://"+u.Host+"/3") + orders)
	if err := b.agent.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "database 3") {
		t.Errorf("another database of the same server: %v", err)
	}
}
