package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/locksteward/locksteward/internal/respcheck"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// Waits before a pair is set up again.
const (
	rebuildFirst = 50 * time.Millisecond
	rebuildMost  = 5 * time.Second
	// rebuildSteady is how long a pair must have stood for the next one to be set up
	// at once: connections that break again and again are not dialled in a storm.
	rebuildSteady = 10 * time.Second
	// retryRefused is how long something that the server or its ACL refused is
	// not tried again: each try is an entry in its ACL LOG.
	retryRefused = 10 * time.Minute
)

// nodeWatch watches one master. Its goroutines belong to the watcher.
type nodeWatch struct {
	w         *watcher
	addr      string
	queue     *queue
	reads     *readCost
	goneRates goneRates     // belongs to the goroutine that reads
	replan    chan struct{} // holds one token when the plan changed
	tried     chan struct{} // closed when the first pair stood, or did not

	mu     sync.Mutex
	master connect.Master
	plan   watchPlan
	mode   source.WatchMode
	reason string // why it is not tracking
	replID string // of the last pair's server; "" if not known
	// since is when the pair was set up, lastGood when the last good check began;
	// zero without a pair.
	since, lastGood time.Time
	// blindFrom is since when changes may go unseen; zero while none do.
	blindFrom time.Time
	blind     time.Duration // of intervals that are over
	// repaired says that a complete sweep began and ended since the pair was set
	// up: from then on all that is watched is known.
	repaired bool
	// keys is how many the last complete pass went over.
	keys int64
	// proven says that a keyspace notification came at all; silent, that a sweep
	// found what should have come.
	proven, silent bool
	suspects       map[string]suspect
	waiting        map[string]int32 // locks that are waited for, and by how many
}

func newNodeWatch(w *watcher, m connect.Master, plan watchPlan) *nodeWatch {
	return &nodeWatch{
		w: w, addr: m.Addr, queue: newQueue(w.began), reads: newReadCost(), goneRates: newGoneRates(), replan: make(chan struct{}, 1), tried: make(chan struct{}),
		master: m, plan: plan, mode: source.WatchSweep, reason: "not set up yet",
		suspects: map[string]suspect{}, waiting: map[string]int32{},
	}
}

// watch keeps a pair up until ctx ends.
func (n *nodeWatch) watch(ctx context.Context) {
	wait := rebuildFirst
	tried := sync.OnceFunc(func() { close(n.tried) })
	defer tried()
	for n.w.allowed(ctx) == nil {
		p, err := n.open(ctx)
		if _, said := errors.AsType[redis.Error](err); said || errors.Is(err, errRefused) || respcheck.Lied(err) {
			n.without(err)
		}
		tried() // those who waited for it find the state as it is
		switch {
		case err == nil:
			stood := time.Now()
			err = n.supervise(ctx, p)
			p.close()
			<-p.ended
			n.fault(ctx, err)
			switch {
			case errors.Is(err, errReplan), errors.Is(err, errPaused):
			case time.Since(stood) > rebuildSteady:
				wait = rebuildFirst
			default:
				n.pause(ctx, wait)
				wait = min(2*wait, rebuildMost)
			}
		case errors.Is(err, errRefused):
			n.pause(ctx, retryRefused)
		default:
			n.w.log.Debug("watch is not set up", zap.String("node", n.addr), zap.Error(err))
			n.pause(ctx, wait)
			wait = min(2*wait, rebuildMost)
		}
	}
}

// pause waits for d, for another plan, or for a new password or certificate.
func (n *nodeWatch) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-n.replan:
	case <-n.w.s.conn.Renewed():
	case <-timer.C:
	}
}

// open sets up the best pair that the server and the configuration allow.
func (n *nodeWatch) open(ctx context.Context) (*pair, error) {
	n.mu.Lock()
	prefixes := n.plan.prefixes
	n.mu.Unlock()
	wanted := n.w.s.cfg.Watch
	if wanted == source.WatchOff {
		return nil, fmt.Errorf("%w: the configuration says watch: off", errRefused)
	}
	conn := n.w.s.conn
	to := listener{changed: n.changed, flushed: n.flushed}
	var refused error
	if wanted != source.WatchKeyspace {
		p, err := openTracking(ctx, conn, n.w.s.caps, n.addr, tracked(prefixes), to)
		if err == nil {
			n.up(source.WatchTracking, p)
			return p, nil
		}
		if wanted == source.WatchTracking || !errors.Is(err, errRefused) {
			return nil, err
		}
		refused = err
	}
	p, err := openKeyspace(ctx, conn, n.addr, n.w.s.target.DB, prefixes, to)
	if err != nil {
		return nil, errors.Join(refused, err)
	}
	n.up(source.WatchKeyspace, p)
	return p, nil
}

