package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/store"
)

// healthEvery is how often the metrics are told how the store fares.
const healthEvery = time.Second

// tellSetAside tells of a damaged file that was set aside when the store was opened: it
// is the first entry of the trail that begins anew.
func (a *Agent) tellSetAside(ctx context.Context) error {
	name := a.store.SetAside()
	if name == "" {
		return nil
	}
	a.log.Error("the store was damaged: its file is set aside and an empty one is begun. Requests, approvals, silences and the audit trail until now are in the "+
		"file that was set aside; what fires is told again. Restore the last backup, or go on and move that file away (docs/store.md)", zap.String("set_aside", name))
	return a.store.AppendEntries(ctx, locksteward.Entry{
		At: time.Now(), Actor: ownName, Action: "store.set_aside", Subject: filepath.Base(name),
		Reason: "the store was damaged: it is in " + name + ", and this trail begins anew",
	})
}

// checkStore reads the whole store once, beside the work: damage that nothing has met
// yet is told before it is in the way.
func (a *Agent) checkStore(ctx context.Context) error {
	if err := a.store.Check(ctx); err != nil && ctx.Err() == nil {
		level := zap.WarnLevel
		if errors.Is(err, store.ErrDamaged) {
			level = zap.ErrorLevel
		}
		a.log.Log(level, "the check of the store did not end well", zap.Error(err))
	}
	return nil
}

// watchHealth has the metrics, and the log, say how the store fares, until ctx ends.
func (a *Agent) watchHealth(ctx context.Context) error {
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	reopened, refused, damaged := int64(0), "", ""
	for {
		h := a.showStore()
		if h.Damaged != "" && damaged == "" {
			a.log.Error("the store is damaged: what is damaged in it cannot be read", zap.String("error", h.Damaged))
		}
		damaged = h.Damaged
		why := ""
		if h.Refused != nil {
			why = h.Refused.Error()
		}
		if why != refused && why != "" {
			a.log.Error("nothing is written to the store until its file was opened anew and checked", zap.String("error", why))
		}
		refused = why
		if h.Reopened != reopened {
			reopened = h.Reopened
			a.log.Warn("the file of the store was opened anew and is whole: a write that the disk did not confirm is what is found there now")
			if h.Kept != "" {
				a.log.Warn("no copy of the file of the store could take its place: the same file is written on, on a disk that failed to keep what it was given",
					zap.String("error", h.Kept))
			} else {
				a.log.Info("a copy of the file of the store has taken its place")
			}
			if _, err := a.lookForOlderStore(ctx); err != nil {
				a.log.Warn("whether the store is older than it was is not known", zap.Error(err))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// showStore has the metrics say how the store fares.
func (a *Agent) showStore() store.Health {
	h := a.store.Health()
	a.exporter.SetStore(exporter.Store{Errors: h.Errors, Damaged: h.Damaged != "", SetAside: len(a.kept.Damaged())})
	return h
}

// storeNotes are what /-/ready says of the store; none of it makes the agent unready.
func storeNotes(kept store.Config, h store.Health) (notes []string) {
	for _, name := range kept.Damaged() {
		notes = append(notes, fmt.Sprintf("store: a damaged file was set aside as %q: restore a backup, or move it away", name))
	}
	if h.Damaged != "" {
		notes = append(notes, "store: damaged: "+h.Damaged)
	}
	if h.Refused != nil {
		notes = append(notes, "store: nothing is written: "+h.Refused.Error())
	}
	return notes
}
