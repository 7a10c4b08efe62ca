package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/store"
)

// ownedLease is the lease of a duty of this replica. [Member.mu] guards it.
type ownedLease struct {
	lease    store.Lease
	asked    time.Time // before the query that returned lease
	started  bool      // the work has started
	stopping bool      // the work ends
}

// ownedLeases returns a copy of the leases of this replica, by duty.
func (m *Member) ownedLeases() map[string]ownedLease {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]ownedLease{}
	for duty, l := range m.leases {
		out[duty] = *l
	}
	return out
}

// reconcile continues the work on a duty under its renewed lease, or stops it.
func (m *Member) reconcile(ctx context.Context, duty string, had ownedLease, members store.Membership, asked time.Time) {
	i := slices.IndexFunc(members.Leases, func(l store.Lease) bool { return l.Target == duty })
	switch {
	case i >= 0 && members.Leases[i].Owner == had.lease.Owner && members.Leases[i].Fence == had.lease.Fence:
		m.renew(duty, had.lease, members.Leases[i], asked)
		return
	case i < 0 && !had.stopping:
		// It expired. If no replica acquired it since, nothing has changed.
		asked = time.Now()
		lease, err := m.store.AcquireLease(ctx, duty, had.lease.Owner, m.self.Address, m.ttl)
		if err == nil && lease.Fence == had.lease.Fence+1 {
			m.renew(duty, had.lease, lease, asked)
			return
		}
		if err != nil && !errors.Is(err, store.ErrLeaseHeld) {
			return // repeated with the next heartbeat
		}
		if err == nil {
			_ = m.store.ReleaseLease(ctx, lease) // else it expires
		}
	}
	if !had.stopping {
		m.log.Warn("another replica took over a duty", zap.String("duty", duty))
	}
	m.stop(ctx, duty, true)
}

func (m *Member) renew(duty string, was, lease store.Lease, asked time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l, ok := m.leases[duty]; ok && l.lease.Fence == was.Fence {
		l.lease, l.asked = lease, asked
	}
}

// releaseUnused releases leases of this replica under which no work runs: the answer to an
// acquire was lost, or a release did not reach the database. Each heartbeat would renew them, and no replica would ever
// work on their duties.
func (m *Member) releaseUnused(ctx context.Context, members store.Membership) {
	for _, l := range members.Leases {
		m.mu.Lock()
		_, used := m.leases[l.Target]
		m.mu.Unlock()
		if used || l.Owner != m.self.ID {
			continue
		}
		if err := m.store.ReleaseLease(ctx, l); err != nil {
			continue // repeated with the next heartbeat
		}
		m.log.Info("unused lease released", zap.String("duty", l.Target))
	}
}

// rebalance acquires and releases duties.
func (m *Member) rebalance(ctx context.Context, members store.Membership) {
	m.mu.Lock()
	if m.leaving {
		m.mu.Unlock()
		return
	}
	now := time.Now()
	stable := map[string]bool{}
	for _, r := range members.Replicas {
		stable[r.ID] = m.presence.stable(r.ID, now)
	}
	retryAt := maps.Clone(m.retryAt)
	v := view{
		self: m.self.ID, members: members, duties: slices.Clone(m.duties),
		eligible: func(r store.Replica, duty string) bool {
			if r.ID == m.self.ID && now.Before(retryAt[duty]) {
				return false
			}
			return duty == store.SingletonDuties || slices.Contains(r.Targets, duty)
		},
		stable:    func(id string) bool { return stable[id] },
		confirmed: func(duty string) bool { _, confirmed := m.prober.confirmed(duty); return confirmed },
		unreliable: func(id, duty string) bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.presence.unreliable(id, duty, now)
		},
	}
	// The lease of a duty that ends is not released yet, and duties move one at a time.
	stopping := false
	for _, l := range m.leases {
		stopping = stopping || l.stopping
	}
	m.mu.Unlock()
	d := decide(v)
	for _, duty := range d.acquire {
		m.acquire(ctx, duty)
	}
	for _, duty := range d.handOver {
		reason, _ := m.prober.confirmed(duty)
		if m.stop(ctx, duty, false) {
			m.log.Warn("target handed over: unreachable from this replica, but not from another one",
				zap.String("target", duty), zap.String("replica", reachableFrom(v, duty)), zap.String("reason", reason))
		}
	}
	if stopping {
		return
	}
	for _, duty := range d.release {
		m.log.Info("duty released to a replica with fewer", zap.String("duty", duty))
		m.stop(ctx, duty, false)
	}
}

