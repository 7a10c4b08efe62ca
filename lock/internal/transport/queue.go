package transport

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// maxShared is how many requests share a round trip at most. The last of them waits
// for all others: many small ones keep client and server busy at once.
const maxShared = 16

// requestQueue bounds how many round trips to one server are under way at once. A request
// that comes when all are taken waits, and goes with others in one pipeline as soon as
// one has ended: the busier it is, the cheaper is each request. Urgent requests go before
// the others.
type requestQueue struct {
	rdb         *redis.Client
	maxInFlight int
	timeout     time.Duration

	mu       sync.Mutex
	inFlight int
	idle     idleConns
	pending  pendingRequests
	timer    *time.Timer // ends requests whose deadline has come
	timerAt  time.Time   // when it fires; zero for not
	flushes  sync.WaitGroup
}

// process sends cmd and reads its reply. A command that is given up when ctx
// ends may still be executed, and must not be touched any more; on that account
// ctx needs a deadline. redis.ErrPoolTimeout means that it was never sent.
func (q *requestQueue) process(ctx context.Context, cmd *redis.Cmd, urgent bool) error {
	deadline, _ := ctx.Deadline()
	q.mu.Lock()
	if q.inFlight < q.maxInFlight {
		q.inFlight++
		conn, stale := q.idle.take(q.rdb, time.Now())
		q.mu.Unlock()
		toPool(stale)
		err := q.over(conn).Process(ctx, cmd)
		q.finish(conn, err)
		return err
	}
	r := newPending(cmd, deadline, urgent)
	q.pending.add(r)
	q.setTimer(deadline)
	q.mu.Unlock()
	err := q.await(ctx, r)
	switch {
	case r.answered:
		r.reuse()
		return cmd.Err()
	case !r.sent:
		return fmt.Errorf("%w: %d round trips are under way and do not end (hint: is the server slow?)",
			redis.ErrPoolTimeout, q.maxInFlight)
	default:
		return err
	}
}

// await awaits the outcome of a request, which the end of ctx is too.
func (q *requestQueue) await(ctx context.Context, r *pendingRequest) error {
	end := ctx.Done()
	if end == nil {
		return <-r.done // a select of two costs as much as the rest of this
	}
	select {
	case err := <-r.done:
		return err
	case <-end:
		q.mu.Lock()
		q.pending.end(r, false, ctx.Err())
		q.mu.Unlock()
		return <-r.done // if not from here, then what came before
	}
}

// setTimer has the timer fire at a deadline, if it does not fire before; mu is held.
// One timer for all costs less than one for each.
func (q *requestQueue) setTimer(deadline time.Time) {
	if !q.timerAt.IsZero() && !deadline.Before(q.timerAt) {
		return
	}
	q.timerAt = deadline
	if q.timer == nil {
		q.timer = time.AfterFunc(time.Until(deadline), q.expire)
		return
	}
	q.timer.Reset(time.Until(deadline))
}

// expire ends the requests whose deadline has come.
func (q *requestQueue) expire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.timerAt = time.Time{}
	if next := q.pending.expire(time.Now()); !next.IsZero() {
		q.setTimer(next)
	}
}

// over returns what a round trip goes over: the pool, if there is no connection.
func (q *requestQueue) over(conn *idleConn) sender {
	if conn == nil {
		return q.rdb
	}
	return conn.conn
}

// finish ends a round trip and has those who wait go next, if there are any.
func (q *requestQueue) finish(conn *idleConn, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.keep(conn, err)
	if q.pending.unsentCount == 0 {
		q.inFlight--
		return
	}
	q.flushes.Go(q.flushLoop)
}

// keep keeps a connection, nil for one of the pool, for the next round trip,
// unless it got an error, of whatever kind; mu is held.
func (q *requestQueue) keep(conn *idleConn, err error) {
	if err == nil {
		q.idle.put(conn, time.Now())
	} else if conn != nil {
		toPool([]*idleConn{conn})
	}
}

// flushLoop makes round trips until nobody waits.
func (q *requestQueue) flushLoop() {
	var (
		list []*pendingRequest
		conn *idleConn
		err  error
	)
	for {
		q.mu.Lock()
		if len(list) > 0 {
			q.keep(conn, err)
		}
		for _, r := range list {
			q.pending.end(r, true, nil)
		}
		if q.pending.unsentCount < maxShared {
			// Those who were served come back: they go together again.
			q.mu.Unlock()
			runtime.Gosched()
			q.mu.Lock()
		}
		list = q.pending.take(list[:0], maxShared)
		if len(list) == 0 {
			q.inFlight--
			q.mu.Unlock()
			return
		}
		var stale []*idleConn
		conn, stale = q.idle.take(q.rdb, time.Now())
		q.mu.Unlock()
		toPool(stale)
		err = q.send(q.over(conn), list)
	}
}

// send makes one round trip. Each request minds its own deadline, and has its own
// error; the first of them is returned.
func (q *requestQueue) send(over sender, list []*pendingRequest) error {
	ctx := WithDeadline(context.Background(), time.Now().Add(q.timeout))
	if len(list) == 1 {
		return over.Process(ctx, list[0].cmd)
	}
	pipe := over.Pipeline()
	cmds := make([]redis.Cmder, len(list))
	for i, r := range list {
		cmds[i] = r.cmd
	}
	_ = pipe.BatchProcess(ctx, cmds...) // it queues
	_, err := pipe.Exec(ctx)
	return err
}

// close waits for what is under way.
func (q *requestQueue) close() {
	q.flushes.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	toPool(q.idle.list)
	q.idle.list = nil
	if q.timer != nil {
		q.timer.Stop()
	}
}
