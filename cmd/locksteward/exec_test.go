package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/redisproc"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

// execution is a 'locksteward exec' that runs as a process of its own.
type execution struct {
	t      *testing.T
	cmd    *exec.Cmd
	dir    string
	out    bytes.Buffer
	stderr written
	done   chan error
}

// written is what a program has written so far.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// startExec runs the shell script under the lock job at the server at url. It
// finds $DIR, a folder of its own.
func startExec(t *testing.T, url, script string, args ...string) *execution {
	t.Helper()
	e := &execution{t: t, dir: t.TempDir(), done: make(chan error, 1)}
	all := append([]string{"exec", "--server", url, "--key", "job"}, args...)
	e.cmd = exec.Command("locksteward", append(all, "--", "sh", "-c", script)...)
	e.cmd.Env = append(os.Environ(), "DIR="+e.dir, "GORACE=atexit_sleep_ms=0")
	e.cmd.Stdout, e.cmd.Stderr = &e.out, &e.stderr
	// What is left of a failed test must not keep Wait from returning.
	e.cmd.WaitDelay = 5 * time.Second
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { e.done <- e.cmd.Wait() }()
	t.Cleanup(func() {
		_ = e.cmd.Process.Signal(syscall.SIGCONT)
		_ = e.cmd.Process.Kill()
		if pid, err := strconv.Atoi(strings.TrimSpace(e.read("pid"))); err == nil {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	})
	return e
}

func (e *execution) read(name string) string {
	raw, err := os.ReadFile(filepath.Join(e.dir, name))
	if err != nil {
		return ""
	}
	return string(raw)
}

// await waits until a file of the script is there, and returns it.
func (e *execution) await(name string) string {
	e.t.Helper()
	testredis.Eventually(e.t, 30*time.Second, func() bool { return strings.HasSuffix(e.read(name), "\n") }, "no file "+name)
	return strings.TrimSpace(e.read(name))
}

func (e *execution) write(name string) {
	e.t.Helper()
	if err := os.WriteFile(filepath.Join(e.dir, name), []byte("go\n"), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

// code waits for the end.
func (e *execution) code() int {
	e.t.Helper()
	select {
	case err := <-e.done:
		e.done <- err
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return exit.ExitCode()
		} else if err != nil {
			e.t.Fatalf("wait: %v", err)
		}
		return 0
	case <-time.After(30 * time.Second):
		e.t.Fatalf("exec does not end")
		return 0
	}
}

func (e *execution) want(code int, words ...string) {
	e.t.Helper()
	if got := e.code(); got != code {
		e.t.Errorf("exit code %d, want %d; stderr: %s", got, code, e.stderr.String())
	}
	for _, w := range words {
		if !strings.Contains(e.stderr.String(), w) {
			e.t.Errorf("stderr has no %q: %s", w, e.stderr.String())
		}
	}
}

// alive says that a process runs; one that is dead and not waited for does not.
func alive(pid string) bool {
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil || syscall.Kill(n, 0) != nil {
		return false
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	_, state, _ := strings.Cut(string(raw), ") ")
	return !strings.HasPrefix(state, "Z")
}

func free(t *testing.T, rdb *redis.Client) bool {
	t.Helper()
	n, err := rdb.Exists(t.Context(), "job").Result()
	return err == nil && n == 0
}

func metaOf(t *testing.T, rdb *redis.Client) record.Meta {
	t.Helper()
	text, err := rdb.Get(t.Context(), record.Companion(record.DefaultPrefix, record.KindHold, "job")).Result()
	if err != nil {
		t.Fatal(err)
	}
	m, err := record.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return *m
}

// awaitRenewal waits until exec has renewed the lock: by then its guard knows the command, which may have begun
// before the guard knew of it.
func awaitRenewal(t *testing.T, rdb *redis.Client) {
	t.Helper()
	testredis.Eventually(t, 20*time.Second, func() bool { return metaOf(t, rdb).Renewals > 0 }, "not renewed")
}

// work is a command that says who it is, and that it was informed to stop, and works on
// until it is.
const work = `
trap 'echo term >> $DIR/reported; exit 9' TERM
trap 'echo int >> $DIR/reported; exit 8' INT
echo $$ > $DIR/pid
while :; do sleep 0.05; done`

func TestExecPassesOnSignals(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	e := startExec(t, srv.URL(), work, "--expect", "2s", "--class", "jobs", "--purpose", "a test")
	e.await("pid")
	m := metaOf(t, rdb)
	if m.App != "sh" || m.Class != "jobs" || m.Purpose != "a test" || m.Expect != 2000 || m.PID != e.cmd.Process.Pid || m.Fence == 0 {
		t.Errorf("metadata: %+v", m)
	}
	if err := e.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	e.want(8)
	if e.read("reported") != "int\n" || !free(t, rdb) {
		t.Errorf("reported %q, lock free: %v", e.read("reported"), free(t, rdb))
	}
	if n := rdb.Exists(t.Context(), record.InstanceKey(record.DefaultPrefix, m.Instance)).Val(); n != 0 {
		t.Error("the heartbeat is left")
	}
}

// A signal reaches all that the command started, and exec stays until it ends.
func TestExecSignalsTheGroup(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	e := startExec(t, srv.URL(), `
trap : TERM
sh -c 'trap "echo term > $DIR/child; exit 0" TERM; echo ready > $DIR/ready; while :; do sleep 0.05; done' &
echo $$ > $DIR/pid
wait; wait; exit 3`)
	e.await("ready")
	if err := e.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := e.await("child"); got != "term" {
		t.Errorf("the command's child: %q", got)
	}
	e.want(3)
}

func TestExecEndsWithTheLock(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		lose func(t *testing.T, srv *testredis.Server, rdb *redis.Client)
		want string // on stderr
	}{
		"forced release": {
			// The renewal is 20 s away: only the message can end it at once.
			[]string{"--lease", "60s"},
			func(t *testing.T, _ *testredis.Server, rdb *redis.Client) {
				m := metaOf(t, rdb)
				channel := record.InstanceKey(record.DefaultPrefix, m.Instance)
				testredis.Eventually(t, 10*time.Second, func() bool {
					return rdb.Publish(t.Context(), channel, record.Message{Kind: record.MessageLost, ID: m.ID}.String()).Val() == 1
				}, "nobody listens")
			},
			"forced",
		},
		"deleted": {
			[]string{"--lease", "2s"},
			func(t *testing.T, _ *testredis.Server, rdb *redis.Client) {
				if err := rdb.Del(t.Context(), "job").Err(); err != nil {
					t.Fatal(err)
				}
			},
			"gone",
		},
		"taken": {
			[]string{"--lease", "2s"},
			func(t *testing.T, _ *testredis.Server, rdb *redis.Client) {
				if err := rdb.Set(t.Context(), "job", "another", time.Minute).Err(); err != nil {
					t.Fatal(err)
				}
			},
			"taken",
		},
		"server gone": {
			[]string{"--lease", "2s"},
			func(_ *testing.T, srv *testredis.Server, _ *redis.Client) { srv.Kill() },
			"expired",
		},
		"held for its maximum": {
			// Long enough for a slow machine to start the guard and the command.
			[]string{"--lease", "10s", "--max-hold", "3s"},
			func(*testing.T, *testredis.Server, *redis.Client) {},
			"max_hold",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t)
			rdb := srv.Client(t)
			e := startExec(t, srv.URL(), work, tt.args...)
			pid := e.await("pid")
			tt.lose(t, srv, rdb)
			e.want(execLost, "lost", tt.want, "stopping the command", "with code 9")
			if e.read("reported") != "term\n" || alive(pid) {
				t.Errorf("reported %q, alive: %v", e.read("reported"), alive(pid))
			}
		})
	}
}

