package targets

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/scanner"
)

// swept takes in one sweep; the scanner calls it, one sweep at a time.
func (w *Watched) swept(ctx context.Context, sweep locksteward.Sweep) {
	now := time.Now()
	w.endFirstSweep(sweep)
	w.keepFirstSweep(ctx)
	answersAgain := w.conclude(ctx, sweep, now)
	w.deps.Touch()
	if answersAgain {
		w.deps.Alerts.WakeHeld(ctx)
	}
	w.saveOrders(ctx, sweep)
}

// conclude judges a sweep that came in at now, and says whether the target answers again. Between two steps
// of it the watch comes in: what it reports meanwhile waits for one step at most.
func (w *Watched) conclude(ctx context.Context, sweep locksteward.Sweep, now time.Time) (answersAgain bool) {
	defer w.turn.take()()
	if sweep.Complete() && !sweep.At.Equal(sweep.Started) { // else the server's time was not read
		w.clock.Update(w.log, "Redis server", sweep.At.Sub(now.Round(0)))
	}
	w.deps.Exporter.ObserveSweep(sweep)
	w.sweeps.add(sweep, time.Now())
	w.holds.AddSweep(sweep)
	w.judge(ctx, sweep)
	w.deps.Exporter.SetTarget(w.scanner.State())
	w.deps.Exporter.SetRefused(w.target.Name, w.scanner.Stats().Refused)
	w.showPace()
	answersAgain = w.logSweep(ctx, sweep)
	w.shown.Lock()
	w.last = api.NewSwept(sweep)
	w.shown.Unlock()
	w.publish(ctx)
	w.giveWay()
	w.proposeDead(sweep)
	w.releaseDead(ctx, sweep)
	w.giveWay()
	n := 0
	for l := range sweep.AllLocks() {
		w.lookWhenDue(l)
		if n++; n%atOnce == 0 {
			w.giveWay()
		}
	}
	w.recheckLater(ctx)
	return answersAgain
}

// judge has the rules judge a sweep, and reports what they find. The caller has
// the turn.
func (w *Watched) judge(ctx context.Context, sweep locksteward.Sweep) {
	ended := false
	for transitions := range w.deps.Engine.EvaluateSteps(sweep) {
		for part := range transitions.Parts(atOnce) {
			w.found(part)
		}
		if !ended {
			w.over(sweep.Endings, false)
			w.overUnseen(sweep)
			ended = true
		}
		for part := range transitions.Parts(atOnce) {
			w.tell(ctx, part)
		}
		w.giveWay()
	}
}

// giveWay lets the watch report what it has read meanwhile. The caller has the turn, and
// is called by the scanner with a sweep.
func (w *Watched) giveWay() {
	w.turn.end()
	w.scanner.Yield()
	w.turn.take()
}

// logSweep logs each sweep at debug level, and at a level that is seen when the
// target comes, goes, or is not read in full any more. It says whether the target answers again.
// The caller has the turn.
func (w *Watched) logSweep(ctx context.Context, sweep locksteward.Sweep) (answersAgain bool) {
	fields := []zap.Field{
		zap.Bool("complete", sweep.Complete()), zap.Int64("keys", sweep.Keys()), zap.Int("locks", sweep.LockCount()),
		zap.Int("candidates", sweep.Candidates), zap.Duration("took", sweep.Duration),
	}
	state := w.scanner.State()
	now := condition(state, sweep)
	// Before the first sweep of this run it may have been down for another replica.
	was, isDown := w.down.Load(), now == down
	w.down.Store(&isDown)
	switch {
	case now == w.condition:
		w.log.Debug("sweep ended", fields...)
	case now == up:
		w.log.Info("target is up", fields...)
		w.condition = now
		w.checkRights(ctx)
	default:
		w.log.Warn("target is "+string(now), append(fields, zap.String("reason", state.Reason))...)
		w.condition = now
	}
	return !isDown && (was == nil || *was)
}

// health is what the log says of a target.
type health string

const (
	up      health = "up"
	partial health = "read in part"
	down    health = "down"
)

func condition(state locksteward.TargetState, sweep locksteward.Sweep) health {
	switch {
	case !state.Up:
		return down
	case !sweep.Complete():
		return partial
	default:
		return up
	}
}

// showPace has the metrics show how fast the target's servers are read, and what was waited for. The caller has the turn.
func (w *Watched) showPace() {
	stats := w.scanner.Stats()
	for reason, total := range stats.Throttled {
		w.deps.Exporter.AddThrottled(w.target.Name, string(reason), total-w.throttled[reason])
		w.throttled[reason] = total
	}
	if least := leastShare(stats); least > 0 {
		w.deps.Exporter.SetPace(w.target.Name, least)
	}
}

// leastShare returns the least share that a server of the target grants to sweeping now, 0 if none was swept.
func leastShare(stats scanner.Stats) float64 {
	least := 0.0
	for _, p := range stats.Pace {
		if least == 0 || p.Share < least {
			least = p.Share
		}
	}
	return least
}
