package lock

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Bounds of a lane.
const (
	// shared is how many round trips are under way at once: while some are read, the
	// next are executed. With more of them fewer requests share one, which costs
	// client and server more each; see bench/RESULTS.md.
	shared = 4
	// most is how many requests share a round trip at most. The last of them waits
	// for all others: many small ones keep client and server busy at once.
	most = 16
)

// lane bounds how many round trips to one server are under way at once. Who
// comes when all places are taken rides with others, in one pipeline, as soon as
// a place is free: the busier it is, the cheaper is each request. Releases go before
// acquires, since others may wait for them.
type lane struct {
	rdb     *redis.Client
	abreast int
	timeout time.Duration

	mu      sync.Mutex
	going   int
	kept    kept
	rides   rides
	bell    *time.Timer // tells rides that their deadline has come
	rings   time.Time   // when it does; zero for not
	drivers sync.WaitGroup
}

// process sends cmd and reads its reply. A command that is given up when ctx
// ends may still be executed, and must not be touched any more; on that account
// ctx needs a deadline. redis.ErrPoolTimeout means that it was never sent.
func (l *lane) process(ctx context.Context, cmd *redis.Cmd, urgent bool) error {
	deadline, _ := ctx.Deadline()
	l.mu.Lock()
	if l.going < l.abreast {
		l.going++
		conn, stale := l.kept.take(l.rdb, time.Now())
		l.mu.Unlock()
		toPool(stale)
		err := l.by(conn).Process(ctx, cmd)
		l.leave(conn, err)
		return err
	}
	r := newRide(cmd, deadline, urgent)
	l.rides.add(r)
	l.heed(deadline)
	l.mu.Unlock()
	err := l.arrive(ctx, r)
	switch {
	case r.back:
		r.reuse()
		return cmd.Err()
	case !r.sent:
		return fmt.Errorf("%w: %d round trips are under way and do not end (hint: is the server slow?)",
			redis.ErrPoolTimeout, l.abreast)
	default:
		return err
	}
}

// arrive awaits the outcome of a ride, which the end of ctx is too.
func (l *lane) arrive(ctx context.Context, r *ride) error {
	end := ctx.Done()
	if end == nil {
		return <-r.done // a select of two costs as much as the rest of this
	}
	select {
	case err := <-r.done:
		return err
	case <-end:
		l.mu.Lock()
		l.rides.end(r, false, ctx.Err())
		l.mu.Unlock()
		return <-r.done // if not from here, then what came before
	}
}

// heed has the bell ring at a deadline, if it does not ring before; mu is held.
// One bell for all costs less than a timer for each.
func (l *lane) heed(deadline time.Time) {
	if !l.rings.IsZero() && !deadline.Before(l.rings) {
		return
	}
	l.rings = deadline
	if l.bell == nil {
		l.bell = time.AfterFunc(time.Until(deadline), l.ring)
		return
	}
	l.bell.Reset(time.Until(deadline))
}

// ring ends the rides whose deadline has come.
func (l *lane) ring() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rings = time.Time{}
	if next := l.rides.expire(time.Now()); !next.IsZero() {
		l.heed(next)
	}
}

// by returns what a round trip goes by: the pool, if there is no connection.
func (l *lane) by(conn *keptConn) via {
	if conn == nil {
		return l.rdb
	}
	return conn.conn
}

// leave gives the place of a round trip to those who wait, if there are any.
func (l *lane) leave(conn *keptConn, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard(conn, err)
	if l.rides.waiting == 0 {
		l.going--
		return
	}
	l.drivers.Go(l.drive)
}

// heard keeps a connection, nil for one of the pool, for the next round trip,
// unless it got an error, of whatever kind; mu is held.
func (l *lane) heard(conn *keptConn, err error) {
	if err == nil {
		l.kept.put(conn, time.Now())
	} else if conn != nil {
		toPool([]*keptConn{conn})
	}
}

// drive makes round trips until nobody waits.
func (l *lane) drive() {
	var (
		list []*ride
		conn *keptConn
		err  error
	)
	for {
		l.mu.Lock()
		if len(list) > 0 {
			l.heard(conn, err)
		}
		for _, r := range list {
			l.rides.end(r, true, nil)
		}
		if l.rides.waiting < most {
			// Those who were served come back: they ride together again.
			l.mu.Unlock()
			runtime.Gosched()
			l.mu.Lock()
		}
		list = l.rides.take(list[:0], most)
		if len(list) == 0 {
			l.going--
			l.mu.Unlock()
			return
		}
		var stale []*keptConn
		conn, stale = l.kept.take(l.rdb, time.Now())
		l.mu.Unlock()
		toPool(stale)
		err = l.send(l.by(conn), list)
	}
}

// send makes one round trip. Each request minds its own deadline, and has its own
// error; the first of them is returned.
func (l *lane) send(by via, list []*ride) error {
	ctx := &deadlineContext{context.Background(), time.Now().Add(l.timeout)}
	if len(list) == 1 {
		return by.Process(ctx, list[0].cmd)
	}
	pipe := by.Pipeline()
	cmds := make([]redis.Cmder, len(list))
	for i, r := range list {
		cmds[i] = r.cmd
	}
	_ = pipe.BatchProcess(ctx, cmds...) // it queues
	_, err := pipe.Exec(ctx)
	return err
}

// close waits for what is under way.
func (l *lane) close() {
	l.drivers.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	toPool(l.kept.idle)
	l.kept.idle = nil
	if l.bell != nil {
		l.bell.Stop()
	}
}
