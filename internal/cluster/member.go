package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	"github.com/locksteward/locksteward/store"
)

const (
	// retryAfter is for how long a duty that could not be started is left to other replicas.
	retryAfter = 5 * time.Second
	// vanishedKept is for how long replicas that vanished stay in the database.
	vanishedKept = time.Hour
	// isolatedAfter is after how many leases without an answer of the database a replica counts as isolated.
	isolatedAfter = 3
)

// Hooks work on duties. They are called concurrently, but those of one duty one at a time.
type Hooks struct {
	// Start starts the work on a duty. After an error the duty is left to other replicas for a while.
	Start func(ctx context.Context, duty string) error
	// Stop ends the work on a duty, and returns when none of it runs. Lost reports that another replica owns the lease:
	// no write would arrive.
	Stop func(ctx context.Context, duty string, lost bool)
	// Ping asks a target over the open connections of the work on it, and Dial over new ones. An error says why no
	// master answers; Ping fails where the target is not this replica's. Without Dial all targets count as reachable.
	Ping, Dial func(ctx context.Context, target string) error
	// Changed is called when the membership or a lease changed, and must return quickly. It may be nil.
	Changed func()
}

// Member is this replica as a member of the cluster: it sends heartbeats, and acquires, renews and releases the leases of
// duties. Make one with [Open].
type Member struct {
	log    *zap.Logger
	store  *store.Store
	ttl    time.Duration
	hooks  Hooks
	peers  *Peers
	prober *prober
	early  chan struct{} // of size 1: the next heartbeat is due now

	keyReads singleflight.Group // see trusts
	keysRead time.Time          // by the last of keyReads

	mu       sync.Mutex // guards all below but work
	self     store.Replica
	duties   []Duty
	leases   map[string]*ownedLease
	retryAt  map[string]time.Time // when a duty that could not be started may be acquired again
	members  store.Membership
	presence presence
	changed  chan struct{} // closed and replaced with every membership
	answered time.Time     // when the heartbeat was sent that the database answered last
	joined   bool
	failing  bool          // the last heartbeat failed
	silence  time.Duration // for how long heartbeats have failed, each counted for one lease at most
	failed   time.Time     // when the last heartbeat failed; zero: it did not
	leaving  bool
	work     sync.WaitGroup // hooks under way
}

// Open listens for other replicas. Version is the version of the program. The store must not be
// closed before the member.
func Open(log *zap.Logger, st *store.Store, cfg Config, version string, hooks Hooks) (*Member, error) {
	cfg = cfg.WithDefaults()
	peers, err := newPeers(log, cfg.Listen)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	name := cfg.Name
	if name == "" {
		name = host
	}
	address := cfg.Advertise
	if address == "" {
		address = peers.ln.Addr().String()
	}
	m := &Member{
		log: log, store: st, ttl: cfg.Lease, hooks: hooks, peers: peers, early: make(chan struct{}, 1),
		self: store.Replica{
			ID: fmt.Sprintf("%s process %d (%s)", name, os.Getpid(), strings.ToLower(rand.Text()[:6])), Name: name, Address: address,
			Key: peers.key, Version: version,
		},
		leases: map[string]*ownedLease{}, retryAt: map[string]time.Time{}, presence: newPresence(stableAfter * cfg.Lease / heartbeatsPerLease),
		changed: make(chan struct{}),
	}
	m.prober = newProber(log, hooks, func() {
		select {
		case m.early <- struct{}{}:
		default:
		}
	})
	peers.trusts = m.trusts
	return m, nil
}

// Peers returns the other replicas, for calls.
func (m *Member) Peers() *Peers { return m.peers }

// Self is this replica.
func (m *Member) Self() store.Replica {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.self
}

// SetDuties replaces the duties that this replica can work on. Those that it works on and that are not among them are
// for the caller to end, with [Member.Release].
func (m *Member) SetDuties(duties []Duty) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.duties = slices.Clone(duties)
	m.self.Targets = m.self.Targets[:0:0]
	for _, d := range duties {
		if d.Name != store.SingletonDuties {
			m.self.Targets = append(m.self.Targets, d.Name)
		}
	}
}

