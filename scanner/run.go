package scanner

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/source"
)

// Waits while a target is away.
const (
	backoffFirst = 500 * time.Millisecond
	backoffMost  = 30 * time.Second
)

// Yield lets the watch hand on what it has read meanwhile, in the middle of a sink of
// [Scanner.Run], which alone may call it. Of a lock of which newer things are known
// then the sweep yields those.
func (s *Scanner) Yield() { s.order.yield() }

// Run sweeps on schedule until ctx is done, the first time at once, and hands
// every sweep to sink, one at a time; sink's context ends with Run's. While the
// target is away it tries again with growing, jittered waits of at most 30 s,
// and goes on as planned as soon as it is back. It returns nil, after its last
// sweep has ended.
func (s *Scanner) Run(ctx context.Context, sink func(context.Context, locksteward.Sweep)) error {
	s.loadHistory(ctx)
	s.loadFacts(ctx)
	defer func() { s.saveFacts(context.WithoutCancel(ctx), true) }()
	due := time.Now()
	failures := 0
	// A paused target is not away: no sweep begins that could not ask anything.
	for s.throttle.Pass(ctx) == nil {
		s.clearRequest()
		sweep, err := s.sweepInOrder(ctx)
		if ctx.Err() != nil {
			s.tracker.end(&sweep)
			s.order.Unlock()
			break // what was cut by the end of the program tells nothing
		}
		s.logSweep(sweep, err, failures)
		sink(ctx, sweep)
		s.tracker.end(&sweep) // until what it tells is known
		s.order.Unlock()
		// What the store takes its time for, the watch does not wait for.
		s.saveHistory(ctx)
		s.saveFacts(ctx, false)
		if len(sweep.Masters) == 0 {
			failures++
			if s.backOff(ctx, failures, err) != nil {
				break
			}
			due = time.Now()
			continue
		}
		failures = 0
		if next, ok := s.await(ctx, due); ok {
			due = next
		}
	}
	return nil
}

// requestSweep has [Scanner.Run] begin its next sweep as soon as the one under way, if any, has
// ended.
func (s *Scanner) requestSweep() {
	select {
	case s.requested <- struct{}{}:
	default:
	}
}

// clearRequest notes that a sweep begins, which is as good as another one.
func (s *Scanner) clearRequest() {
	select {
	case <-s.requested:
	default:
	}
}

// await waits for the sweep after the one that was due, and returns when that
// was due. A hurried one comes at once, and "every 30s" counts from it.
func (s *Scanner) await(ctx context.Context, due time.Time) (time.Time, bool) {
	now := time.Now()
	next, skipped := s.schedule.next(due, now)
	if next.IsZero() {
		// The schedule has no further date: nothing more to do but wait.
		select {
		case <-ctx.Done():
			return due, false
		case <-s.requested:
			return time.Now(), true
		}
	}
	if skipped > 0 {
		s.mu.Lock()
		s.stats.SkippedSweeps += int64(skipped)
		s.mu.Unlock()
	}
	wait := next.Sub(now) + s.schedule.delay(next.Sub(due))
	wait += s.late(now.Add(wait))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return due, false
	case <-s.requested:
		return time.Now(), true
	case <-timer.C:
		return next, true
	}
}

// late returns by how much a sweep must begin later so that sweeping stays within its share of ten minutes, and logs
// it the first time.
func (s *Scanner) late(at time.Time) time.Duration {
	late := s.source.Ready(at)
	s.mu.Lock()
	first := late > 0 && !s.saidLate
	s.saidLate = late > 0
	s.mu.Unlock()
	if first {
		s.log.Info("sweeps begin later than scheduled: they would take more than 3 % of a server in ten minutes", zap.Duration("later", late))
	}
	return late
}

// logPace logs which servers are held to the busy bound for another reason than their use, each change once.
func (s *Scanner) logPace() {
	for addr, p := range s.Stats().Pace {
		odd := p.Bound == pace.Busy && (p.Reason == pace.Unknown || p.Reason == pace.Jumped)
		switch was := s.saidPace[addr]; {
		case odd && was != p.Reason:
			s.log.Warn("server is swept slowly: what others use of it is not known", zap.String("node", addr), zap.String("reason", string(p.Reason)), zap.Float64("share", p.Share))
			s.saidPace[addr] = p.Reason
		case !odd:
			delete(s.saidPace, addr)
		}
	}
}

// backOff waits before the target is tried again.
func (s *Scanner) backOff(ctx context.Context, failures int, cause error) error {
	wait := min(backoffFirst<<min(failures-1, 10), backoffMost)
	wait = wait/2 + rand.N(wait/2)
	if errors.Is(cause, source.ErrLoading) {
		return s.throttle.Sleep(ctx, source.ReasonLoading, wait)
	}
	// A new password or certificate is worth a try at once, and so is a server that the
	// watch found to be back.
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-s.source.Renewed():
	case <-s.requested:
	case <-timer.C:
	}
	return ctx.Err()
}

func (s *Scanner) logSweep(sweep locksteward.Sweep, err error, failures int) {
	switch {
	case len(sweep.Masters) == 0 && failures == 0:
		s.log.Warn("target is away", zap.String("reason", s.source.Explain(err)), zap.Error(err))
	case len(sweep.Masters) == 0:
		s.log.Debug("target is still away", zap.Int("tries", failures+1), zap.String("reason", s.source.Explain(err)))
	case err != nil:
		s.log.Warn("sweep is incomplete", zap.String("reason", s.source.Explain(err)), zap.Error(err))
	default:
		s.logPace()
		if failures > 0 {
			s.log.Info("target is back", zap.Int("tries", failures+1))
		}
		s.log.Debug("sweep is complete", zap.Int64("keys", sweep.Keys()), zap.Int("locks", sweep.LockCount()),
			zap.Duration("duration", sweep.Duration))
	}
}
