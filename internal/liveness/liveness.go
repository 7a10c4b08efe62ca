// Package liveness finds loops that make no progress: goroutines that have something to do each second and wait for
// nothing but each other. A program whose loops are stuck reports itself as unhealthy, so that it is restarted.
package liveness

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
	// every is the time between two checks, maxChecks how many checks in a row may find a loop without progress until
	// the program is unhealthy.
	every     = time.Second
	maxChecks = 60
	// maxStacks bounds the stack traces that are logged, in bytes.
	maxStacks = 64 << 10
)

// A Monitor checks loops once a second. A call to a server that is under way counts as progress, however long it takes.
//
// It counts checks, not time: a process that was stopped or a clock that was set makes no loop stuck. Its methods may be
// called concurrently.
type Monitor struct {
	log    *zap.Logger
	checks int

	mu    sync.Mutex // guards loops
	loops map[*Loop]*progress

	reason atomic.Pointer[error] // why the program is unhealthy; nil while it is healthy
	done   atomic.Int64          // checks so far
}

// New returns a Monitor that logs loops that are stuck.
func New(log *zap.Logger) *Monitor {
	return &Monitor{log: log, checks: maxChecks, loops: map[*Loop]*progress{}}
}

// SetChecks sets how many checks in a row may find a loop without progress; 60 by default. Call it before Run.
func (m *Monitor) SetChecks(n int) { m.checks = n }

// Checks returns the number of checks so far.
func (m *Monitor) Checks() int64 { return m.done.Load() }

// A Loop is one loop that is monitored.
type Loop struct {
	name  string
	turns atomic.Uint64
	calls *Calls
}

// Progress notes that the loop begins another iteration.
func (l *Loop) Progress() { l.turns.Add(1) }

// Calls counts the calls that a loop may wait for: its own, and those of others under a mutex that it takes. The zero
// value is ready for use.
type Calls struct {
	open  atomic.Int64
	ended atomic.Uint64
}

// Begin notes that a call begins. The caller calls end after the call.
func (c *Calls) Begin() (end func()) {
	c.open.Add(1)
	return func() {
		c.ended.Add(1)
		c.open.Add(-1)
	}
}

// progress is what the last check saw of a loop, and how many checks in a row saw the same.
type progress struct {
	turns, ended uint64
	same         int
}

// Add monitors a loop until the caller calls remove.
func (m *Monitor) Add(name string, waitsFor *Calls) (_ *Loop, remove func()) {
	loop := &Loop{name: name, calls: waitsFor}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loops[loop] = &progress{}
	return loop, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.loops, loop)
	}
}

// Run checks all loops once a second until ctx ends.
func (m *Monitor) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			m.check()
		}
	}
}

func (m *Monitor) check() {
	stuck := m.stuck()
	m.done.Add(1)
	was := m.reason.Load()
	if len(stuck) == 0 {
		m.reason.Store(nil)
		if was != nil {
			m.log.Info("all loops make progress again")
		}
		return
	}
	err := fmt.Errorf("no progress for %s: %s; restart the agent, and report this with its log, which has the stack traces",
		time.Duration(m.checks)*every, strings.Join(stuck, ", "))
	m.reason.Store(&err)
	if was == nil {
		var stacks strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1) // a Builder returns no error
		m.log.Error("loops make no progress", zap.Strings("loops", stuck), zap.String("stacks", stacks.String()[:min(stacks.Len(), maxStacks)]))
	}
}

// stuck returns the sorted names of the loops without progress.
func (m *Monitor) stuck() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for loop, p := range m.loops {
		turns, ended := loop.turns.Load(), loop.calls.ended.Load()
		if p.turns != turns || p.ended != ended || loop.calls.open.Load() > 0 {
			*p = progress{turns: turns, ended: ended}
			continue
		}
		if p.same++; p.same >= m.checks {
			out = append(out, loop.name)
		}
	}
	slices.Sort(out)
	return out
}

// Healthy returns why the program is unhealthy; nil while it is healthy.
func (m *Monitor) Healthy() error {
	if reason := m.reason.Load(); reason != nil {
		return *reason
	}
	return nil
}
