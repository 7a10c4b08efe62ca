package lock

import (
	"context"
	"sync"
	"time"

	"github.com/locksteward/locksteward/lock/internal/retry"
)

// janitor frees on one node what a release could not, until the lease must be
// over: one request at a time, however much there is to do, and seldom while the
// node does not answer. Its goroutine ends when all is done.
type janitor struct {
	q    *quorum
	n    *node
	kick chan struct{} // there is something new

	mu     sync.Mutex
	chores map[string]*chore // by acquisition id
	going  bool
}

// chore is one acquisition to be freed.
type chore struct {
	t     *trail
	began instant
	due   instant
	// stray says that the acquire may still be executed: "not there" is believed
	// when the node says it a second time, after a while.
	stray bool
	said  bool // once
	last  error
}

// add gives the janitor something to do.
func (j *janitor) add(t *trail, stray bool) {
	now := j.q.now()
	if now.reached(t.over()) {
		return
	}
	j.mu.Lock()
	start := false
	if j.chores[t.id] == nil {
		j.chores[t.id] = &chore{t: t, began: now, due: now, stray: stray}
		start = !j.going
		j.going = true
	}
	j.mu.Unlock()
	if start {
		j.q.c.spawn(j.run)
		return
	}
	select {
	case j.kick <- struct{}{}:
	default:
	}
}

// run works until nothing is left to do or the client is closed.
func (j *janitor) run(ctx context.Context) {
	for n := 0; ; {
		answered := j.pass(ctx)
		if answered {
			n = 0
		}
		wait, some := j.next()
		if !some {
			return
		}
		if !answered {
			wait = max(wait, retry.Backoff(n, 50*time.Millisecond, time.Second))
			n++
		}
		if !j.rest(ctx, wait, answered) {
			j.drop()
			return
		}
	}
}

// rest waits for d, or until there is something new if the node answers; false
// when ctx ends.
func (j *janitor) rest(ctx context.Context, d time.Duration, answers bool) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	kick := j.kick
	if !answers {
		kick = nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
	case <-kick:
	}
	return true
}

// pass does what is due; false if the node does not answer.
func (j *janitor) pass(ctx context.Context) bool {
	now := j.q.now()
	j.mu.Lock()
	var due []*chore
	for _, c := range j.chores {
		if now.mono >= c.due.mono || now.reached(c.t.over()) {
			due = append(due, c)
		}
	}
	j.mu.Unlock()
	for _, c := range due {
		if j.q.now().reached(c.t.over()) {
			j.done(c, EventCleanFailed, c.last)
			continue
		}
		if ctx.Err() != nil {
			return true
		}
		if !j.try(ctx, c) {
			return false
		}
	}
	return true
}

// try asks the node once; false if it does not answer.
func (j *janitor) try(ctx context.Context, c *chore) bool {
	keys, args := j.q.c.freeing(&c.t.token)
	ctx, cancel := context.WithTimeout(ctx, j.q.patience(0))
	defer cancel()
	reply, err := j.n.db.Eval(ctx, releaseScript, keys, args)
	now := j.q.now()
	switch {
	case err != nil:
		_, failure := nodeFailure(releaseScript.Op, c.t.key, err)
		c.last = &NodeError{Node: j.n.index, Addr: j.n.addr, Err: failure}
		return false
	case reply == int64(1), !c.stray, c.said:
		j.done(c, EventCleaned, nil)
	default:
		c.said = true
		c.due = now.add(j.q.c.strayTime())
	}
	return true
}

// next says how long it is to the next chore; false, and the end of run, if
// there is none.
func (j *janitor) next() (time.Duration, bool) {
	now := j.q.now()
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.chores) == 0 {
		j.going = false
		return 0, false
	}
	wait := time.Duration(-1)
	for _, c := range j.chores {
		d := max(0, min(c.due.mono-now.mono, now.until(c.t.over())))
		if wait < 0 || d < wait {
			wait = d
		}
	}
	return wait, true
}

// done ends a chore.
func (j *janitor) done(c *chore, kind EventKind, err error) {
	j.mu.Lock()
	delete(j.chores, c.t.id)
	j.mu.Unlock()
	j.q.c.emit(Event{
		Kind: kind, Key: c.t.key, Class: c.t.class(), ID: c.t.id, Took: j.q.now().mono - c.began.mono, Err: err,
	})
}

// drop gives up when the client is closed.
func (j *janitor) drop() {
	j.mu.Lock()
	var left []*chore
	for _, c := range j.chores {
		left = append(left, c)
	}
	j.mu.Unlock()
	for _, c := range left {
		j.done(c, EventCleanFailed, c.last)
	}
}
