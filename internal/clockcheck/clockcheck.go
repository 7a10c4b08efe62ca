// Package clockcheck warns of clocks that are wrong: this machine's wall clock when it is set, and when it differs from
// the clock of a server or of the database.
package clockcheck

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

const (
	// maxOffset is how far two clocks may differ: far more than a slow answer, or a machine without NTP in a day, explain.
	maxOffset = time.Minute
	// minStep is by how much the wall clock moves relative to the monotonic clock if it was set; an NTP daemon slews less.
	minStep = 3 * time.Second
	// checkEvery is how often this machine's clock is checked, databaseEvery how often that of a database.
	checkEvery    = time.Second
	databaseEvery = time.Minute
)

// An Offset is how far another clock is ahead of this machine's. The zero value is an unknown offset. Its methods may be
// called concurrently.
type Offset struct {
	mu     sync.Mutex // guards all fields
	offset time.Duration
	known  bool
	logged time.Duration
}

// Now returns the time by the other clock; zero while the offset is unknown.
func (o *Offset) Now() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.known {
		return time.Time{}
	}
	return time.Now().Add(o.offset)
}

// update sets the offset and reports whether it changed so much that it is logged.
func (o *Offset) update(offset time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.offset, o.known = offset, true
	if offset.Abs() < maxOffset {
		offset = 0
	}
	if (offset - o.logged).Abs() < maxOffset {
		return false
	}
	o.logged = offset
	return true
}

// Update sets the offset of the clock of owner, such as "Redis server", and logs when it becomes too large or small
// again.
func (o *Offset) Update(log *zap.Logger, owner string, offset time.Duration) {
	if !o.update(offset) {
		return
	}
	if offset.Abs() < maxOffset {
		log.Info("this machine's clock and that of the " + owner + " agree again")
		return
	}
	log.Warn("this machine's clock is "+aheadOf(-offset)+" that of the "+owner+": ages, deadlines and verdicts go by the server's clock, "+
		"but requests, silences, sign-ins and times in messages by this machine's; set both by NTP", zap.Duration("apart", -offset))
}

func aheadOf(d time.Duration) string {
	if d < 0 {
		return d.Abs().Round(time.Second).String() + " behind"
	}
	return d.Round(time.Second).String() + " ahead of"
}

// Store is the part of [store.Store] that a Monitor uses.
type Store interface {
	Clock(ctx context.Context) (time.Time, error)
	ClockWentBack(ctx context.Context, by time.Duration) error
	Entries(ctx context.Context, q store.EntryQuery) ([]locksteward.Entry, error)
}

// A Monitor checks this machine's wall clock.
type Monitor struct {
	Log   *zap.Logger
	Store Store
	// Shared says that the store is a database with a clock of its own.
	Shared bool
}

// Run checks the clock each second until ctx ends.
func (m Monitor) Run(ctx context.Context) error {
	m.checkTrail(ctx)
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	var database Offset
	var asked time.Time
	for was := time.Now(); ; {
		now := time.Now()
		step := now.Round(0).Sub(was.Round(0)) - now.Sub(was)
		was = now
		if step.Abs() >= minStep {
			asked = time.Time{}
			m.clockWasSet(ctx, step)
		}
		if m.Shared && (asked.IsZero() || now.Sub(asked) >= databaseEvery) {
			asked = now
			if theirs, err := m.Store.Clock(ctx); err == nil {
				database.Update(m.Log, "database", theirs.Sub(now.Round(0)))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// clockWasSet logs a step of the wall clock. Notifications that wait for a time wait no longer than before.
func (m Monitor) clockWasSet(ctx context.Context, step time.Duration) {
	direction := "ahead"
	if step < 0 {
		direction = "back"
	}
	m.Log.Warn("this machine's clock went "+step.Abs().Round(time.Second).String()+" "+direction+" in one step, or the machine was suspended: no verdict and no proof of a release "+
		"rests on it, but requests, silences and sign-ins end by it", zap.Duration("step", step))
	if step < 0 {
		m.wentBack(ctx, -step)
	}
}

func (m Monitor) wentBack(ctx context.Context, by time.Duration) {
	if err := m.Store.ClockWentBack(ctx, by); err != nil {
		m.Log.Warn("notifications that wait for a time wait longer, by as much as the clock went back", zap.Error(err))
	}
}

// checkTrail compares the clock with the newest entries of the audit trail: a clock that was set back while no agent ran
// is behind them.
func (m Monitor) checkTrail(ctx context.Context) {
	last, err := m.Store.Entries(ctx, store.EntryQuery{Limit: 2})
	if err != nil {
		return // readers of the trail report what is wrong
	}
	now := time.Now()
	for _, e := range last { // the first may be one of this agent
		if by := e.At.Sub(now); by >= maxOffset {
			m.Log.Warn("this machine's clock is at least "+aheadOf(-by)+" the newest entry of the audit trail: it was set back, or is wrong; set it by NTP",
				zap.Duration("apart", -by), zap.Int64("entry", e.Seq))
			if !m.Shared {
				m.wentBack(ctx, by)
			}
			return
		}
	}
}
