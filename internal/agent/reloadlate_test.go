package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

// A reload that fails late, at the users, changes nothing: neither what is known of a
// target that comes back and leads elsewhere, nor classes and rules.
func TestReloadThatFailsLateChangesNothing(t *testing.T) {
	t.Parallel()
	one, two, three := testredis.Start(t), testredis.Start(t), testredis.Start(t)
	set(t, two.Client(t), "lock:order:1", token, 0)
	with := func(second string) string {
		return strings.Replace(target(one.URL()), "]\n", ", {name: second, url: '"+second+"', schedule: '@every 1s', release_credentials: {}}]\n", 1)
	}
	b := newBed(t, with(two.URL())+orders)
	b.awaitMetric(`locksteward_findings{class="orders",risk="deadlock",rule="ttl/none",severity="critical",target="second"} 1`)
	r, err := b.ana.CreateRequest(t.Context(), api.CreateRequest{Target: "second", Key: api.NewKey("lock:order:1"), Reason: "pod gone"})
	if err != nil {
		t.Fatal(err)
	}
	reload := func(text string) error {
		b.write(text)
		return b.agent.Reload(t.Context())
	}
	if err := reload(target(one.URL()) + orders); err != nil {
		t.Fatal(err)
	}
	state := func() locksteward.RequestState {
		st, err := store.Open(t.Context(), b.dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		got, err := st.GetRequest(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		return got.State
	}
	users := filepath.Join(b.dir, "users.yaml")
	good, err := os.ReadFile(users)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(users); err != nil {
		t.Fatal(err)
	}
	elsewhere := with(three.URL()) + strings.Replace(orders, "class: orders", "class: others", 1)
	if err := reload(elsewhere); err == nil || !strings.Contains(err.Error(), "has no users any more") {
		t.Fatalf("reload without users: %v", err)
	}
	classes := b.agent.Backend().Classes()
	if classes[0].Class != "orders" {
		t.Errorf("classes %+v", classes)
	}
	for _, target := range b.agent.Backend().Targets() {
		if target.Name != "main" {
			t.Errorf("target %+v", target)
		}
	}
	if err := os.WriteFile(users, good, 0o600); err != nil {
		t.Fatal(err)
	}
	b.awaitMetric(`locksteward_config_last_reload_successful 0`)
	b.stop()
	if is := state(); is != locksteward.RequestPending {
		t.Errorf("the request is %s after a reload that failed", is)
	}
	b.start()
	b.stop()
	if is := state(); is != locksteward.RequestSuperseded {
		t.Errorf("the request is %s after the target led elsewhere", is)
	}
}