// What ignores SIGTERM is killed after the grace, and what it started with it,
// also when the first process ended at once.
func TestExecKillsAfterTheGrace(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"deaf": `trap '' TERM
sleep 1000 & echo $! > $DIR/child
echo $$ > $DIR/pid; while :; do wait; done`,
		"left behind": `sh -c 'trap "" TERM; echo $$ > $DIR/child; while :; do sleep 0.05; done' &
trap 'exit 0' TERM
echo $$ > $DIR/pid; while :; do wait; done`,
		"asleep": `sh -c 'echo $$ > $DIR/child; kill -STOP $$; sleep 1000' &
echo $$ > $DIR/pid; wait`,
	} {
		for _, how := range []string{"term", "kill"} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				srv := testredis.Start(t)
				e := startExec(t, srv.URL(), script, "--lease", "3s", "--grace", "300ms", "--on-lost", how, "--lost-exit-code", "42")
				pid, child := e.await("pid"), e.await("child")
				if err := srv.Client(t).Del(t.Context(), "job").Err(); err != nil {
					t.Fatal(err)
				}
				e.want(42)
				testredis.Eventually(t, 5*time.Second, func() bool { return !alive(pid) && !alive(child) }, "a process of the command lives on")
			})
		}
	}
}

// The lock of an exec that was killed must not be free while its command works:
// the guard stops that, and the lease is left to end.
func TestExecKilledTakesItsCommandAlong(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	e := startExec(t, srv.URL(), work, "--lease", "10s") // more than a slow machine takes to the look whether it is free
	pid := e.await("pid")
	awaitRenewal(t, rdb)
	if err := e.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := e.await("reported"); got != "term" {
		t.Errorf("reported %q", got)
	}
	testredis.Eventually(t, 5*time.Second, func() bool { return !alive(pid) }, "the command lives on")
	if free(t, rdb) {
		t.Error("the lock was freed by nobody who may")
	}
	next := startExec(t, srv.URL(), "exit 5", "--wait", "20s")
	next.want(5)
	e.code()
	if !strings.Contains(e.stderr.String(), "locksteward exec has died") {
		t.Errorf("stderr: %s", e.stderr.String())
	}
}

