package lock

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/internal/transport"
	"github.com/locksteward/locksteward/lock/record"
)

// slowReply holds the first reply to the second caller's acquire back.
type slowReply struct {
	evaler
	asked, proceed chan struct{}

	mu    sync.Mutex
	first string // acquisition id of the first caller
	slow  bool   // the reply was held back
}

func (s *slowReply) Eval(ctx context.Context, sc *transport.Script, keys []string, args []any) (any, error) {
	v, err := s.evaler.Eval(ctx, sc, keys, args)
	if sc == acquireScript && s.isSecond(plain(args)[1].(string)) {
		close(s.asked)
		<-s.proceed
	}
	return v, err
}

func (s *slowReply) isSecond(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == "" {
		s.first = id
	}
	second := id != s.first && !s.slow
	s.slow = s.slow || second
	return second
}

// B12: a hand-off whose message comes while the reply "held" is still on its way.
func TestReleaseHeardBeforeTheWaitIsNotMissed(t *testing.T) {
	t.Parallel()
	rdb := testredis.Start(t).Client(t)
	holder, c := shifted(t, rdb, 0), shifted(t, rdb, 0)
	slow := &slowReply{evaler: c.db, asked: make(chan struct{}), proceed: make(chan struct{})}
	c.db = slow
	lease := Lease{TTL: time.Minute}
	h, err := holder.Acquire(t.Context(), "k", lease)
	if err != nil {
		t.Fatal(err)
	}
	wait := func() <-chan *Handle {
		got := make(chan *Handle, 1)
		go func() {
			h, err := c.Acquire(context.Background(), "k", lease)
			if err != nil {
				t.Error(err)
			}
			got <- h
		}()
		return got
	}
	free := func(h *Handle) {
		if h == nil {
			return
		}
		if err := h.Release(context.Background()); err != nil {
			t.Error(err)
		}
	}
	waiting := func() int {
		n, _ := c.waiters.Len()
		return n
	}
	early := func() bool {
		_, n := c.waiters.Len()
		return n > 0
	}
	proceed := sync.OnceFunc(func() { close(slow.proceed) })
	t.Cleanup(proceed)
	// Releases hand the lock over only to a process that listens.
	channel := record.InstanceKey(record.DefaultPrefix, c.instance)
	c.begin()
	testredis.Eventually(t, 10*time.Second, func() bool {
		return rdb.PubSubNumSub(context.Background(), channel).Val()[channel] == 1
	}, "the process listens")
	first := wait()
	testredis.Eventually(t, 10*time.Second, func() bool { return waiting() == 1 }, "first waiter listens")
	second := wait()
	<-slow.asked
	free(h)
	free(<-first)
	testredis.Eventually(t, 10*time.Second, early, "the second is notified while its reply is on its way")
	proceed()
	select {
	case h := <-second:
		free(h)
	case <-time.After(5 * time.Second):
		t.Error("the release was missed: still waiting for a lock that has been free for 5s")
	}
}
