package storehealth

import (
	"context"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/store"
)

// olderEvery is how often a database is asked whether it is the one that it was.
const olderEvery = 5 * time.Second

// watchOlder reports a database that is put back to an older state while this replica
// runs, until ctx ends.
func (m *Monitor) watchOlder(ctx context.Context) {
	tick := time.NewTicker(olderEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// Every other caller reports that it does not answer.
		if older, _ := m.LookForOlder(ctx); older {
			m.onOlder(ctx)
		}
	}
}

// LookForOlder reports a store that was put back to an older state, and says
// whether it was.
func (m *Monitor) LookForOlder(ctx context.Context) (bool, error) {
	older, is, err := m.store.Older(ctx)
	if !is {
		return false, err
	}
	const means = "What was decided and released since is in no request of it; nothing is released for an approval of that time, " +
		"for each hold is compared with its request, and notifications of what fires are sent again. "
	if older.Elsewhere {
		m.log.Error("the database is not the one in which the store was written last: a dump was restored, or it was moved. If the dump is older than "+
			"what was there: "+means+"If that was not meant, stop all replicas and restore the newer one", zap.Int64("entries_missing", older.Missing))
		return true, err
	}
	m.log.Error("the store is older than it was: a backup was restored, or its file was replaced. "+means+
		"If that was not meant, stop the agent and put the newer one back", zap.Int64("entries_missing", older.Missing))
	return true, err
}

// LookForLostTrail reports an empty trail beside the key that signed one: an SQLite
// file that was emptied or is gone looks to the store like one that is new.
func (m *Monitor) LookForLostTrail(ctx context.Context, cfg store.Config) error {
	file := audit.KeyFile(cfg)
	if file == "" || cfg.AuditKeyFile != "" { // a key of its own may be made before the store
		return nil
	}
	if _, err := os.Stat(file); err != nil {
		return nil // OpenKey says what is wrong, if that is
	}
	size, err := m.store.Size(ctx)
	if err == nil && size.Entries == 0 {
		m.log.Error("the store is empty, though the key that signs its audit trail is older: was its file lost? "+
			"If so, stop the agent and restore the last backup", zap.String("audit_key", file))
	}
	return err
}
