package transport

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// A connection is used without a look at it shortly after it answered; later it
// goes back to the pool, and so do those that answered before it.
func TestIdleConn(t *testing.T) {
	t.Parallel()
	rdb := testredis.Start(t).Client(t)
	k, now := &idleConns{}, time.Now()
	soon, late := now.Add(fresh-1), now.Add(fresh)
	if conn, stale := k.take(rdb, now); conn != nil || stale != nil {
		t.Fatalf("before any answer: %v, %v", conn, stale)
	}
	k.put(nil, now)
	var conns []*idleConn
	for range 3 {
		conn, stale := k.take(rdb, soon)
		if conn == nil || stale != nil {
			t.Fatalf("shortly after an answer: %v, %v", conn, stale)
		}
		if err := conn.conn.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	k.put(conns[0], now.Add(-2*fresh))
	k.put(conns[1], now)
	k.put(conns[2], now)
	for _, want := range []*idleConn{conns[2], conns[1]} {
		if conn, stale := k.take(rdb, soon); conn != want || stale != nil {
			t.Fatalf("took %v, and %v goes back; want the last one to answer", conn, stale)
		}
	}
	other, stale := k.take(rdb, soon)
	if other == nil || other == conns[0] || len(stale) != 1 || stale[0] != conns[0] {
		t.Fatalf("where the rest is old: %v, and %v goes back", other, stale)
	}
	toPool(stale)
	k.put(conns[1], now)
	k.put(conns[2], now)
	none, stale := k.take(rdb, late)
	if none != nil || len(stale) != 2 {
		t.Fatalf("after a while: %v, and %v goes back", none, stale)
	}
	toPool(stale)
	if s := rdb.PoolStats(); s.TotalConns != 3 || s.IdleConns != 3 {
		t.Errorf("in the pool: %+v", s)
	}
}

// However busy a queue is, a connection goes back to the pool after a while, which
// ends those that are too old.
func TestIdleConnGoesBack(t *testing.T) {
	t.Parallel()
	opt := *testredis.Start(t).Client(t).Options()
	opt.ConnMaxLifetime = time.Nanosecond // any that comes back is too old
	rdb := redis.NewClient(&opt)
	t.Cleanup(func() { _ = rdb.Close() })
	k, now := &idleConns{answered: time.Now()}, time.Now()
	id := func(now time.Time) int64 {
		conn, stale := k.take(rdb, now)
		toPool(stale)
		id, err := conn.conn.ClientID(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		k.put(conn, now)
		return id
	}
	first := id(now)
	for at := now; at.Before(now.Add(maxOutOfPool)); at = at.Add(fresh / 2) {
		if again := id(at); again != first {
			t.Fatalf("after %v by connection %d; want %d", at.Sub(now), again, first)
		}
	}
	if next := id(now.Add(maxOutOfPool)); next == first {
		t.Errorf("after %v still by connection %d", maxOutOfPool, next)
	}
	toPool(k.list)
	if s := rdb.PoolStats(); s.TotalConns > 1 {
		t.Errorf("in the pool: %+v", s)
	}
}

// Who gets a connection that the server has closed learns that; the next one
// does not.
func TestIdleConnIsDroppedWhenItFails(t *testing.T) {
	t.Parallel()
	rdb := testredis.Start(t).Client(t)
	q := &requestQueue{rdb: rdb, maxInFlight: 2, timeout: 10 * time.Second}
	t.Cleanup(q.close)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ask := func() (any, error) {
		q.idle.answered = time.Now().Add(time.Hour) // fresh, however slow this machine is
		cmd := redis.NewCmd(ctx, "client", "id")
		err := q.process(ctx, cmd, false)
		for _, conn := range q.idle.list {
			conn.since, conn.answered = time.Now().Add(time.Hour), time.Now().Add(time.Hour)
		}
		return cmd.Val(), err
	}
	first, err := ask()
	again, err2 := ask()
	if err != nil || err2 != nil || first != again {
		t.Fatalf("connections %v and %v: %v, %v", first, again, err, err2)
	}
	if err := rdb.ClientKillByFilter(ctx, "ID", fmt.Sprint(first)).Err(); err != nil {
		t.Fatal(err)
	}
	if id, err := ask(); err == nil {
		t.Errorf("connection %v answers; want that of %v, which was closed", id, first)
	}
	if id, err := ask(); err != nil || id == first {
		t.Errorf("connection %v: %v", id, err)
	}
}

// There are never more connections than places, and none stays with a queue that
// is closed.
func TestIdleConnsAreBounded(t *testing.T) {
	t.Parallel()
	rdb := testredis.Start(t).Client(t)
	q := &requestQueue{rdb: rdb, maxInFlight: 3, timeout: 10 * time.Second}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 100 {
				if err := q.process(ctx, redis.NewCmd(ctx, "ping"), false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	q.close()
	if s := rdb.PoolStats(); s.TotalConns > 3 || s.IdleConns != s.TotalConns {
		t.Errorf("in the pool: %+v", s)
	}
}
