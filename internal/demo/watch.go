package demo

import (
	"context"
	"time"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
)

// lookEvery is how often the agent is asked what it knows.
const lookEvery = 200 * time.Millisecond

// most is more than there is on any server that the demo should run on.
const most = 10_000

// watch keeps the board up to date with what the agent's API says, until ctx
// ends. An agent that does not answer is tried again: it may be starting.
func watch(ctx context.Context, client *apiclient.Client, b *board) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := lookOnce(ctx, client, b); err != nil && ctx.Err() == nil {
			b.failed(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func lookOnce(ctx context.Context, client *apiclient.Client, b *board) error {
	locks, err := client.Locks(ctx, apiclient.LocksQuery{Target: targetName, Limit: most})
	if err != nil {
		return err
	}
	findings, err := client.Findings(ctx, apiclient.FindingsQuery{Target: targetName, Limit: most})
	if err != nil {
		return err
	}
	seen := make([]api.Finding, 0, len(findings.Findings))
	for _, f := range findings.Findings {
		seen = append(seen, f.Finding)
	}
	b.saw(locks.Locks, seen)
	return nil
}