// Lease returns the lease for writes about a duty; false if this replica has none. It may have expired: the database
// decides.
func (m *Member) Lease(duty string) (store.Lease, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.leases[duty]
	if !ok {
		return store.Lease{}, false
	}
	return l.lease, true
}

// Owns reports whether this replica works on a duty and its lease has not expired at now, as far as is known here.
func (m *Member) Owns(duty string, now time.Time) bool {
	until, ok := m.OwnedUntil(duty)
	return ok && now.Before(until)
}

// OwnedUntil returns when the lease of a duty expires unless it is renewed, by the clock of this process: the time is
// counted from before the query that renewed it. It is false for duties that this replica does not work on.
func (m *Member) OwnedUntil(duty string) (time.Time, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.leases[duty]
	if !ok || !l.started || l.stopping {
		return time.Time{}, false
	}
	return l.asked.Add(l.lease.Left), true
}

// Unreachable reports whether this replica cannot reach the target of a duty now.
func (m *Member) Unreachable(duty string) bool { return m.prober.unreachable(duty) }

// NoAnswerFor returns for how long the database has not answered, once that is longer than a lease: other replicas may
// own the leases of this one by now. It is 0 before the first answer.
func (m *Member) NoAnswerFor(now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if since := now.Sub(m.answered); !m.answered.IsZero() && since > m.ttl {
		return since
	}
	return 0
}

// Isolated reports whether the database has not answered any heartbeat of the last three leases. Until then another
// replica may have been given the duties of this one, and this one will learn of that: a process that was paused finds
// its connections broken and the database well.
func (m *Member) Isolated() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.silence >= isolatedAfter*m.ttl
}

// Joined reports whether this replica has read who owns what, and has acquired the duties that were its own at the start.
func (m *Member) Joined() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.joined
}

// Replicas returns the replicas that share the database, as of the last heartbeat.
func (m *Member) Replicas() []store.Replica {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.members.Replicas)
}

// Owner returns the replica that owns a duty, as of the last heartbeat; ok is false if there is none. Self reports that
// it is this replica; ok is false then while the work on the duty starts or ends.
func (m *Member) Owner(duty string) (r store.Replica, self, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ownerLocked(duty)
}

func (m *Member) ownerLocked(duty string) (r store.Replica, self, ok bool) {
	if l, own := m.leases[duty]; own {
		return m.self, true, l.started && !l.stopping
	}
	for _, l := range m.members.Leases {
		if l.Target != duty {
			continue
		}
		for _, r := range m.members.Replicas {
			if r.ID == l.Owner {
				return r, false, true
			}
		}
	}
	return store.Replica{}, false, false
}

// AwaitOwner returns the replica that owns a duty, and waits while there is none: a take-over takes seconds.
func (m *Member) AwaitOwner(ctx context.Context, duty string) (r store.Replica, self bool, err error) {
	for {
		m.mu.Lock()
		r, self, ok := m.ownerLocked(duty)
		changed := m.changed
		m.mu.Unlock()
		if ok {
			return r, self, nil
		}
		select {
		case <-ctx.Done():
			return store.Replica{}, false, ctx.Err()
		case <-changed:
		}
	}
}

// Run sends heartbeats and works on duties until ctx ends, then stops all of them, leaves the cluster and returns nil.
// After a newer program changed the schema of the database it stops all of them as lost, and returns
// [store.ErrOtherSchema].
func (m *Member) Run(ctx context.Context) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var served sync.WaitGroup
	served.Go(func() {
		if err := m.peers.serve(serving); err != nil {
			m.log.Error("calls of other replicas are no longer answered", zap.Error(err))
		}
	})
	tick := time.NewTicker(m.ttl / heartbeatsPerLease)
	defer tick.Stop()
	var outdated error
	for outdated == nil && ctx.Err() == nil {
		if err := m.heartbeat(ctx); errors.Is(err, store.ErrOtherSchema) {
			outdated = err
			break
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-m.early:
		}
	}
	m.prober.close()
	m.leave(context.WithoutCancel(ctx), tick, outdated != nil)
	m.prober.work.Wait()
	stop()
	served.Wait()
	m.peers.close()
	return outdated
}

