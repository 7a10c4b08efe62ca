package store

import (
	"context"
	"errors"
	"sync"
	"time"
)

// probeEvery is how often a server that is unreachable is probed.
const probeEvery = 250 * time.Millisecond

// availability lets calls fail at once while the server is known to be unreachable:
// the call that found out waited for its timeout, the others do not. A goroutine
// probes the server until it answers. A file is always available.
type availability struct {
	// mu guards the fields below it. It is never held over a probe.
	mu     sync.Mutex
	outage *Error // nil: available
	closed bool
	cancel context.CancelFunc

	probes sync.WaitGroup
}

// check returns the outage as the error of op, nil if the server is available.
func (a *availability) check(op string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.outage == nil {
		return nil
	}
	e := *a.outage
	e.Op, e.Unsure = op, false
	return &e
}

// lost records an outage, which ends when probe succeeds.
func (a *availability) lost(why *Error, probe func(ctx context.Context) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.outage != nil || a.closed {
		return
	}
	a.outage = why
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	a.probes.Go(func() {
		defer cancel()
		tick := time.NewTicker(probeEvery)
		defer tick.Stop()
		for {
			if probe(ctx) == nil {
				a.mu.Lock()
				a.outage = nil
				a.mu.Unlock()
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
}

// close ends the probes.
func (a *availability) close() {
	a.mu.Lock()
	a.closed = true
	if a.cancel != nil {
		a.cancel()
	}
	a.mu.Unlock()
	a.probes.Wait()
}

// probe reports whether the server answers. If it does not, all connections are
// closed: a call that waits on one would wait in vain, and later calls connect again.
func (s *Store) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var one int
	err := errors.Join(
		s.write.row(ctx, "SELECT 1").Scan(&one),
		s.read.row(ctx, "SELECT 1").Scan(&one),
	)
	if err != nil {
		s.conns.closeAll()
	}
	return err
}
