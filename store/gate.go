package store

import (
	"context"
	"errors"
	"sync"
	"time"
)

// askEvery is how often a database that went away is asked whether it is back.
const askEvery = 250 * time.Millisecond

// gate keeps calls from waiting, one after the other, for a database that is
// known to be away: the first that met it waits, the others fail at once, and one
// goroutine asks until it answers again. Of a file there is one for those that write:
// see reopen.
type gate struct {
	mu     sync.Mutex
	why    *Error // nil: open
	closed bool
	cancel context.CancelFunc
	asking sync.WaitGroup
}

// enter returns the reason why op need not be tried.
func (g *gate) enter(op string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.why == nil {
		return nil
	}
	e := *g.why
	e.Op, e.Unsure = op, false
	return &e
}

// shut lets nobody in until ask succeeds.
func (g *gate) shut(why *Error, ask func(ctx context.Context) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.why != nil || g.closed {
		return
	}
	g.why = why
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	g.asking.Go(func() {
		defer cancel()
		tick := time.NewTicker(askEvery)
		defer tick.Stop()
		for {
			if ask(ctx) == nil {
				g.mu.Lock()
				g.why = nil
				g.mu.Unlock()
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

// because says another reason, if it is shut.
func (g *gate) because(why *Error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.why != nil {
		g.why = why
	}
}

// close ends the asking.
func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	if g.cancel != nil {
		g.cancel()
	}
	g.mu.Unlock()
	g.asking.Wait()
}

// ask is whether the server answers. Where it does not, all connections are cut:
// what still waits on one waits for nothing, and new ones are made next time.
func (s *Store) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	var one int
	err := errors.Join(
		s.write.row(ctx, "SELECT 1").Scan(&one),
		s.read.row(ctx, "SELECT 1").Scan(&one),
	)
	if err != nil {
		s.lines.cut()
	}
	return err
}
