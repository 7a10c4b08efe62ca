package lock

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Bounds of a lane.
const (
	// pipelined is how many round trips are under way at once with
	// Options.Pipeline: while some are read, the next are executed.
	pipelined = 4
	// most is how many requests share a round trip at most. The last of them waits
	// for all others: many small ones keep client and server busy at once.
	most = 16
)

// lane bounds how many round trips to one server are under way at once. Who
// comes when all places are taken rides with others, in one pipeline, as soon as
// a place is free: the busier it is, the cheaper is each request.
type lane struct {
	rdb     *redis.Client
	abreast int
	timeout time.Duration

	mu      sync.Mutex
	going   int
	queue   []*ride
	drivers sync.WaitGroup
}

// ride is one request that shares a round trip with others.
type ride struct {
	cmd  *redis.Cmd
	done chan struct{}
}

// process sends cmd and reads its reply. A command that is given up when ctx
// ends may still be executed, and must not be touched any more; on that account
// ctx needs a deadline. redis.ErrPoolTimeout means that it was never sent.
func (l *lane) process(ctx context.Context, cmd *redis.Cmd) error {
	l.mu.Lock()
	if l.going < l.abreast {
		l.going++
		l.mu.Unlock()
		err := l.rdb.Process(ctx, cmd)
		l.leave()
		return err
	}
	r := &ride{cmd: cmd, done: make(chan struct{})}
	l.queue = append(l.queue, r)
	l.mu.Unlock()
	deadline, _ := ctx.Deadline()
	t := time.NewTimer(time.Until(deadline))
	defer t.Stop()
	var err error
	select {
	case <-r.done:
		return cmd.Err()
	case <-ctx.Done():
		err = ctx.Err()
	case <-t.C:
		err = context.DeadlineExceeded
	}
	if l.alight(r) {
		return fmt.Errorf("%w: %d round trips are under way and do not end (hint: is the server slow, or Options.PoolSize too small?)",
			redis.ErrPoolTimeout, l.abreast)
	}
	return err
}

// alight takes r out of the queue, if it still is there.
func (l *lane) alight(r *ride) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.queue, r)
	if i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	}
	return i >= 0
}

// leave gives the place of a round trip to those who wait, if there are any.
func (l *lane) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		l.going--
		return
	}
	l.drivers.Go(l.drive)
}

// drive makes round trips until nobody waits.
func (l *lane) drive() {
	for {
		// Those who were served come back: they ride together again.
		runtime.Gosched()
		l.mu.Lock()
		n := min(len(l.queue), most)
		if n == 0 {
			l.going--
			l.mu.Unlock()
			return
		}
		list := l.queue[:n:n]
		l.queue = l.queue[n:]
		l.mu.Unlock()
		l.send(list)
	}
}

// send makes one round trip. Each request minds its own deadline.
func (l *lane) send(list []*ride) {
	ctx := &deadlineContext{context.Background(), time.Now().Add(l.timeout)}
	if len(list) == 1 {
		_ = l.rdb.Process(ctx, list[0].cmd) // the command has the error
	} else {
		pipe := l.rdb.Pipeline()
		for _, r := range list {
			_ = pipe.Process(ctx, r.cmd) // it queues
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
	}
	for _, r := range list {
		close(r.done)
	}
}

// close waits for what is under way.
func (l *lane) close() { l.drivers.Wait() }
