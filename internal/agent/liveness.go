package agent

import (
	"context"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

const (
	// livenessEvery is between two checks of the agent's loops, livenessChecks how many
	// in a row may find a loop without progress until the agent is not healthy.
	livenessEvery  = time.Second
	livenessChecks = 60
	// stacksLogged bounds what is logged of an agent that stands still, in bytes.
	stacksLogged = 64 << 10
)

// liveness says whether the agent's own loops make progress: those that have something
// to do each second and wait for nothing but each other. A call to Redis, the store or a
// receiver is no standstill, however long it takes.
//
// It counts checks, not time: a process that was stopped, or a clock that was set, is no
// standstill either.
type liveness struct {
	log    *zap.Logger
	checks int // livenessChecks, but in tests

	mu    sync.Mutex
	loops map[*loop]*progressOf

	// reason is why the agent is not healthy; nil while it is.
	reason atomic.Pointer[error]
	looked atomic.Int64 // checks so far
}

func newLiveness(log *zap.Logger) *liveness {
	return &liveness{log: log, checks: livenessChecks, loops: map[*loop]*progressOf{}}
}

// loop is one loop of the agent.
type loop struct {
	name  string
	turns atomic.Uint64
	calls *calls
}

// turn notes that the loop begins another turn.
func (l *loop) turn() { l.turns.Add(1) }

// calls are calls that a loop may wait for: its own ones, and those under a mutex that
// it takes.
type calls struct {
	open  atomic.Int64
	ended atomic.Uint64
}

// begin notes that a call begins; end must be called after it.
func (c *calls) begin() (end func()) {
	c.open.Add(1)
	return func() {
		c.ended.Add(1)
		c.open.Add(-1)
	}
}

// progressOf is what the last check saw of a loop, and how many saw the same.
type progressOf struct {
	turns, ended uint64
	still        int
}

// watch includes a loop until forget.
func (l *liveness) watch(name string, waits *calls) (_ *loop, forget func()) {
	one := &loop{name: name, calls: waits}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loops[one] = &progressOf{}
	return one, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.loops, one)
	}
}

// run checks until ctx ends.
func (l *liveness) run(ctx context.Context) error {
	tick := time.NewTicker(livenessEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			l.check()
		}
	}
}

func (l *liveness) check() {
	still := l.standing()
	l.looked.Add(1)
	was := l.reason.Load()
	if len(still) == 0 {
		l.reason.Store(nil)
		if was != nil {
			l.log.Info("the agent's loops make progress again")
		}
		return
	}
	err := fmt.Errorf("no progress for %s: %s; restart the agent, and report this with its log, which has the stacks",
		time.Duration(l.checks)*livenessEvery, strings.Join(still, ", "))
	l.reason.Store(&err)
	if was == nil {
		var stacks strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1) // a Builder takes everything
		l.log.Error("the agent stands still", zap.Strings("loops", still), zap.String("stacks", stacks.String()[:min(stacks.Len(), stacksLogged)]))
	}
}

// standing are the names of the loops without progress, sorted.
func (l *liveness) standing() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for one, p := range l.loops {
		turns, ended := one.turns.Load(), one.calls.ended.Load()
		if p.turns != turns || p.ended != ended || one.calls.open.Load() > 0 {
			*p = progressOf{turns: turns, ended: ended}
			continue
		}
		if p.still++; p.still >= l.checks {
			out = append(out, one.name)
		}
	}
	slices.Sort(out)
	return out
}

// healthy is why /-/healthy fails; nil while it does not.
func (l *liveness) healthy() error {
	if reason := l.reason.Load(); reason != nil {
		return *reason
	}
	return nil
}

// probe reads each second what pages read of the agent's memory, so that mutexes that
// wait for each other are noticed though nobody looks.
func (a *Agent) probe(ctx context.Context) error {
	turns, forget := a.liveness.watch("lists of targets", &calls{})
	defer forget()
	tick := time.NewTicker(livenessEvery)
	defer tick.Stop()
	for {
		turns.turn()
		a.Targets()
		a.downTargets()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
