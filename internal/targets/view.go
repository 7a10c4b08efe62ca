package targets

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/report"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
)

// Read reads one lock from the target now.
func (w *Watched) Read(ctx context.Context, key string) (locksteward.Lock, error) {
	l, err := w.scanner.Table().Refresh(ctx, key)
	return l, w.explain(err)
}

// explain returns the reason why a target could not be read:
// else it would stand in the log alone.
func (w *Watched) explain(err error) error {
	if err == nil || api.ProblemFor(err).Code != api.CodeInternal {
		return err
	}
	return api.NewProblem(api.CodeUnavailable, "target "+w.target.Name+" could not be read: "+w.conn.Explain(err))
}

// OwnDB refuses another database than the one that is watched.
func (w *Watched) OwnDB(db int) error {
	if own := w.target.DB; db != own {
		return fmt.Errorf("%w: target %q watches database %d, not %d; watch that one as a target of its own", locksteward.ErrNotFound, w.target.Name, own, db)
	}
	return nil
}

// View is the target with its sweeps.
func (w *Watched) View() api.Target {
	// Before the last sweep: what ends in between is shown as under way, not as
	// if it had never begun.
	sweeping := w.sweeping(time.Now())
	out := api.NewTarget(w.scanner.State())
	if swept, ok := w.LastSweep(); ok {
		out.LastSweep = &swept
	}
	out.Sweeping = sweeping
	return out
}

// FullView is View with how the target is watched and how fast it is read.
func (w *Watched) FullView() api.Target {
	out := w.View()
	out.Watch, out.Budget = watchView(w.scanner.WatchState()), budgetView(w.scanner.Stats())
	return out
}

func watchView(s source.WatchState) *api.Watch {
	out := &api.Watch{
		Mode: string(s.Mode), Reason: s.Reason, BlindMs: s.Blind.Milliseconds(), Missed: s.Missed, Waiting: s.Waiting,
		Classes: make([]api.ClassWatch, 0, len(s.Classes)),
	}
	for _, c := range s.Classes {
		out.Classes = append(out.Classes, api.ClassWatch{Class: c.Class, Coverage: string(c.Coverage), Reason: c.Reason})
	}
	return out
}

func budgetView(s scanner.Stats) *api.Budget {
	out := &api.Budget{
		Idle: float64(s.Bounds.Idle), Busy: float64(s.Bounds.Busy), Servers: []api.Pace{},
		ThrottledMs: map[string]int64{}, Degraded: append([]string{}, s.Degraded...),
	}
	for _, addr := range slices.Sorted(maps.Keys(s.Pace)) {
		p := s.Pace[addr]
		out.Servers = append(out.Servers, api.Pace{Addr: addr, Share: p.Share, Use: p.Use, Bound: string(p.Bound), Reason: string(p.Reason)})
	}
	for reason, waited := range s.Throttled {
		out.ThrottledMs[string(reason)] = waited.Milliseconds()
	}
	return out
}

// Target is what is watched.
func (w *Watched) Target() locksteward.Target { return w.target }

// Table is the table of the target's locks.
func (w *Watched) Table() *scanner.Table { return w.scanner.Table() }

// ServerTime is the time of the target's server, as far as it is known.
func (w *Watched) ServerTime() time.Time { return w.clock.Now() }

// Up reports whether the target answered last.
func (w *Watched) Up() bool { return w.scanner.State().Up }

// Down says whether the last sweep that ended found the target down; nil before one ended. That it answers again says
// nothing yet of what was found on it.
func (w *Watched) Down() *bool { return w.down.Load() }

// Recalled reports whether what the store knows of the target was taken back, or could not be.
func (w *Watched) Recalled() bool { return w.restored.Load() }

// Swept is when the last complete sweep ended, and whether another one is overdue by the schedule.
func (w *Watched) Swept(now time.Time) (last time.Time, overdue bool) {
	return w.sweeps.at(now, w.scanner.Overdue)
}

// HoldRows are what was counted of holds and may not be in the store.
func (w *Watched) HoldRows() []report.Row { return w.holds.Rows() }

// LastSweep is what the last sweep came to; false before the first.
func (w *Watched) LastSweep() (api.Swept, bool) {
	w.shown.Lock()
	defer w.shown.Unlock()
	return w.last, !w.last.At.IsZero()
}
