package redlock

import (
	"context"
	"sync"
	"time"

	"github.com/locksteward/locksteward/lock/internal/retry"
)

// cleaner frees on one node what a release could not, until the lease must be
// over: one request at a time, however much there is to do, and seldom while the
// node does not answer. Its goroutine ends when all is done.
type cleaner struct {
	q    *quorum
	n    *node
	kick chan struct{} // there is something new

	mu    sync.Mutex
	tasks map[string]*task // by acquisition id
	going bool
}

// task is one acquisition to be freed.
type task struct {
	t     *track
	began time.Time
	due   time.Time
	// stray says that the acquire may still be executed: "not there" is believed
	// when the node says it a second time, after a while.
	stray bool
	said  bool // once
	last  error
}

// add gives the cleaner something to do.
func (j *cleaner) add(t *track, stray bool) {
	now := time.Now()
	if !now.Before(t.over()) {
		return
	}
	j.mu.Lock()
	start := false
	if j.tasks[t.id] == nil {
		j.tasks[t.id] = &task{t: t, began: now, due: now, stray: stray}
		start = !j.going
		j.going = true
	}
	j.mu.Unlock()
	if start {
		j.q.host.Spawn(j.run)
		return
	}
	select {
	case j.kick <- struct{}{}:
	default:
	}
}

// run works until nothing is left to do or the client is closed.
func (j *cleaner) run(ctx context.Context) {
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
func (j *cleaner) rest(ctx context.Context, d time.Duration, answers bool) bool {
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
func (j *cleaner) pass(ctx context.Context) bool {
	now := time.Now()
	j.mu.Lock()
	var due []*task
	for _, c := range j.tasks {
		if !now.Before(c.due) || !now.Before(c.t.over()) {
			due = append(due, c)
		}
	}
	j.mu.Unlock()
	for _, c := range due {
		if !time.Now().Before(c.t.over()) {
			j.done(c, c.last)
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
func (j *cleaner) try(ctx context.Context, c *task) bool {
	ctx, cancel := context.WithTimeout(ctx, j.q.patience(0))
	defer cancel()
	reply, err := j.n.server.Eval(ctx, j.q.host.Release, c.t.keys, c.t.releaseArgs())
	now := time.Now()
	switch {
	case err != nil:
		_, failure := j.q.nodeFailure(opRelease, c.t.key, err)
		c.last = &NodeError{Node: j.n.index, Addr: j.n.addr, Err: failure}
		return false
	case reply == int64(1), !c.stray, c.said:
		j.done(c, nil)
	default:
		c.said = true
		c.due = now.Add(strayTime)
	}
	return true
}

// next says how long it is to the next task; false, and the end of run, if
// there is none.
func (j *cleaner) next() (time.Duration, bool) {
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.tasks) == 0 {
		j.going = false
		return 0, false
	}
	wait := time.Duration(-1)
	for _, c := range j.tasks {
		d := max(0, min(c.due.Sub(now), c.t.over().Sub(now)))
		if wait < 0 || d < wait {
			wait = d
		}
	}
	return wait, true
}

// done ends a task: err is why the lock may still be there.
func (j *cleaner) done(c *task, err error) {
	j.mu.Lock()
	delete(j.tasks, c.t.id)
	j.mu.Unlock()
	j.q.host.Cleaned(c.t.key, c.t.class(), c.t.id, time.Since(c.began), err)
}

// drop gives up when the client is closed.
func (j *cleaner) drop() {
	j.mu.Lock()
	var left []*task
	for _, c := range j.tasks {
		left = append(left, c)
	}
	j.mu.Unlock()
	for _, c := range left {
		j.done(c, c.last)
	}
}

// strayTime is how long a request that was given up may still be executed: it may lie in
// a server's buffers behind one that was sent later.
const strayTime = time.Second
