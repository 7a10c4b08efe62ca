package agent

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

const (
	// clockApart is how far our wall clock may be from another before people are told:
	// far more than a slow answer or a machine without NTP make in a day.
	clockApart = time.Minute
	// clockStep is by how much it moves beside the monotonic one if it was set; an NTP
	// daemon slews less.
	clockStep = 3 * time.Second
	// clockEvery is how often it is looked at, databaseClockEvery how often that of a
	// database is asked for.
	clockEvery         = time.Second
	databaseClockEvery = time.Minute
)

// apart is whether one clock agrees with ours, as people were told last.
type apart struct {
	mu   sync.Mutex
	told time.Duration
	// off is how far the other clock is ahead of ours, if known.
	off   time.Duration
	known bool
}

// now is the time by the other clock; zero if it was never compared with ours.
func (a *apart) now() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.known {
		return time.Time{}
	}
	return time.Now().Add(a.off)
}

// news takes a look at the other clock, and says whether people are to hear of it.
func (a *apart) news(off time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.off, a.known = off, true
	if off.Abs() < clockApart {
		off = 0
	}
	if (off - a.told).Abs() < clockApart {
		return false
	}
	a.told = off
	return true
}

// tellApart logs how far another clock is from ours, when that has changed.
func tellApart(log *zap.Logger, seen *apart, whose string, off time.Duration) {
	if !seen.news(off) {
		return
	}
	if off.Abs() < clockApart {
		log.Info("this machine's clock and that of the " + whose + " agree again")
		return
	}
	log.Warn("this machine's clock is "+clockWords(-off)+" that of the "+whose+": ages, deadlines and verdicts go by the server's clock, "+
		"but requests, silences, sign-ins and times in messages by this machine's; set both by NTP", zap.Duration("apart", -off))
}

// clockWords says how far ahead or behind something is.
func clockWords(d time.Duration) string {
	if d < 0 {
		return d.Abs().Round(time.Second).String() + " behind"
	}
	return d.Round(time.Second).String() + " ahead of"
}

// compareClock compares our wall clock with the server's, which a sweep that just ended
// read last.
func (w *watched) compareClock(sweep locksteward.Sweep, now time.Time) {
	if sweep.Complete() && !sweep.At.Equal(sweep.Started) { // else the server was not asked
		tellApart(w.log, &w.clock, "Redis server", sweep.At.Sub(now.Round(0)))
	}
}

// watchClock follows our own wall clock until ctx ends.
func (a *Agent) watchClock(ctx context.Context) error {
	a.lookAtLastWord(ctx)
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()
	var database apart
	var asked time.Time
	for was := time.Now(); ; {
		now := time.Now()
		step := now.Round(0).Sub(was.Round(0)) - now.Sub(was)
		was = now
		if step.Abs() >= clockStep {
			asked = time.Time{}
			a.clockWasSet(ctx, step)
		}
		if a.keeper != nil && (asked.IsZero() || now.Sub(asked) >= databaseClockEvery) {
			asked = now
			if theirs, err := a.store.Clock(ctx); err == nil {
				tellApart(a.log, &database, "database", theirs.Sub(now.Round(0)))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// clockWasSet tells of a step of our wall clock, and has what waits for a time by it
// wait no longer than it did before.
func (a *Agent) clockWasSet(ctx context.Context, step time.Duration) {
	way := "ahead"
	if step < 0 {
		way = "back"
	}
	a.log.Warn("this machine's clock went "+step.Abs().Round(time.Second).String()+" "+way+" in one step, or the machine was suspended: no verdict and no proof of a release "+
		"rests on it, but requests, silences and sign-ins end by it", zap.Duration("step", step))
	if step < 0 {
		a.clockWentBack(ctx, -step)
	}
}

func (a *Agent) clockWentBack(ctx context.Context, by time.Duration) {
	if err := a.store.ClockWentBack(ctx, by); err != nil {
		a.log.Warn("messages that wait for a time wait longer, by as much as the clock went back", zap.Error(err))
	}
}

// lookAtLastWord compares our wall clock with the newest entry of the trail: a clock
// that went back while no agent ran is behind its own past.
func (a *Agent) lookAtLastWord(ctx context.Context) {
	last, err := a.store.Entries(ctx, store.EntryQuery{Limit: 2})
	if err != nil {
		return // whoever reads the trail says what is wrong
	}
	now := time.Now()
	for _, e := range last { // the first may be what this agent wrote itself
		if by := e.At.Sub(now); by >= clockApart {
			a.log.Warn("this machine's clock is at least "+clockWords(-by)+" the newest entry of the audit trail: it was set back, or is wrong; set it by NTP",
				zap.Duration("apart", -by), zap.Int64("entry", e.Seq))
			if a.keeper == nil {
				a.clockWentBack(ctx, by)
			}
			return
		}
	}
}
