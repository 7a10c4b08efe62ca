package backend

import (
	"context"
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/report"
	"github.com/locksteward/locksteward/internal/targets"
)

// Report says how the locks of a target, or of all if it is "", were held since a
// time; name leaves all other classes out unless it is "".
func (b *Backend) Report(ctx context.Context, target, name string, since time.Time) (api.Report, error) {
	if target == "" {
		return b.report(ctx, target, name, since)
	}
	out, err := forwardRead(ctx, b, callReport, reportInput{target, name, since})
	return out.V, err
}

func (b *Backend) report(ctx context.Context, target, name string, since time.Time) (api.Report, error) {
	now := b.deps.Targets.Now()
	classes := now.Classes
	var chosen []*targets.Watched
	var elsewhere []string
	for _, t := range now.Config.Targets {
		if target != "" && target != t.Name {
			continue
		}
		if w, ok := now.Watched[t.Name]; ok {
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
		rows, err := b.deps.Store.LoadHolds(ctx, w.Target().Name, in.Since)
		if err != nil {
			return api.Report{}, stored(err)
		}
		in.Rows = append(in.Rows, overlaid(rows, w.HoldRows(), in.Since)...)
		in.Open = append(in.Open, w.Table().Locks()...)
		if _, swept := w.LastSweep(); !swept {
			in.Notes = append(in.Notes, fmt.Sprintf("target %q: nothing was looked at yet", w.Target().Name))
		}
	}
	for _, other := range elsewhere {
		rows, err := b.deps.Store.LoadHolds(ctx, other, in.Since)
		if err != nil {
			return api.Report{}, stored(err)
		}
		in.Rows = append(in.Rows, rows...)
		in.Notes = append(in.Notes, fmt.Sprintf("target %q: another replica works on it: holds that last and those of the last %s are missing; ask for the target by its name to have them", other, targets.SaveHoldsEvery))
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
