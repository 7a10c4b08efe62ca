package scanner_test

import (
	"context"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// A watch whose context ends while its connections are being set up leaves nothing
// behind that the next one trips over.
func TestWatchAgainAfterACancelDuringItsSetup(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	proxy := testredis.NewProxy(t, srv.Addr())
	w := &reported{t: t, s: fast("redis://" + proxy.Addr() + "/0").build(t), locks: map[string]locksteward.Lock{}}
	w.run(t)()
	proxy.Delay(50 * time.Millisecond)
	for range 12 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.s.Watch(ctx, func(context.Context, locksteward.Update) {}) }()
		testredis.Eventually(t, soon, func() bool { return len(w.s.WatchState().Nodes) == 1 }, "no master is watched")
		cancel()
		must(t, <-ended)
	}
	proxy.Heal()
	w.run(t)
	w.taken(srv.Client(t), "lock:a")
}
