package lock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/redisproc"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

// childArg makes the test binary a process that holds a lock.
const childArg = "lock-test-child"

// childRenewals makes a child say of each renewal how late it was.
const childRenewals = "renewals"

// child takes the lock args[1] at the server args[0] for args[2], says so on
// stdout, and then looks at its context over and over. When it sees that it has
// not run for longer than the TTL it says what its first look told.
func child(args []string) int {
	opt, err := redis.ParseURL(args[0])
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	ttl, err := time.ParseDuration(args[2])
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	rdb := redis.NewClient(opt)
	defer rdb.Close()
	o := lock.Options{App: "child"}
	c, err := lock.New(rdb, o)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	defer c.Close()
	if slices.Contains(args[3:], childRenewals) {
		c.Observe(func(e lock.Event) {
			if e.Kind == lock.EventRenewed {
				fmt.Println("renewed", e.Late)
			}
		})
	}
	h, err := c.Acquire(context.Background(), args[1], lock.Lease{TTL: ttl})
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	step := time.NewTicker(time.Millisecond)
	defer step.Stop()
	last := time.Now() // before the parent can stop us
	fmt.Println("held", h.Fence())
	for {
		now := time.Now()
		looked := h.Context().Err() != nil
		if now.Sub(last) > ttl {
			fmt.Println("looked", looked, errors.Is(context.Cause(h.Context()), lock.ErrLost))
			err := h.Release(context.Background())
			fmt.Println("released", errors.Is(err, lock.ErrLost))
			return 0
		}
		last = now
		<-step.C
	}
}

// startChild runs a child and returns it with its lines.
func startChild(t *testing.T, url, key string, ttl time.Duration, more ...string) (*exec.Cmd, <-chan string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{childArg, url, key, ttl.String()}, more...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 16)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(out)
		for s.Scan() {
			lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Kill()
		for range lines { //nolint:revive // Drain, so that the reader ends.
		}
		_ = cmd.Wait()
	})
	return cmd, lines
}

func line(t *testing.T, lines <-chan string, within time.Duration) string {
	t.Helper()
	select {
	case s := <-lines:
		return s
	case <-time.After(within):
		t.Fatal("the child says nothing")
		return ""
	}
}

// Fault 1 of the list: a holder that was stopped past its TTL knows at its first
// look, and its release touches nothing.
// fault: 1
func TestStoppedHolderKnowsAtItsFirstLook(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	const ttl = 2 * time.Second
	cmd, lines := startChild(t, b.srv.URL(), "job", ttl)
	first := line(t, lines, 20*time.Second)
	if !strings.HasPrefix(first, "held ") {
		t.Fatalf("child: %s", first)
	}
	if err := redisproc.Freeze(cmd.Process); err != nil {
		t.Fatal(err)
	}
	h := mustAcquire(t, b.client, "job", lease())
	if "held "+fmt.Sprint(h.Fence()) <= first {
		t.Errorf("fence %d of the second holder, first: %s", h.Fence(), first)
	}
	// The child judges by how long it stood: longer than its TTL from here on.
	began := time.Now()
	testredis.Eventually(t, 10*time.Second, func() bool { return time.Since(began) > ttl+100*time.Millisecond }, "clock")
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if got := line(t, lines, 20*time.Second); got != "looked true true" {
		t.Errorf("first look after the pause: %q", got)
	}
	if got := line(t, lines, 20*time.Second); got != "released true" {
		t.Errorf("release of the stopped holder: %q", got)
	}
	if err := h.Err(); err != nil {
		t.Errorf("second holder: %v", err)
	}
	if m := meta(t, b.rdb, "job"); m == nil || m.Lost == nil || m.Lost.Fence == 0 {
		t.Errorf("metadata does not tell of the lost hold: %+v", m)
	}
	mustRelease(t, h)
}

// Fault 6: the lock of a killed holder is free after its TTL, and a waiter gets
// it then.
func TestKilledHolderFreesAfterTTL(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	cmd, lines := startChild(t, b.srv.URL(), "job", time.Second)
	if got := line(t, lines, 20*time.Second); !strings.HasPrefix(got, "held ") {
		t.Fatalf("child: %s", got)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	h := mustAcquire(t, b.client, "job", lease())
	if took := time.Since(killed); took > 2500*time.Millisecond {
		t.Errorf("took %s after the kill for a TTL of 1s", took)
	}
	mustRelease(t, h)
}