// up notes that a pair stands, and has everything known looked at again: what
// changed before is in nobody's queue.
func (n *nodeWatch) up(mode source.WatchMode, p *pair) {
	now := time.Now()
	n.mu.Lock()
	n.mode, n.reason = mode, ""
	if mode == source.WatchKeyspace {
		n.reason = "keyspace notifications: none has come yet"
	}
	n.since, n.lastGood, n.repaired = now, now, false
	n.proven, n.silent = false, false
	again := !n.blindFrom.IsZero()
	if again {
		n.blind += now.Sub(n.blindFrom)
		n.blindFrom = time.Time{}
	}
	another := n.replID != "" && p.replID != "" && n.replID != p.replID
	if p.replID != "" {
		n.replID = p.replID
	}
	n.mu.Unlock()
	if p.tracker != nil {
		n.w.s.host.SetClockOffset(n.addr, p.offset)
	}
	n.w.s.host.SetLine(n.addr, p.replID)
	if another {
		// A server that was restarted, or another one: what is not there any more
		// went with the old one's data, as after a flush.
		n.w.s.host.Lost(n.addr, now.Add(p.offset), false)
		n.resync()
		n.w.s.host.RequestSweep() // a sweep tells a restart from a failover, and what was lost
	} else {
		n.catchUp()
	}
	if again {
		n.w.log.Info("watch is set up again", zap.String("node", n.addr))
	}
}

// without notes that this master is not watched: the server said why, and may think
// better of it.
func (n *nodeWatch) without(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	reason := connect.Explain(err)
	if n.w.s.cfg.Watch == source.WatchOff {
		reason = "watch: off"
	}
	if n.reason != reason {
		n.w.log.Info("master is swept and not watched", zap.String("node", n.addr), zap.String("reason", reason))
	}
	n.mode, n.reason = source.WatchSweep, reason
}

// supervise checks the pair each second until it is faulty, another plan is wanted,
// or ctx ends.
func (n *nodeWatch) supervise(ctx context.Context, p *pair) error {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	var learned time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-n.replan:
			return errReplan
		case <-p.ended:
			return fmt.Errorf("listen: %w", p.failed)
		case <-tick.C:
		}
		if n.w.s.throttle.Paused() != nil {
			return errPaused
		}
		began := time.Now()
		if err := p.check(ctx); err != nil {
			return err
		}
		if p.tracker != nil {
			n.w.s.host.SetClockOffset(n.addr, p.offset)
		}
		n.good(began)
		if began.Sub(learned) >= learnEvery {
			learned = began
			n.learnCosts(ctx, began.Add(checkEvery))
		}
	}
}

// learnCosts asks what the watch's commands cost the server, until the next check is due:
// that must not wait, or a silence that begins now is found out late. Where it may not be
// asked, a cautious guess is booked.
func (n *nodeWatch) learnCosts(ctx context.Context, until time.Time) {
	if !n.w.s.caps.has("info") {
		return
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	n.mu.Lock()
	client := n.master.Client
	n.mu.Unlock()
	switch text, err := client.Info(ctx, "commandstats").Result(); {
	case err == nil:
		n.reads.learn(parseInfo(text))
	case judge(err) == without:
		n.w.s.caps.refuse("info", err)
	}
}

// errPaused ends a pair because an operator wants quiet: even without our asking,
// tracking costs the server something with every write.
var errPaused = errors.New("an operator paused the target")

// errReplan ends a pair because other prefixes are wanted.
var errReplan = errors.New("the classes changed")

// good notes a good check that began at began, and judges what is under
// suspicion for long enough.
func (n *nodeWatch) good(began time.Time) {
	n.mu.Lock()
	n.lastGood = began
	missed := n.judgeSuspects(began)
	n.mu.Unlock()
	for _, key := range missed {
		n.w.miss(n, key)
	}
}

// fault ends what the pair announces: from the last good check on, changes may have
// gone unseen. The masters may have changed too.
func (n *nodeWatch) fault(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	n.mu.Lock()
	if n.mode == source.WatchTracking || n.proven {
		n.blindFrom = n.lastGood
	}
	n.mode, n.reason = source.WatchSweep, "being set up again: "+connect.Explain(err)
	switch {
	case errors.Is(err, errPaused):
		n.reason = "paused; resume the target"
	case errors.Is(err, errReplan):
		n.reason = "being set up again: " + err.Error()
	}
	n.since, n.lastGood, n.repaired = time.Time{}, time.Time{}, false
	clear(n.suspects)
	n.mu.Unlock()
	if errors.Is(err, errPaused) || errors.Is(err, errReplan) {
		n.w.log.Info("watch is taken down", zap.String("node", n.addr), zap.String("reason", err.Error()))
	} else {
		n.w.log.Warn("watch broke: it is set up again and the next sweep repairs what it missed",
			zap.String("node", n.addr), zap.Error(err))
	}
	n.w.refreshMasters()
}

// watching says whether pushes can be relied on. n.mu is held.
func (n *nodeWatch) watching() bool {
	switch n.mode {
	case source.WatchTracking:
		return true
	case source.WatchKeyspace:
		return n.proven && !n.silent
	default:
		return false
	}
}

// setPlan takes other prefixes; the pair is set up again if they differ.
func (n *nodeWatch) setPlan(plan watchPlan) {
	n.mu.Lock()
	same := slices.Equal(n.plan.prefixes, plan.prefixes)
	n.plan = plan
	n.mu.Unlock()
	if !same {
		select {
		case n.replan <- struct{}{}:
		default:
		}
	}
}

func (n *nodeWatch) setMaster(m connect.Master) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.master = m
}
