package transport

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// Who gives up while all places are taken was never sent, and is told so.
// fault: 22
func TestGivenUpBeforeItWasSent(t *testing.T) {
	t.Parallel()
	rdb := testredis.Start(t).Client(t)
	q := &requestQueue{rdb: rdb, maxInFlight: 1, timeout: 10 * time.Second}
	t.Cleanup(q.close)
	long, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	blocked := make(chan error, 1)
	go func() { blocked <- q.process(long, redis.NewCmd(long, "blpop", "wake", "0"), false) }()
	testredis.Eventually(t, 5*time.Second, func() bool {
		return infoField(t, rdb, "clients", "blocked_clients") == "1"
	}, "the place is taken")

	timed, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if err := q.process(timed, redis.NewCmd(timed, "set", "timed", "1"), false); !errors.Is(err, redis.ErrPoolTimeout) {
		t.Errorf("at its deadline: %v", err)
	}
	gone, leave := context.WithCancel(long)
	leave()
	if err := q.process(gone, redis.NewCmd(gone, "set", "gone", "1"), false); !errors.Is(err, redis.ErrPoolTimeout) {
		t.Errorf("cancelled: %v", err)
	}
	patient := make(chan error, 1)
	go func() { patient <- q.process(long, redis.NewCmd(long, "set", "patient", "1"), false) }()
	rdb.RPush(t.Context(), "wake", "1")
	if err := errors.Join(<-blocked, <-patient); err != nil {
		t.Error(err)
	}
	q.close()
	if n := rdb.Exists(t.Context(), "timed", "gone", "patient").Val(); n != 1 || q.inFlight != 0 {
		t.Errorf("%d of one executed, %d places taken", n, q.inFlight)
	}
}

// A deadline is minded without the help of a context that ends: of who waits for
// a place, and of who is under way while the server does not answer. The others
// get their answers.
func TestPendingRequestsMindTheirDeadlines(t *testing.T) {
	t.Parallel()
	rdb := testredis.Start(t).Client(t)
	q := &requestQueue{rdb: rdb, maxInFlight: 1, timeout: 10 * time.Second}
	t.Cleanup(q.close)
	within := func(d time.Duration) context.Context {
		return WithDeadline(context.Background(), time.Now().Add(d))
	}
	blocked := func(n string) bool { return infoField(t, rdb, "clients", "blocked_clients") == n }
	long := within(10 * time.Second)
	first := make(chan error, 1)
	go func() { first <- q.process(long, redis.NewCmd(long, "blpop", "first", "0"), false) }()
	testredis.Eventually(t, 5*time.Second, func() bool { return blocked("1") }, "the place is taken")

	// The timer is set to the latest of them first.
	patient := make(chan error, 1)
	go func() { patient <- q.process(long, redis.NewCmd(long, "set", "patient", "1"), false) }()
	short := within(20 * time.Millisecond)
	if err := q.process(short, redis.NewCmd(short, "set", "late", "1"), false); !errors.Is(err, redis.ErrPoolTimeout) {
		t.Errorf("not sent: %v", err)
	}
	// The next flush takes both, and hangs with them.
	soon := within(time.Second)
	stuck := make(chan error, 1)
	go func() { stuck <- q.process(soon, redis.NewCmd(soon, "blpop", "second", "0"), false) }()
	testredis.Eventually(t, 5*time.Second, func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.pending.unsentCount == 2
	}, "two wait")
	rdb.RPush(t.Context(), "first", "1")
	if err := <-stuck; !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout) {
		t.Errorf("under way: %v", err)
	}
	rdb.RPush(t.Context(), "second", "1")
	if err := errors.Join(<-first, <-patient); err != nil {
		t.Error(err)
	}
	q.close()
	if n := rdb.Exists(t.Context(), "late", "patient").Val(); n != 1 || q.inFlight != 0 || q.pending.unsentCount != 0 || q.pending.first != nil {
		t.Errorf("%d of one executed, %d places taken, %d wait", n, q.inFlight, q.pending.unsentCount)
	}
}

// Each gets its own reply, and its own error.
func TestEachRequestHasItsOwnReply(t *testing.T) {
	t.Parallel()
	rdb := testredis.Start(t).Client(t)
	q := &requestQueue{rdb: rdb, maxInFlight: 1, timeout: 10 * time.Second}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	rdb.Set(ctx, "text", "x", 0)
	errs := make(chan error, 200)
	for i := range 200 {
		go func() {
			if i%10 == 0 {
				err := q.process(ctx, redis.NewCmd(ctx, "incr", "text"), false)
				if err == nil {
					errs <- errors.New("incremented a text")
					return
				}
				errs <- nil
				return
			}
			cmd := redis.NewCmd(ctx, "echo", i)
			err := q.process(ctx, cmd, false)
			if n, convErr := cmd.Int(); err == nil && (convErr != nil || n != i) {
				err = errors.New("the reply is another's: " + cmd.String())
			}
			errs <- err
		}()
	}
	for range 200 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	q.close()
}

func infoField(t *testing.T, rdb *redis.Client, section, name string) string {
	t.Helper()
	info, err := rdb.InfoMap(t.Context(), section).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, fields := range info {
		if v, ok := fields[name]; ok {
			return v
		}
	}
	return ""
}
