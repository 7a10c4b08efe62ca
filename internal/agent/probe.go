package agent

import (
	"context"
	"time"

	"github.com/locksteward/locksteward/internal/liveness"
)

// probeEvery is the time between two reads of [Agent.probe].
const probeEvery = time.Second

// probe reads each second what the console reads from memory, so that a deadlock there is noticed even if nobody opens
// a page.
func (a *Agent) probe(ctx context.Context) error {
	loop, remove := a.liveness.Add("lists of targets", &liveness.Calls{})
	defer remove()
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		loop.Progress()
		a.backend.Targets()
		a.targets.Down()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
