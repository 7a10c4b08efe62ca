package transport

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
)

// Batch collects scripts that may wait 10 ms, and sends them in one pipeline. It is safe
// for concurrent use.
type Batch struct {
	server *Server
	spawn  func(func(context.Context))

	mu   sync.Mutex
	list []*batched
}

// NewBatch returns a batch that runs its work in the background by spawn.
func NewBatch(s *Server, spawn func(func(context.Context))) *Batch {
	return &Batch{server: s, spawn: spawn}
}

// batched is one request on its way in a batch.
type batched struct {
	cmd      *redis.Cmd
	deadline time.Time
	done     chan struct{}
}

// Eval is [Server.Eval] together with the scripts that are asked for within the window.
func (b *Batch) Eval(ctx context.Context, sc *Script, keys []string, args []any) (any, error) {
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
		b.spawn(func(ctx context.Context) { b.send(ctx, list) })
	case first:
		b.spawn(func(ctx context.Context) {
			select {
			case <-ctx.Done():
			case <-time.After(batchWindow):
			}
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
			return b.server.call(ctx, sc, "eval", &sc.text, keys, args)
		}
		return nil, err
	}
	return r.cmd.Val(), nil
}

// send sends the requests of a batch in one pipeline, bounded by the longest
// deadline among them: each of them minds its own.
func (b *Batch) send(ctx context.Context, list []*batched) {
	if len(list) == 0 {
		return
	}
	var last time.Time
	for _, r := range list {
		if r.deadline.After(last) {
			last = r.deadline
		}
	}
	ctx = WithDeadline(ctx, last)
	pipe := b.server.rdb.Pipeline()
	for _, r := range list {
		// It queues; what can fail shows in the command.
		_ = pipe.Process(ctx, r.cmd)
	}
	// Each command has its own error; the first one is returned as well.
	_, err := pipe.Exec(ctx)
	b.server.CheckSlots(ctx, err)
	for _, r := range list {
		close(r.done)
	}
}
