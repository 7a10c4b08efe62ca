package fenced_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/redisproc"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/fenced"
)

// lateArg makes the test binary a holder that does not look at its context.
const lateArg = "fenced-test-late-holder"

const lateTTL = 2 * time.Second

// lateHolder takes the lock, says its fence, and on a line of stdin writes to
// every resource, whatever has become of the lock; then it says how that went.
func lateHolder(redisURL, dsn string) int {
	opt, err := redis.ParseURL(redisURL)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	rdb := redis.NewClient(opt)
	defer rdb.Close()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	defer db.Close()
	client, err := lock.New(rdb, lock.Options{App: "late"})
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	defer client.Close()
	h, err := client.Acquire(context.Background(), "lock:order:42", lease(lateTTL))
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	fmt.Println(h.Fence())
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		fmt.Println("error", err)
		return 1
	}
	for _, r := range resources(rdb, db) {
		err := r.write(context.Background(), h.Fence(), "late")
		fmt.Println(r.name, err == nil, errors.Is(err, fenced.ErrStale))
	}
	fmt.Println("lost", errors.Is(h.Err(), lock.ErrLost))
	return 0
}

// resource is something that holders write to.
type resource struct {
	name   string
	fenced bool
	write  func(ctx context.Context, fence int64, value string) error
	read   func(ctx context.Context) (string, error)
}

// resources are ours, and their controls without fence.
func resources(rdb redis.UniversalClient, db *sql.DB) []resource {
	state := func(table string) func(context.Context) (string, error) {
		return func(ctx context.Context) (value string, err error) {
			err = db.QueryRowContext(ctx, `SELECT state FROM `+table+` WHERE id = 42`).Scan(&value)
			return value, err
		}
	}
	return []resource{
		{
			"redis", true,
			func(ctx context.Context, fence int64, value string) error {
				return fenced.Set(ctx, rdb, "order:42", fence, value)
			},
			func(ctx context.Context) (string, error) {
				value, _, err := fenced.Get(ctx, rdb, "order:42")
				return value, err
			},
		},
		{"row", true, func(ctx context.Context, fence int64, value string) error {
			return orders.Update(ctx, db, 42, fence, value)
		}, state("orders")},
		{"guard", true, func(ctx context.Context, fence int64, value string) error {
			return guarded(ctx, db, fence, value)
		}, state("stock")},
		{
			"unfenced redis", false,
			func(ctx context.Context, _ int64, value string) error {
				return rdb.Set(ctx, "plain:42", value, 0).Err()
			},
			func(ctx context.Context) (string, error) { return rdb.Get(ctx, "plain:42").Result() },
		},
		{"unfenced row", false, func(ctx context.Context, _ int64, value string) error {
			_, err := db.ExecContext(ctx, `UPDATE plain SET state = $1 WHERE id = 42`, value)
			return err
		}, state("plain")},
	}
}

// A holder is stopped beyond its lease, another takes the lock and writes, and
// the first goes on: it is refused wherever its fence is looked at, and destroys
// the update wherever it is not.
func TestLateHolderIsRefused(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	dsn := testpg.Database(t)
	rdb, db := srv.Client(t), openDB(t, dsn)
	makeTables(t, db)
	late := startLate(t, srv.URL(), dsn)
	first, err := strconv.ParseInt(late.line(t), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := redisproc.Freeze(late.cmd.Process); err != nil {
		t.Fatal(err)
	}

	client, err := lock.New(rdb, lock.Options{App: "next"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	h, err := client.Acquire(t.Context(), "lock:order:42", lease(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if h.Fence() <= first {
		t.Fatalf("fence %d after %d", h.Fence(), first)
	}
	all := resources(rdb, db)
	for _, r := range all {
		if err := r.write(h.Context(), h.Fence(), "new"); err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
	}

	late.signal(t, syscall.SIGCONT)
	if _, err := io.WriteString(late.stdin, "go on\n"); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		said := late.line(t)
		got, err := r.read(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		wantSaid, want := r.name+" false true", "new"
		if !r.fenced {
			wantSaid, want = r.name+" true false", "late"
		}
		if said != wantSaid || got != want {
			t.Errorf("%s: the late holder says %q and the resource has %q, want %q and %q", r.name, said, got, wantSaid, want)
		}
	}
	if got := late.line(t); got != "lost true" {
		t.Errorf("the late holder says %q", got)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// child is a lateHolder.
type child struct {
	cmd   *exec.Cmd
	stdin io.Writer
	lines chan string
}

func startLate(t *testing.T, args ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{lateArg}, args...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, stdin: in, lines: make(chan string, 16)}
	go func() {
		defer close(c.lines)
		s := bufio.NewScanner(out)
		for s.Scan() {
			c.lines <- strings.TrimSpace(s.Text())
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		for range c.lines { //nolint:revive // Drain, so that the reader ends.
		}
		_ = cmd.Wait()
	})
	return c
}

func (c *child) line(t *testing.T) string {
	t.Helper()
	select {
	case s := <-c.lines:
		return s
	case <-time.After(30 * time.Second):
		t.Fatal("the late holder says nothing")
		return ""
	}
}

func (c *child) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}
