package release_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/source"
)

// Two replicas that pause releases at once: neither loses the pause of the other one.
func TestPausesOfTwoReplicasAtOnce(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	other, err := release.New(zap.NewNop(), release.Config{}, release.Deps{
		Store: e.store, Locks: e.locks, Classes: testClasses(t), Releasers: map[string]source.Releaser{target: nil}, Settings: e.store,
	})
	if err != nil {
		t.Fatal(err)
	}
	root := release.Actor{Name: "root", Roles: []release.Role{release.RoleAdmin}}
	until := time.Now().Add(time.Hour)
	e.beforeSwap = sync.OnceFunc(func() {
		if err := other.Pause(t.Context(), root, release.PauseAutomatic, until, "a deployment"); err != nil {
			t.Error(err)
		}
	})
	if err := e.service.Pause(t.Context(), root, release.PauseAll, time.Time{}, "an incident"); err != nil {
		t.Fatal(err)
	}
	if now := e.service.Pauses(); now.All == nil || now.Automatic == nil || now.Automatic.Reason != "a deployment" {
		t.Errorf("paused here: %+v", now)
	}
	raw, err := e.store.LoadSetting(t.Context(), "release_pauses")
	if err != nil || !strings.Contains(raw, `"all":{"by":"root"`) || !strings.Contains(raw, "a deployment") {
		t.Errorf("the store has %s, %v", raw, err)
	}
}
