package lock

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// pipes counts what is sent alone and together.
type pipes struct{ alone, together, batches atomic.Int64 }

func (p *pipes) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (p *pipes) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		p.alone.Add(1)
		return next(ctx, cmd)
	}
}

func (p *pipes) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		p.batches.Add(1)
		p.together.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// Renewals that are due together are sent together, and each has its own answer:
// also after the server forgot the script, and when one of the locks is gone.
func TestRenewalsGoTogether(t *testing.T) {
	t.Parallel()
	const n = 200
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	var renewed, failed, lost atomic.Int64
	// Renewed each second, and none fails because the machine is busy for a while.
	const ttl = 30 * time.Second
	c, err := New(rdb, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	c.Observe(func(e Event) {
		switch e.Kind {
		case EventRenewed:
			renewed.Add(1)
		case EventRenewFailed:
			failed.Add(1)
		case EventLost:
			lost.Add(1)
		}
	})
	sent := &pipes{}
	c.server.Client().AddHook(sent)
	holds := make([]*Handle, n)
	var all sync.WaitGroup
	for i := range holds { // at once: on a slow machine they would not be due together one after the other
		all.Go(func() {
			h, err := c.Acquire(t.Context(), fmt.Sprintf("k%d", i), Lease{TTL: ttl, RenewFraction: 1.0 / 30})
			if err != nil {
				t.Error(err)
			}
			holds[i] = h
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	alone, before, acquires := sent.alone.Load(), sent.batches.Load(), sent.together.Load()
	testredis.Eventually(t, 20*time.Second, func() bool { return renewed.Load() >= 3*n }, "renewals")
	if more := sent.alone.Load() - alone; more > n/4 {
		t.Errorf("%d renewals went alone", more)
	}
	if batches, together := sent.batches.Load()-before, sent.together.Load()-acquires; together < 3*batches {
		t.Errorf("%d renewals in %d batches", together, batches)
	}
	rdb.ScriptFlush(t.Context())
	rdb.Del(t.Context(), "k7")
	testredis.Eventually(t, 20*time.Second, func() bool { return renewed.Load() >= 6*n && lost.Load() == 1 }, "renewals go on")
	if failed.Load() != 0 {
		t.Errorf("%d renewals failed", failed.Load())
	}
	for i, h := range holds {
		if err := h.Err(); (err != nil) != (i == 7) {
			t.Errorf("lock %d: %v", i, err)
		}
		if err := h.Release(t.Context()); (err != nil) != (i == 7) {
			t.Errorf("release %d: %v", i, err)
		}
	}
}

// A batch that hangs ends nobody's patience later than its own, and a hold whose
// renewals hang ends in time.
func TestBatchThatHangs(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c, err := New(srv.Client(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	var holds []*Handle
	for i := range 20 {
		h, err := c.Acquire(t.Context(), fmt.Sprintf("k%d", i), Lease{TTL: 1200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		holds = append(holds, h)
	}
	began := time.Now()
	srv.Pause()
	for _, h := range holds {
		<-h.Context().Done()
	}
	if took := time.Since(began); took > 1200*time.Millisecond+500*time.Millisecond {
		t.Errorf("contexts ended after %s", took)
	}
	srv.Resume()
}
