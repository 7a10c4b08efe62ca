package replicas

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

	"github.com/locksteward/locksteward/store"
)

// Hooks do the work. They are called in goroutines of the keeper, of one duty one at a
// time.
type Hooks struct {
	// Take begins a duty. After an error the duty is left to others for a while.
	Take func(ctx context.Context, duty string) error
	// Drop ends a duty, and returns when nothing of it runs. lost says that it is
	// another's already: nothing that is written arrives.
	Drop func(ctx context.Context, duty string, lost bool)
	// Reach says why the target of a duty cannot be reached, "" if it can: within the bound
	// of ctx, and of several targets at a time. Nil: all of them can.
	Reach func(ctx context.Context, duty string) (why string)
	// Changed is told that the roll is another, and leases are renewed; it must be quick.
	Changed func()
}

// Keeper says that this replica is there, takes duties, renews their leases and gives
// them away. Make one with [Open].
type Keeper struct {
	log   *zap.Logger
	store *store.Store
	ttl   time.Duration
	hooks Hooks
	peers *Peers
	ways  *lookout
	soon  chan struct{} // beat now, of size 1

	// asking keeps looks at the roll, for certificates nobody knows, from being many.
	asking sync.Mutex
	asked  time.Time

	mu      sync.Mutex
	me      store.Replica
	duties  []Duty
	held    map[string]*held
	shunned map[string]time.Time // duties that could not be taken: not before
	roll    store.Roll
	present attendance
	changed chan struct{} // closed and replaced with every roll
	// heard is when the question was asked that the database answered last, settled that
	// an answer was acted on.
	heard   time.Time
	settled bool
	away    bool // the database, as logged last
	// alone is for how long the database has been asked in vain, failed when that was
	// seen last.
	alone  time.Duration
	failed time.Time
	ending bool
	work   sync.WaitGroup
}

// held is a duty of this replica.
type held struct {
	lease store.Lease
	asked time.Time // before the answer that gave lease
	// ready says that the work began, over that it ends.
	ready, over bool
}

const (
	// shunFor is how long a duty that could not be taken is left to others.
	shunFor = 5 * time.Second
	// vanishedKept is how long replicas that vanished are remembered.
	vanishedKept = time.Hour
	// aloneAfter is for how many leases the database must have been asked in vain before
	// this replica counts as alone.
	aloneAfter = 3
)

// Open listens for other replicas. version is the program's; the store must not be
// closed before the keeper.
func Open(log *zap.Logger, st *store.Store, cfg Config, version string) (*Keeper, error) {
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
	k := &Keeper{
		log: log, store: st, ttl: cfg.Lease, peers: peers,
		me: store.Replica{
			ID: fmt.Sprintf("%s process %d (%s)", name, os.Getpid(), strings.ToLower(rand.Text()[:6])), Name: name, Address: address,
			Key: peers.key, Version: version,
		},
		held: map[string]*held{}, shunned: map[string]time.Time{}, present: newAttendance(ripeAfter * cfg.Lease / beatsPerLease), changed: make(chan struct{}),
		soon: make(chan struct{}, 1),
	}
	k.ways = newLookout(log, func() {
		select {
		case k.soon <- struct{}{}:
		default:
		}
	})
	peers.knows = k.knows
	return k, nil
}

// Peers are the other replicas as this one calls them.
func (k *Keeper) Peers() *Peers { return k.peers }

// Me is this replica.
func (k *Keeper) Me() store.Replica {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.me
}

// Use gives the keeper what does the work. It comes before Run.
func (k *Keeper) Use(h Hooks) { k.hooks, k.ways.try = h, h.Reach }

// SetDuties replaces what this replica could do. What it does and should do no longer
// is for the caller to end, with [Keeper.Yield].
func (k *Keeper) SetDuties(duties []Duty) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.duties = slices.Clone(duties)
	k.me.Targets = k.me.Targets[:0:0]
	for _, d := range duties {
		if d.Name != store.House {
			k.me.Targets = append(k.me.Targets, d.Name)
		}
	}
}

// Lease is the lease under which a duty is written; false where this replica has none.
// It may be over: the database knows.
func (k *Keeper) Lease(duty string) (store.Lease, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h, ok := k.held[duty]
	if !ok {
		return store.Lease{}, false
	}
	return h.lease, true
}

// Holds says whether a duty is this replica's to do now, as far as is known here.
func (k *Keeper) Holds(duty string, now time.Time) bool {
	until, ok := k.Until(duty)
	return ok && now.Before(until)
}

// Until says for how long a duty is this replica's to do unless its lease is renewed:
// counted from before the question, for the clock of the database may be another. It is
// false for what this replica does not do.
func (k *Keeper) Until(duty string) (time.Time, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h, ok := k.held[duty]
	if !ok || !h.ready || h.over {
		return time.Time{}, false
	}
	return h.asked.Add(h.lease.Left), true
}

// Silent is for how long the database has not answered, once that is longer than a
// lease: others may do by now what this replica does. It is 0 before the first answer.
func (k *Keeper) Silent(now time.Time) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if since := now.Sub(k.heard); !k.heard.IsZero() && since > k.ttl {
		return since
	}
	return 0
}

// Settled says that this replica has heard who does what, and has what of it was its
// to take at its start.
func (k *Keeper) Settled() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.settled
}

// Replicas are those that share the database, as of the last beat.
func (k *Keeper) Replicas() []store.Replica {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.roll.Replicas)
}

