package agent

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// olderEvery is how often a database is asked whether it is the one that it was.
const olderEvery = 5 * time.Second

// watchStore tells of a database that is put back to an older state while this replica
// runs, until ctx ends. A file is in use all the while.
func (a *Agent) watchStore(ctx context.Context) error {
	if a.member == nil {
		return nil
	}
	tick := time.NewTicker(olderEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		// Whether it answers is told by all who ask it for something.
		if older, _ := a.lookForOlderStore(ctx); older {
			// What it says fires, and was told, is gone by; what is known here was never there.
			a.member.ReacquireAll(ctx)
		}
	}
}

// lookForOlderStore tells of a store that was put back to an older state, and says
// whether it was.
func (a *Agent) lookForOlderStore(ctx context.Context) (bool, error) {
	older, is, err := a.store.Older(ctx)
	if !is {
		return false, err
	}
	const means = "What was decided and released since is in no request of it; nothing is released for an approval of that time, " +
		"for each hold is compared with its request, and what fires is told again. "
	if older.Elsewhere {
		a.log.Error("the database is not the one in which the store was written last: a dump was restored, or it was moved. If the dump is older than "+
			"what was there: "+means+"If that was not meant, stop all replicas and restore the newer one", zap.Int64("entries_missing", older.Missing))
		return true, err
	}
	a.log.Error("the store is older than it was: a backup was restored, or its file was replaced. "+means+
		"If that was not meant, stop the agent and put the newer one back", zap.Int64("entries_missing", older.Missing))
	return true, err
}
