package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/store"
)

const (
	// everything is the name of the lease on all targets at once.
	everything = "*"
	// leaseTTL is how long a database waits for an agent that vanished.
	leaseTTL = 15 * time.Second
	// leaseEvery is how often the lease is renewed.
	leaseEvery = 4 * time.Second
	// awaitEvery is how often it is asked whether another's lease is over.
	awaitEvery = 500 * time.Millisecond
)

// sole keeps a database to one agent: all that this one writes about targets is
// under its lease. A file has a lock of its own.
type sole struct {
	log   *zap.Logger
	store *store.Store // without a fence
	lease atomic.Pointer[store.Lease]
}

// openStore opens the store and keeps other agents out of it.
func (a *Agent) openStore(ctx context.Context, cfg store.Config) error {
	st, err := store.OpenConfig(ctx, cfg)
	if err != nil {
		return err
	}
	a.store, a.opened = st, st
	if !cfg.Shared() {
		return nil // the file is locked
	}
	if a.sole, err = onlyAgent(ctx, a.log, st); err != nil {
		return err
	}
	a.store = st.Under(a.sole.of)
	return nil
}

// closeStore lets the next agent in and closes the store.
func (a *Agent) closeStore(ctx context.Context) error {
	if a.opened == nil {
		return nil
	}
	if a.sole != nil {
		if err := a.sole.end(ctx); err != nil {
			a.log.Warn("the lease on the database is not given back: it expires", zap.Error(err))
		}
	}
	return a.opened.Close()
}

// onlyAgent takes the lease on everything, after an agent that vanished is waited
// for.
func onlyAgent(ctx context.Context, log *zap.Logger, st *store.Store) (*sole, error) {
	s := &sole{log: log, store: st}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	owner := fmt.Sprintf("%s process %d (%s)", host, os.Getpid(), rand.Text()[:6])
	ctx, cancel := context.WithTimeout(ctx, leaseTTL+2*leaseEvery)
	defer cancel()
	tick := time.NewTicker(awaitEvery)
	defer tick.Stop()
	for first := true; ; first = false {
		lease, err := st.AcquireLease(ctx, everything, owner, "", leaseTTL)
		switch {
		case err == nil:
			s.lease.Store(&lease)
			return s, nil
		case !errors.Is(err, store.ErrLeaseHeld):
			return nil, err
		case first:
			log.Warn("another agent uses this database, or did until a moment ago", zap.String("agent", lease.Owner), zap.Duration("for", lease.Left))
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("open store: agent %s uses this database already; stop it first or give this one another store.dsn", lease.Owner)
		case <-tick.C:
		}
	}
}

// of is the lease under which a target is written.
func (s *sole) of(string) (store.Lease, bool) { return *s.lease.Load(), true }

// run renews the lease until ctx ends. It fails if another agent was at work
// meanwhile: what this one knows is not what is true any more.
func (s *sole) run(ctx context.Context) error {
	tick := time.NewTicker(leaseEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := s.renew(ctx); err != nil {
			return err
		}
	}
}

func (s *sole) renew(ctx context.Context) error {
	had := *s.lease.Load()
	lease, err := s.store.RenewLease(ctx, had, leaseTTL)
	if errors.Is(err, store.ErrLeaseLost) {
		lease, err = s.store.AcquireLease(ctx, everything, had.Owner, "", leaseTTL)
		if errors.Is(err, store.ErrLeaseHeld) || err == nil && lease.Fence > had.Fence+1 {
			return fmt.Errorf("another agent took over while the database was away: %w; start this one again when that one is stopped", store.ErrLeaseLost)
		}
	}
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn("the lease on the database is not renewed: it is tried again", zap.Error(err))
		}
		return nil
	}
	s.lease.Store(&lease)
	return nil
}

// end lets the next agent in.
func (s *sole) end(ctx context.Context) error {
	return s.store.ReleaseLease(ctx, *s.lease.Load())
}
