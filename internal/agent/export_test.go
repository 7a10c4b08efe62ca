package agent

import (
	"context"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/backend"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/store"
)

// Swept tells the release side what looked dead in a complete sweep, as the sweep
// of a target does after the quarter of a minute that a proof of death takes.
func (a *Agent) Swept(ctx context.Context, target string, dead []release.Dead) ([]locksteward.Request, error) {
	return a.releases.Swept(ctx, target, dead)
}

// Ready is what /-/ready answers.
func (a *Agent) Ready() exporter.Readiness { return a.ready() }

// PauseReleases pauses all releases or resumes them, as an admin does.
func (a *Agent) PauseReleases(ctx context.Context, admin string, paused bool) error {
	actor := release.Actor{Name: admin, Roles: []release.Role{release.RoleAdmin}}
	if paused {
		return a.releases.Pause(ctx, actor, release.PauseAll, time.Time{}, "a test")
	}
	return a.releases.Resume(ctx, actor, release.PauseAll, "a test")
}

// BeforeComposing calls fn in each transaction that writes to the audit trail, before
// its notifications are made.
func (a *Agent) BeforeComposing(fn func(w store.Written)) {
	a.store.Compose(func(w store.Written) []locksteward.Notification {
		fn(w)
		return a.alerts.Compose(w)
	})
}

// ReadLock reads one lock directly and tells which rules fire on it.
func (a *Agent) ReadLock(ctx context.Context, target, key string) (locksteward.Lock, []string, error) {
	return a.targets.ReadLock(ctx, target, key)
}

// Backend is what the console and the API show and change.
func (a *Agent) Backend() *backend.Backend { return a.backend }
