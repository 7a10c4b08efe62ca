package cluster

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/store"
)

const (
	// probeTimeout bounds a probe.
	probeTimeout = time.Second
	// pingTimeout bounds the part of a probe that uses open connections: they may all be busy, or lead to a server that
	// was replaced.
	pingTimeout = 500 * time.Millisecond
)

// prober finds out whether targets can be reached: those that this replica works on, and those that it or another
// replica cannot reach. It is safe for concurrent use.
type prober struct {
	log        *zap.Logger
	ping, dial func(ctx context.Context, target string) error // see [Hooks]
	changed    func()                                         // called when report would return something else

	mu      sync.Mutex // guards targets with the values in it, and closed
	targets map[string]*probedTarget
	closed  bool
	work    sync.WaitGroup
}

// probedTarget is a target that is being probed.
type probedTarget struct {
	probeState
	name                 string
	reason               string // why the last probe failed; "" if it did not
	own                  bool   // this replica works on it
	unreachableElsewhere bool   // another replica cannot reach it
	now                  chan struct{}
	stop                 context.CancelFunc
}

func newProber(log *zap.Logger, hooks Hooks, changed func()) *prober {
	return &prober{log: log, ping: hooks.Ping, dial: hooks.Dial, changed: changed, targets: map[string]*probedTarget{}}
}

// update starts and stops probing, by the membership and the duties that this replica works on. Probes run until ctx ends.
func (p *prober) update(ctx context.Context, self string, own map[string]bool, duties []Duty, members store.Membership) {
	now, alone, together := time.Now(), len(members.Replicas) < 2, grouped(duties)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.dial == nil {
		return
	}
	wanted := map[string]bool{}
	for _, d := range duties {
		if d.Name == store.SingletonDuties || together[d.Name] {
			continue
		}
		unreachableElsewhere, reachableElsewhere := false, false
		for _, r := range members.Replicas {
			if r.ID != self {
				unreachableElsewhere = unreachableElsewhere || slices.Contains(r.Unreachable, d.Name)
				reachableElsewhere = reachableElsewhere || slices.Contains(r.Reachable, d.Name)
			}
		}
		t := p.targets[d.Name]
		// A single replica has no other to move the target to.
		if !unreachableElsewhere && (alone || !own[d.Name]) && (t == nil || !t.unreachable) {
			continue
		}
		if t == nil {
			t = p.start(ctx, d.Name)
		}
		wanted[d.Name] = true
		t.own, t.unreachableElsewhere = own[d.Name], unreachableElsewhere
		if t.setReachableElsewhere(reachableElsewhere, now) {
			select {
			case t.now <- struct{}{}:
			default:
			}
		}
	}
	for name, t := range p.targets {
		if !wanted[name] {
			t.stop()
			delete(p.targets, name)
		}
	}
}

// start probes a target until it is stopped. The caller holds p.mu.
func (p *prober) start(ctx context.Context, target string) *probedTarget {
	ctx, stop := context.WithCancel(ctx)
	t := &probedTarget{name: target, now: make(chan struct{}, 1), stop: stop}
	p.targets[target] = t
	p.work.Go(func() { p.run(ctx, t) })
	return t
}

// run probes a target again and again until ctx ends. A probe that is due at once does not wait for one that is under way.
func (p *prober) run(ctx context.Context, t *probedTarget) {
	var probes sync.WaitGroup
	defer probes.Wait()
	due := time.NewTimer(0)
	defer due.Stop()
	running, next := 0, make(chan time.Duration)
	start := func() {
		running++
		probes.Go(func() {
			at := time.Now()
			bound, cancel := context.WithTimeout(ctx, probeTimeout)
			defer cancel()
			reason := p.probe(bound, t.name)
			if ctx.Err() != nil {
				return // a failure of a cancelled probe proves nothing
			}
			wait := p.record(t, reason, at) - time.Since(at)
			select {
			case next <- wait:
			case <-ctx.Done():
			}
		})
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-due.C:
			start()
		case <-t.now:
			due.Stop()
			start()
		case wait := <-next:
			if running--; running == 0 {
				due.Reset(wait)
			}
		}
	}
}

// probe returns why a target cannot be reached, "" if it can. After a ping that failed, the time is better spent on new
// connections, until these succeed again.
func (p *prober) probe(ctx context.Context, target string) (reason string) {
	if !p.unreachable(target) {
		bound, cancel := context.WithTimeout(ctx, pingTimeout)
		err := p.ping(bound, target)
		cancel()
		if err == nil {
			return ""
		}
	}
	if err := p.dial(ctx, target); err != nil {
		return err.Error()
	}
	return ""
}

// record applies the result of a probe, and returns the interval to the start of the next.
func (p *prober) record(t *probedTarget, reason string, start time.Time) time.Duration {
	p.mu.Lock()
	before, wasReachable := t.probeState, t.reachable()
	t.probeState.record(reason, start)
	t.reason = reason
	after, own, elsewhere, interval := t.probeState, t.own, t.unreachableElsewhere, t.interval(t.own)
	p.mu.Unlock()
	target := zap.String("target", t.name)
	switch {
	case after.unreachable && !before.unreachable:
		p.log.Warn("target unreachable from this replica; the other replicas probe it", target, zap.Bool("works_on_it", own), zap.String("reason", reason))
	case !after.unreachable && before.unreachable:
		p.log.Info("target reachable from this replica again", target)
	case after.reachable() && !wasReachable && elsewhere && !own:
		p.log.Info("target reachable from this replica, but not from another one", target)
	}
	if after.unreachable != before.unreachable || after.reachable() != wasReachable || after.confirmed != before.confirmed {
		p.changed()
	}
	return interval
}

// report returns what the other replicas must know, sorted: the targets that this replica cannot reach, and of those that
// another replica cannot reach the ones that this replica can.
func (p *prober) report() (unreachable, reachable []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, t := range p.targets {
		switch {
		case t.unreachable:
			unreachable = append(unreachable, name)
		case t.unreachableElsewhere && t.reachable():
			reachable = append(reachable, name)
		}
	}
	slices.Sort(unreachable)
	slices.Sort(reachable)
	return unreachable, reachable
}

// confirmed reports whether a target was unreachable in a probe that started after another replica reported that it
// reaches it. Reason is why.
func (p *prober) confirmed(target string) (reason string, confirmed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.targets[target]
	if t == nil || !t.confirmed {
		return "", false
	}
	return t.reason, true
}

func (p *prober) unreachable(target string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.targets[target]
	return t != nil && t.unreachable
}

// close cancels all probes and starts no more. The caller waits for p.work.
func (p *prober) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, t := range p.targets {
		t.stop()
	}
}