// An exec that is frozen beyond its lease (SIGSTOP) cannot stop its command. The
// guard does, before another can have the lock.
func TestExecFrozenPastItsLease(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	e := startExec(t, srv.URL(), `echo $$ > $DIR/pid; exec sleep 1000`, "--lease", "2s", "--on-lost", "kill")
	pid := e.await("pid")
	awaitRenewal(t, rdb)
	if err := redisproc.Freeze(e.cmd.Process); err != nil {
		t.Fatal(err)
	}
	client, err := lock.New(rdb, lock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // The test is over.
	h, err := client.Acquire(t.Context(), "job", lock.Lease{TTL: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	// The guard fires when the server may give the lock away: what it takes until
	// the command is dead is what the machine takes to run it.
	taken := time.Now()
	testredis.Eventually(t, 5*time.Second, func() bool { return !alive(pid) }, "two work at once")
	late := time.Since(taken)
	t.Logf("seen dead %s after the next holder began", late)
	if late > time.Second { // a loaded machine takes some time to look
		t.Errorf("two worked at once for %s", late)
	}
	if err := e.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	e.want(execLost, "has not spoken", "lost")
	if err := h.Err(); err != nil {
		t.Errorf("the next holder: %v", err)
	}
}

// A wait that is ended by a signal leaves nothing behind, and runs nothing.
func TestExecWaitIsEnded(t *testing.T) {
	t.Parallel()
	for sig, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			if signal.Ignored(sig) {
				t.Skipf("the parent process ignores %s, as nohup does: so does exec, as it should", sig)
			}
			srv := testredis.Start(t)
			rdb := srv.Client(t)
			if err := rdb.Set(t.Context(), "job", "another", 0).Err(); err != nil {
				t.Fatal(err)
			}
			e := startExec(t, srv.URL(), `echo ran > $DIR/ran`)
			waiters := record.Companion(record.DefaultPrefix, record.KindWaiter, "job")
			waiting := func(want int64) func() bool {
				return func() bool { return rdb.HLen(context.Background(), waiters).Val() == want }
			}
			testredis.Eventually(t, 20*time.Second, waiting(1), "nobody waits")
			if err := e.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			e.want(code, "ended by a signal while waiting")
			testredis.Eventually(t, 10*time.Second, waiting(0), "still among those who wait")
			if e.read("ran") != "" || rdb.Get(t.Context(), "job").Val() != "another" {
				t.Error("it ran, or took the lock")
			}
		})
	}
}

// Each command lasts longer than the turn for which a lock is handed over.
func TestExecWaitsInOrder(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	first := startExec(t, srv.URL(), `echo $$ > $DIR/pid; while ! [ -e $DIR/go ]; do sleep 0.05; done`)
	first.await("pid")
	order := filepath.Join(t.TempDir(), "order")
	var all []*execution
	for i := range 4 {
		all = append(all, startExec(t, srv.URL(), fmt.Sprintf("echo %d >> %s; sleep 0.4", i, order), "--wait", "1m"))
		queue := record.Companion(record.DefaultPrefix, record.KindQueue, "job")
		testredis.Eventually(t, 20*time.Second, func() bool { return rdb.ZCard(context.Background(), queue).Val() == int64(i+1) }, "not in the queue")
	}
	first.write("go")
	first.want(0)
	for _, e := range all {
		e.want(0)
	}
	raw, err := os.ReadFile(order)
	if err != nil || string(raw) != "0\n1\n2\n3\n" {
		t.Errorf("order %q, %v", raw, err)
	}
}

// A release without a reply is said: the next may have to wait for the lease.
func TestExecSaysThatAReleaseIsUnknown(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	proxy := testredis.NewProxy(t, srv.Addr())
	e := startExec(t, "redis://"+proxy.Addr(), `echo $$ > $DIR/pid; while ! [ -e $DIR/go ]; do sleep 0.05; done; exit 6`)
	e.await("pid")
	proxy.Freeze(true)
	e.write("go")
	e.want(6, "may stay until its lease of 30s ends")
}

// Renewals that fail are said before the lock is lost, and that they work again.
func TestExecTellsOfRenewals(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	proxy := testredis.NewProxy(t, srv.Addr())
	e := startExec(t, "redis://"+proxy.Addr(), work, "--lease", "5s")
	e.await("pid")
	fields := metaOf(t, srv.Client(t))
	proxy.Cut()
	says := func(words string) func() bool {
		return func() bool { return strings.Contains(e.stderr.String(), words) }
	}
	testredis.Eventually(t, 20*time.Second, says("a renewal failed"), "no renewal fails")
	proxy.Heal()
	testredis.Eventually(t, 20*time.Second, func() bool { return metaOf(t, srv.Client(t)).Renewals > fields.Renewals }, "not renewed")
	// The server knows of the renewal before exec has its reply.
	testredis.Eventually(t, 20*time.Second, says("renewed again"), "exec does not know that it is renewed")
	if err := e.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	e.want(9, "a renewal failed", "renewed again")
}