// Holder is who does a duty, as of the last beat; mine says that it is this one, which
// has begun.
func (k *Keeper) Holder(duty string) (r store.Replica, mine, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.holderLocked(duty)
}

func (k *Keeper) holderLocked(duty string) (r store.Replica, mine, ok bool) {
	if h, ours := k.held[duty]; ours {
		return k.me, true, h.ready && !h.over
	}
	for _, l := range k.roll.Leases {
		if l.Target != duty {
			continue
		}
		for _, r := range k.roll.Replicas {
			if r.ID == l.Owner {
				return r, false, true
			}
		}
	}
	return store.Replica{}, false, false
}

// AwaitHolder is [Keeper.Holder], and waits while nobody does it: a take-over is a
// matter of seconds.
func (k *Keeper) AwaitHolder(ctx context.Context, duty string) (r store.Replica, mine bool, err error) {
	for {
		k.mu.Lock()
		r, mine, ok := k.holderLocked(duty)
		changed := k.changed
		k.mu.Unlock()
		if ok {
			return r, mine, nil
		}
		select {
		case <-ctx.Done():
			return store.Replica{}, false, ctx.Err()
		case <-changed:
		}
	}
}

// Run works until ctx ends, then drops all duties and leaves; it returns nil. If a
// newer program changed the schema of the database it drops all of them without a word
// and returns [store.ErrOtherSchema].
func (k *Keeper) Run(ctx context.Context) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var served sync.WaitGroup
	served.Go(func() {
		if err := k.peers.serve(serving); err != nil {
			k.log.Error("other replicas are not answered any more", zap.Error(err))
		}
	})
	tick := time.NewTicker(k.ttl / beatsPerLease)
	defer tick.Stop()
	var over error
	for over == nil && ctx.Err() == nil {
		if err := k.beat(ctx); errors.Is(err, store.ErrOtherSchema) {
			over = err
			break
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-k.soon:
		}
	}
	k.ways.close()
	k.leave(context.WithoutCancel(ctx), tick, over != nil)
	k.ways.work.Wait()
	stop()
	served.Wait()
	k.peers.close()
	return over
}

// Close ends a keeper of which Run was never called.
func (k *Keeper) Close() { k.peers.close() }

func (k *Keeper) holding() map[string]held {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := map[string]held{}
	for duty, h := range k.held {
		out[duty] = *h
	}
	return out
}

// beat says that this replica is there, and acts on what it hears.
func (k *Keeper) beat(ctx context.Context) error {
	asked := time.Now()
	me := k.Me()
	me.Blind, me.Sees = k.ways.says()
	roll, err := k.store.Beat(ctx, me, k.ttl)
	if ctx.Err() != nil && err != nil {
		return nil
	}
	if k.told(err); err != nil {
		return err
	}
	k.take(roll, asked)
	for duty, h := range k.holding() {
		k.keep(ctx, duty, h, roll, asked)
	}
	if k.hooks.Changed != nil {
		k.hooks.Changed()
	}
	k.giveBack(ctx, roll)
	k.look(ctx, roll)
	k.spread(ctx, roll)
	k.mu.Lock()
	k.settled = true
	k.mu.Unlock()
	return nil
}

// Alone says that the database has not answered for three leases, in which it was
// asked again and again. Until then somebody else may have been given what this
// replica does, and it will hear of that: a process that stood still finds its
// connections broken and the database well. It is safe for concurrent use.
func (k *Keeper) Alone() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.alone >= aloneAfter*k.ttl
}

// told logs when the database goes and comes.
func (k *Keeper) told(err error) {
	k.mu.Lock()
	was := k.away
	k.away = err != nil
	if now := time.Now(); err == nil {
		k.alone, k.failed = 0, time.Time{}
	} else {
		// At most a lease each: whoever stood still did not ask.
		if !k.failed.IsZero() {
			k.alone += min(now.Sub(k.failed), k.ttl)
		}
		k.failed = now
	}
	k.mu.Unlock()
	switch {
	case err != nil && !was:
		k.log.Warn("the other replicas cannot be asked: what this one does goes on until another is known to do it", zap.Error(err))
	case err == nil && was:
		k.log.Info("the other replicas can be asked again")
	}
}

// take takes a roll in.
func (k *Keeper) take(roll store.Roll, asked time.Time) {
	k.mu.Lock()
	before := k.roll
	k.roll, k.heard = roll, asked
	k.present.note(roll.Replicas, asked, time.Now())
	close(k.changed)
	k.changed = make(chan struct{})
	k.mu.Unlock()
	k.peers.forget(roll.Replicas)
	for _, r := range roll.Replicas {
		if r.ID != k.me.ID && !slices.ContainsFunc(before.Replicas, func(o store.Replica) bool { return o.ID == r.ID }) {
			k.log.Info("another replica is there", zap.String("replica", r.ID), zap.String("address", r.Address), zap.String("version", r.Version))
		}
	}
	for _, r := range before.Replicas {
		if r.ID != k.me.ID && !slices.ContainsFunc(roll.Replicas, func(o store.Replica) bool { return o.ID == r.ID }) {
			k.log.Warn("a replica is gone", zap.String("replica", r.ID))
		}
	}
}

// Prune forgets replicas that vanished long ago.
func (k *Keeper) Prune(ctx context.Context) (int64, error) {
	return k.store.PruneReplicas(ctx, vanishedKept)
}
