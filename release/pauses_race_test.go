package release_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/release"
)

// Two replicas that stop releases at once: neither loses what the other one stopped.
func TestStopsOfTwoReplicasAtOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	other, err := release.New(zap.NewNop(), release.Config{}, release.Deps{
		Store: e.store, Locks: e.locks, Classes: testClasses(t), Executors: map[string]release.Executor{target: nil}, Stops: e.store,
	})
	if err != nil {
		t.Fatal(err)
	}
	root := release.Actor{Name: "root", Roles: []release.Role{release.RoleAdmin}}
	until := time.Now().Add(time.Hour)
	e.stopsBetween = sync.OnceFunc(func() {
		if err := other.SetFreeze(t.Context(), root, until, "a deployment"); err != nil {
			t.Error(err)
		}
	})
	if err := e.service.SetKillSwitch(t.Context(), root, true, "an incident"); err != nil {
		t.Fatal(err)
	}
	if now := e.service.Stops(); !now.Killed || now.FrozenWhy != "a deployment" {
		t.Errorf("stopped here: %+v", now)
	}
	raw, err := e.store.LoadSetting(t.Context(), "release_stops")
	if err != nil || !strings.Contains(raw, `"killed":true`) || !strings.Contains(raw, "a deployment") {
		t.Errorf("the store has %s, %v", raw, err)
	}
}