// Close closes a member of which Run was never called.
func (m *Member) Close() { m.peers.close() }

// heartbeat renews the presence and the leases of this replica, and acts on the membership that comes back.
func (m *Member) heartbeat(ctx context.Context) error {
	asked := time.Now()
	self := m.Self()
	self.Unreachable, self.Reachable = m.prober.report()
	members, err := m.store.Heartbeat(ctx, self, m.ttl)
	if ctx.Err() != nil && err != nil {
		return nil
	}
	if m.recordAnswer(err); err != nil {
		return err
	}
	m.setMembership(members, asked)
	for duty, l := range m.ownedLeases() {
		m.reconcile(ctx, duty, l, members, asked)
	}
	if m.hooks.Changed != nil {
		m.hooks.Changed()
	}
	m.releaseUnused(ctx, members)
	m.updateProber(ctx, members)
	m.rebalance(ctx, members)
	m.mu.Lock()
	m.joined = true
	m.mu.Unlock()
	return nil
}

// recordAnswer records whether the database answered a heartbeat, and logs changes.
func (m *Member) recordAnswer(err error) {
	m.mu.Lock()
	was := m.failing
	m.failing = err != nil
	if now := time.Now(); err == nil {
		m.silence, m.failed = 0, time.Time{}
	} else {
		// At most a lease each: a process that was paused sent no heartbeat meanwhile.
		if !m.failed.IsZero() {
			m.silence += min(now.Sub(m.failed), m.ttl)
		}
		m.failed = now
	}
	m.mu.Unlock()
	switch {
	case err != nil && !was:
		m.log.Warn("heartbeat failed: this replica continues its work until it learns that another one has taken over", zap.Error(err))
	case err == nil && was:
		m.log.Info("heartbeats succeed again")
	}
}

// setMembership applies the answer to a heartbeat that was sent at asked.
func (m *Member) setMembership(members store.Membership, asked time.Time) {
	m.mu.Lock()
	before := m.members
	m.members, m.answered = members, asked
	m.presence.update(members.Replicas, asked, time.Now())
	close(m.changed)
	m.changed = make(chan struct{})
	m.mu.Unlock()
	m.peers.keep(members.Replicas)
	for _, r := range notIn(members.Replicas, before.Replicas) {
		if r.ID != m.self.ID {
			m.log.Info("replica joined", zap.String("replica", r.ID), zap.String("address", r.Address), zap.String("version", r.Version))
		}
	}
	for _, r := range notIn(before.Replicas, members.Replicas) {
		if r.ID != m.self.ID {
			m.log.Warn("replica left", zap.String("replica", r.ID))
		}
	}
}

// notIn returns the replicas of list that are not in other.
func notIn(list, other []store.Replica) []store.Replica {
	return slices.DeleteFunc(slices.Clone(list), func(r store.Replica) bool {
		return slices.ContainsFunc(other, func(o store.Replica) bool { return o.ID == r.ID })
	})
}

// updateProber has those targets probed that the membership asks for.
func (m *Member) updateProber(ctx context.Context, members store.Membership) {
	m.mu.Lock()
	duties, own := slices.Clone(m.duties), map[string]bool{}
	for duty := range m.leases {
		own[duty] = true
	}
	m.mu.Unlock()
	m.prober.update(ctx, m.self.ID, own, duties, members)
}

// Prune deletes replicas that vanished long ago from the database, and returns how many.
func (m *Member) Prune(ctx context.Context) (int64, error) {
	return m.store.PruneReplicas(ctx, vanishedKept)
}
