package lock

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
	l := &lane{rdb: rdb, abreast: 1, timeout: 10 * time.Second}
	t.Cleanup(l.close)
	long, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	blocked := make(chan error, 1)
	go func() { blocked <- l.process(long, redis.NewCmd(long, "blpop", "wake", "0"), false) }()
	testredis.Eventually(t, 5*time.Second, func() bool {
		return infoField(t, rdb, "clients", "blocked_clients") == "1"
	}, "the place is taken")

	timed, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if err := l.process(timed, redis.NewCmd(timed, "set", "timed", "1"), false); !errors.Is(err, redis.ErrPoolTimeout) {
		t.Errorf("at its deadline: %v", err)
	}
	gone, leave := context.WithCancel(long)
	leave()
	if err := l.process(gone, redis.NewCmd(gone, "set", "gone", "1"), false); !errors.Is(err, redis.ErrPoolTimeout) {
		t.Errorf("cancelled: %v", err)
	}
	patient := make(chan error, 1)
	go func() { patient <- l.process(long, redis.NewCmd(long, "set", "patient", "1"), false) }()
	rdb.RPush(t.Context(), "wake", "1")
	if err := errors.Join(<-blocked, <-patient); err != nil {
		t.Error(err)
	}
	l.close()
	if n := rdb.Exists(t.Context(), "timed", "gone", "patient").Val(); n != 1 || l.going != 0 {
		t.Errorf("%d of one executed, %d places taken", n, l.going)
	}
}

// A deadline is minded without the help of a context that ends: of who waits for
// a place, and of who is under way while the server does not answer. The others
// get their answers.
func TestRidesMindTheirDeadlines(t *testing.T) {
	t.Parallel()
	rdb := testredis.Start(t).Client(t)
	l := &lane{rdb: rdb, abreast: 1, timeout: 10 * time.Second}
	t.Cleanup(l.close)
	within := func(d time.Duration) context.Context {
		return &deadlineContext{context.Background(), time.Now().Add(d)}
	}
	blocked := func(n string) bool { return infoField(t, rdb, "clients", "blocked_clients") == n }
	long := within(10 * time.Second)
	first := make(chan error, 1)
	go func() { first <- l.process(long, redis.NewCmd(long, "blpop", "first", "0"), false) }()
	testredis.Eventually(t, 5*time.Second, func() bool { return blocked("1") }, "the place is taken")

	// The bell is set to the latest of them first.
	patient := make(chan error, 1)
	go func() { patient <- l.process(long, redis.NewCmd(long, "set", "patient", "1"), false) }()
	short := within(20 * time.Millisecond)
	if err := l.process(short, redis.NewCmd(short, "set", "late", "1"), false); !errors.Is(err, redis.ErrPoolTimeout) {
		t.Errorf("not sent: %v", err)
	}
	// The next driver takes both, and hangs with them.
	soon := within(time.Second)
	stuck := make(chan error, 1)
	go func() { stuck <- l.process(soon, redis.NewCmd(soon, "blpop", "second", "0"), false) }()
	testredis.Eventually(t, 5*time.Second, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.rides.waiting == 2
	}, "two wait")
	rdb.RPush(t.Context(), "first", "1")
	if err := <-stuck; !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout) {
		t.Errorf("under way: %v", err)
	}
	rdb.RPush(t.Context(), "second", "1")
	if err := errors.Join(<-first, <-patient); err != nil {
		t.Error(err)
	}
	l.close()
	if n := rdb.Exists(t.Context(), "late", "patient").Val(); n != 1 || l.going != 0 || l.rides.waiting != 0 || l.rides.first != nil {
		t.Errorf("%d of one executed, %d places taken, %d wait", n, l.going, l.rides.waiting)
	}
}

// Each gets its own reply, and its own error.
func TestRidesAreTheirOwn(t *testing.T) {
	t.Parallel()
	rdb := testredis.Start(t).Client(t)
	l := &lane{rdb: rdb, abreast: 1, timeout: 10 * time.Second}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	rdb.Set(ctx, "text", "x", 0)
	errs := make(chan error, 200)
	for i := range 200 {
		go func() {
			if i%10 == 0 {
				err := l.process(ctx, redis.NewCmd(ctx, "incr", "text"), false)
				if err == nil {
					errs <- errors.New("incremented a text")
					return
				}
				errs <- nil
				return
			}
			cmd := redis.NewCmd(ctx, "echo", i)
			err := l.process(ctx, cmd, false)
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
	l.close()
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
