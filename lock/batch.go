package lock

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Renewals that are due at about the same time are sent together: a process with
// ten thousand locks renews a thousand of them a second.
const (
	batchWindow = 10 * time.Millisecond
	batchSize   = 256
	// batchTTL is the shortest lease whose renewal may wait for others.
	batchTTL = time.Second
)

// batch collects requests for one pipeline.
type batch struct {
	c *Client

	mu   sync.Mutex
	list []*batched
}

// batched is one request on its way in a batch.
type batched struct {
	cmd      *redis.Cmd
	deadline time.Time
	done     chan struct{}
}

// eval is as that of server, with those that are asked for within the window. A
// request that is given up when ctx ends may still be executed.
func (b *batch) eval(ctx context.Context, sc *script, keys []string, args []any) (any, error) {
	deadline, _ := ctx.Deadline()
	r := &batched{cmd: command(ctx, nil, "evalsha", &sc.sha, keys, args), deadline: deadline, done: make(chan struct{})}
	b.mu.Lock()
	b.list = append(b.list, r)
	first, full := len(b.list) == 1, len(b.list) == batchSize
	var list []*batched
	if full {
		list, b.list = b.list, nil
	}
	b.mu.Unlock()
	switch {
	case full:
		b.c.spawn(func(ctx context.Context) { b.send(ctx, list) })
	case first:
		b.c.spawn(func(ctx context.Context) {
			pause(ctx, batchWindow)
			b.mu.Lock()
			list := b.list
			b.list = nil
			b.mu.Unlock()
			b.send(ctx, list)
		})
	}
	t := time.NewTimer(time.Until(deadline))
	defer t.Stop()
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-t.C:
		return nil, context.DeadlineExceeded
	}
	if err := r.cmd.Err(); err != nil {
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			return b.c.server.call(ctx, sc, "eval", &sc.text, keys, args)
		}
		return nil, err
	}
	return r.cmd.Val(), nil
}

// send sends the requests of a batch in one pipeline, bounded by the longest
// deadline among them: each of them minds its own.
func (b *batch) send(ctx context.Context, list []*batched) {
	if len(list) == 0 {
		return
	}
	var last time.Time
	for _, r := range list {
		if r.deadline.After(last) {
			last = r.deadline
		}
	}
	ctx = &deadlineContext{ctx, last}
	pipe := b.c.server.rdb.Pipeline()
	for _, r := range list {
		// It queues; what can fail shows in the command.
		_ = pipe.Process(ctx, r.cmd)
	}
	// Each command has its own error; the first one is returned as well.
	_, err := pipe.Exec(ctx)
	b.c.server.doubt(ctx, err)
	for _, r := range list {
		close(r.done)
	}
}
