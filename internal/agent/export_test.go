package agent

import (
	"context"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/release"
)

// Swept tells the release side what looked dead in a complete sweep, as the sweep
// of a target does after the quarter of a minute that a proof of death takes.
func (a *Agent) Swept(ctx context.Context, target string, dead []release.Dead) ([]locksteward.Request, error) {
	return a.releases.Swept(ctx, target, dead)
}

// Ready is what /-/ready answers.
func (a *Agent) Ready() exporter.Readiness { return a.ready() }
