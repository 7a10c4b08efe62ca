package targets

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/scanner"
)

// A sweep of many locks with a small budget takes minutes. What it has come to is
// reported while it lasts.
const (
	// progressEvery is how often it is looked at.
	progressEvery = time.Second
	// progressLog is how often a sweep that lasts is logged, progressPages
	// how often pages are; of a first sweep they show each percent.
	progressLog   = time.Minute
	progressPages = 10 * time.Second
)

// sweeping is the sweep under way for people; nil for none.
func (w *Watched) sweeping(now time.Time) *api.Sweeping {
	p, ok := w.scanner.Progress()
	if !ok {
		return nil
	}
	return sweepingView(p, now, w.scanner.Paused() != nil)
}

func sweepingView(p scanner.Progress, now time.Time, paused bool) *api.Sweeping {
	out := &api.Sweeping{First: p.First, Started: api.Time(p.Started), Keys: p.Keys}
	if percent, ok := p.Percent(); ok {
		out.OfKeys, out.Percent = &p.OfKeys, &percent
	}
	if left, ok := p.Left(now); ok && !paused {
		out.EndsAt = api.Time(now.Add(left))
	}
	return out
}

// tellProgress tells pages, metrics and log of sweeps under way until ctx ends.
func (w *Watched) tellProgress(ctx context.Context) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	var reported progressReported
	up := false
	loop, remove := w.deps.Liveness.Add("sweeps of target "+w.target.Name, &w.calls)
	defer remove()
	for {
		loop.Progress()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		if now := w.scanner.State().Up; now != up {
			up = now
			w.showState()
		}
		view := w.sweeping(now)
		pages, log := reported.due(now, view)
		if pages {
			w.deps.Touch()
		}
		if log {
			w.log.Info("sweep is under way", zap.Bool("first", view.First), zap.String("progress", view.Words(now)))
		}
	}
}

// showState has metrics and pages follow a target that answers, or does no more.
func (w *Watched) showState() {
	defer w.deps.Touch()
	defer w.turn.take()()
	w.deps.Exporter.SetTarget(w.scanner.State())
}

// progressReported is what was reported of the sweep under way.
type progressReported struct {
	started    time.Time // of the sweep
	pages, log time.Time // when each was reported
	percent    int64
}

// due says to whom a sweep is to be reported now, nil for none.
func (t *progressReported) due(now time.Time, s *api.Sweeping) (pages, log bool) {
	if s == nil {
		return false, false
	}
	if !s.Started.Equal(t.started) {
		*t = progressReported{started: s.Started, pages: s.Started, log: s.Started, percent: -1}
	}
	percent := s.Keys // of what is not known
	if s.Percent != nil {
		percent = int64(*s.Percent)
	}
	if s.First && percent != t.percent || now.Sub(t.pages) >= progressPages {
		pages, t.percent, t.pages = true, percent, now
	}
	if now.Sub(t.log) >= progressLog {
		log, t.log = true, now
	}
	return pages, log
}
