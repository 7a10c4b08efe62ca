package agent

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/report"
)

const (
	// holdsKept is how long it is known how locks were held.
	holdsKept = 30 * 24 * time.Hour
	// saveHoldsEvery is how much of that a crash may cost.
	saveHoldsEvery = 10 * time.Second
	// restored is how far back an agent goes on with what the last one counted: far
	// more than a server's clock may differ by.
	restored = 24 * time.Hour
)

// restoreHolds continues the counts of the last hours.
func (w *watched) restoreHolds(ctx context.Context) {
	rows, err := w.agent.store.LoadHolds(ctx, w.target.Name, report.SlotOf(time.Now().Add(-restored)))
	if err != nil {
		w.log.Error("how locks were held in this hour is not known: it is counted anew", zap.Error(err))
	}
	w.holds.Restore(rows)
}

// saveHolds writes what was counted since the last time.
func (w *watched) saveHolds(ctx context.Context) {
	rows := w.holds.Unsaved()
	if err := w.agent.store.SaveHolds(context.WithoutCancel(ctx), rows); err != nil {
		w.log.Error("how locks were held is not saved: it is tried again", zap.Error(err))
		return
	}
	w.holds.Saved(rows)
}

// coverHolds notes what the watch covers: locks of which changes are told are
// hardly older than their first look.
func (w *watched) coverHolds(watch exporter.Watch) {
	w.holds.Watched(time.Now(), watch.Classes, watch.Blind)
}

// Report says how the locks of a target, or of all if it is "", were held since a
// time; name leaves all other classes out unless it is "".
func (a *Agent) Report(ctx context.Context, target, name string, since time.Time) (api.Report, error) {
	if target == "" {
		return a.report(ctx, target, name, since)
	}
	out, err := forwardRead(ctx, a, callReport, reportInput{target, name, since})
	return out.V, err
}

func (a *Agent) report(ctx context.Context, target, name string, since time.Time) (api.Report, error) {
	now := a.current()
	classes := now.classes
	var chosen []*watched
	var elsewhere []string
	for _, t := range now.cfg.Targets {
		if target != "" && target != t.Name {
			continue
		}
		if w, ok := now.targets[t.Name]; ok {
			chosen = append(chosen, w)
		} else {
			elsewhere = append(elsewhere, t.Name)
		}
	}
	if target != "" && len(chosen) == 0 {
		return api.Report{}, fmt.Errorf("target %q: %w: `locksteward config check` lists the targets", target, locksteward.ErrNotFound)
	}
	in := report.Input{Since: report.SlotOf(since), Until: time.Now().Truncate(time.Millisecond), Classes: classes, OnlyClass: name}
	for _, w := range chosen {
		rows, err := a.store.LoadHolds(ctx, w.target.Name, in.Since)
		if err != nil {
			return api.Report{}, stored(err)
		}
		in.Rows = append(in.Rows, overlaid(rows, w.holds.Rows(), in.Since)...)
		in.Open = append(in.Open, w.scanner.Table().Locks()...)
		if _, swept := w.lastSweep(); !swept {
			in.Notes = append(in.Notes, fmt.Sprintf("target %q: nothing was looked at yet", w.target.Name))
		}
	}
	for _, other := range elsewhere {
		rows, err := a.store.LoadHolds(ctx, other, in.Since)
		if err != nil {
			return api.Report{}, stored(err)
		}
		in.Rows = append(in.Rows, rows...)
		in.Notes = append(in.Notes, fmt.Sprintf("target %q: another replica works on it: holds that last and those of the last %s are missing; ask for the target by its name to have them", other, saveHoldsEvery))
	}
	if name != "" && !knownClass(classes, in.Rows, name) {
		return api.Report{}, fmt.Errorf("class %q: %w: GET /api/v1/classes lists the classes", name, locksteward.ErrNotFound)
	}
	return report.Build(in), nil
}

func knownClass(classes *class.Set, rows []report.Row, name string) bool {
	if _, ok := classes.Get(name); ok {
		return true
	}
	for _, r := range rows {
		if r.Class == name {
			return true
		}
	}
	return false
}

// overlaid returns the rows of the store, with those that are in memory, which
// are newer, in their place.
func overlaid(kept, live []report.Row, since time.Time) []report.Row {
	type id struct {
		class string
		slot  time.Time
	}
	newer := map[id]bool{}
	var out []report.Row
	for _, r := range live {
		if !r.Slot.Before(since) {
			newer[id{r.Class, r.Slot}] = true
			out = append(out, r)
		}
	}
	for _, r := range kept {
		if !newer[id{r.Class, r.Slot}] {
			out = append(out, r)
		}
	}
	return out
}