// acquire acquires the lease of a duty without an owner, and starts the work.
func (m *Member) acquire(ctx context.Context, duty string) {
	m.mu.Lock()
	_, own := m.leases[duty]
	m.mu.Unlock()
	if own {
		return // its work still ends
	}
	asked := time.Now()
	lease, err := m.store.AcquireLease(ctx, duty, m.self.ID, m.self.Address, m.ttl)
	if err != nil {
		if !errors.Is(err, store.ErrLeaseHeld) && ctx.Err() == nil {
			m.log.Warn("lease not acquired; it is tried again", zap.String("duty", duty), zap.Error(err))
		}
		return
	}
	l := &ownedLease{lease: lease, asked: asked}
	m.mu.Lock()
	m.leases[duty] = l
	m.mu.Unlock()
	m.work.Go(func() {
		err := m.hooks.Start(ctx, duty)
		m.mu.Lock()
		l.started = err == nil
		stopping := l.stopping
		if err != nil {
			m.retryAt[duty] = time.Now().Add(retryAfter)
		} else {
			delete(m.retryAt, duty)
		}
		m.mu.Unlock()
		switch {
		case err != nil:
			m.log.Error("duty not started; it is left to other replicas", zap.String("duty", duty), zap.Error(err))
			m.release(ctx, duty, l)
		case stopping:
			m.hooks.Stop(ctx, duty, true)
			m.release(ctx, duty, l)
		}
		if m.hooks.Changed != nil {
			m.hooks.Changed()
		}
	})
}

// stop stops the work on a duty and releases its lease, in the background. It returns false if that is under way already.
func (m *Member) stop(ctx context.Context, duty string, lost bool) bool {
	m.mu.Lock()
	l, ok := m.leases[duty]
	if !ok || l.stopping {
		m.mu.Unlock()
		return false
	}
	l.stopping = true
	started := l.started
	m.mu.Unlock()
	if !started {
		return true // acquire stops it
	}
	ctx = context.WithoutCancel(ctx)
	m.work.Go(func() {
		m.hooks.Stop(ctx, duty, lost)
		m.release(ctx, duty, l)
		if m.hooks.Changed != nil {
			m.hooks.Changed()
		}
	})
	return true
}

// release releases the lease of a duty of which no work runs.
func (m *Member) release(ctx context.Context, duty string, l *ownedLease) {
	m.mu.Lock()
	lease := l.lease
	m.mu.Unlock()
	if err := m.store.ReleaseLease(context.WithoutCancel(ctx), lease); err != nil {
		m.log.Warn("lease not released; it expires", zap.String("duty", duty), zap.Error(err))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leases[duty] == l {
		delete(m.leases, duty)
	}
}

// ReacquireAll stops all duties without further writes, so that each is acquired anew, by this replica or another: what
// the database says of them is not what this replica wrote.
func (m *Member) ReacquireAll(ctx context.Context) {
	for duty := range m.ownedLeases() {
		m.stop(ctx, duty, true)
	}
}

// Release stops duties and releases their leases, and returns when none of their work runs, or when ctx ends.
func (m *Member) Release(ctx context.Context, duties ...string) {
	for _, duty := range duties {
		m.stop(ctx, duty, false)
	}
	for {
		m.mu.Lock()
		left := slices.ContainsFunc(duties, func(d string) bool { return m.leases[d] != nil })
		changed := m.changed
		m.mu.Unlock()
		if !left {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(m.ttl / heartbeatsPerLease):
		}
	}
}

// leave stops all duties while their leases are renewed, and removes this replica from the membership. If lost, no writes
// arrive any more.
func (m *Member) leave(ctx context.Context, tick *time.Ticker, lost bool) {
	m.mu.Lock()
	m.leaving = true
	m.mu.Unlock()
	// The singleton duties last: they send what the targets report at their end.
	for duty := range m.ownedLeases() {
		if duty != store.SingletonDuties {
			m.stop(ctx, duty, lost)
		}
	}
	m.awaitWork(ctx, tick)
	if !lost {
		m.startSingletonDuties(ctx)
	}
	m.stop(ctx, store.SingletonDuties, lost)
	m.awaitWork(ctx, tick)
	if err := m.store.Leave(ctx, m.Self().ID); err != nil {
		m.log.Warn("leave the cluster: the other replicas wait for the expiry of this one's leases", zap.Error(err))
	}
}

// startSingletonDuties starts the singleton duties if no replica owns them: the last notifications and audit entries of
// this replica must be sent and shipped, and it may be the only one.
func (m *Member) startSingletonDuties(ctx context.Context) {
	m.mu.Lock()
	_, own := m.leases[store.SingletonDuties]
	configured := slices.ContainsFunc(m.duties, func(d Duty) bool { return d.Name == store.SingletonDuties })
	m.mu.Unlock()
	if own || !configured {
		return
	}
	asked := time.Now()
	lease, err := m.store.AcquireLease(ctx, store.SingletonDuties, m.self.ID, m.self.Address, m.ttl)
	if err != nil {
		return // another replica owns them, or the database does not answer and the next start continues
	}
	l := &ownedLease{lease: lease, asked: asked}
	m.mu.Lock()
	m.leases[store.SingletonDuties] = l
	m.mu.Unlock()
	err = m.hooks.Start(ctx, store.SingletonDuties)
	m.mu.Lock()
	l.started = err == nil
	m.mu.Unlock()
	if err != nil {
		m.release(ctx, store.SingletonDuties, l)
	}
}

// awaitWork waits for the hooks under way, and sends heartbeats meanwhile.
func (m *Member) awaitWork(ctx context.Context, tick *time.Ticker) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.work.Wait()
	}()
	for waiting := true; waiting; {
		select {
		case <-ended:
			waiting = false
		case <-tick.C:
			_ = m.heartbeat(ctx) // a lease that expires meanwhile is as good as released
		}
	}
}
