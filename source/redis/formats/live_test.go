package formats_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap/zaptest"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/scanner"
	redissource "github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// live is a lock of a real library of another language. Its program takes the
// lock, says "held", and when it is informed to release says how that went.
type live struct {
	format  string
	key     string
	program []string // interpreter and arguments; the server's port follows
	want    locksteward.Lock
	// after is what the holder says when it releases a lock that is not its own
	// any more.
	after string
	// poll is the command that takes the lock, in the server's statistics.
	poll string
}

// worker is one process that uses the library.
type worker struct {
	t     *testing.T
	in    io.WriteCloser
	lines <-chan string
}

func startWorker(t *testing.T, program []string, port string) *worker {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program[0], append(program[1:len(program):len(program)], port)...)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	must(t, cmd.Start())
	lines := make(chan string)
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			select {
			case lines <- s.Text():
			case <-t.Context().Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = in.Close() // the worker ends with its input
		for range lines {
		}
		<-read
		if err := cmd.Wait(); err != nil && t.Context().Err() == nil {
			t.Errorf("%s: %v\n%s", program[0], err, complaints.String())
		}
		if t.Failed() {
			t.Log(complaints.String())
		}
	})
	return &worker{t: t, in: in, lines: lines}
}

func (w *worker) says(want string) {
	w.t.Helper()
	select {
	case got, open := <-w.lines:
		if !open || got != want {
			w.t.Fatalf("the worker says %q, want %q", got, want)
		}
	case <-time.After(20 * time.Second):
		w.t.Fatalf("the worker is silent, want %q", want)
	}
}

func (w *worker) tell(what string) {
	w.t.Helper()
	_, err := io.WriteString(w.in, what+"\n")
	must(w.t, err)
}

// scanOnce lets the real scanner look, with a class that claims about every name.
func scanOnce(t *testing.T, url string) locksteward.Sweep {
	t.Helper()
	conn, err := connect.Open(connect.Config{URL: url, ReadTimeout: 5 * time.Second})
	must(t, err)
	defer func() { must(t, conn.Close()) }()
	classes, err := class.NewSet([]class.Class{{Name: "all", Match: []string{"*a*", "*e*", "*i*", "*o*", "*u*", "*:*"}}})
	must(t, err)
	src, err := redissource.New(conn, redissource.Options{Log: zaptest.NewLogger(t), Digest: locksteward.NewDigestKey(), Unpaced: true})
	must(t, err)
	s, err := scanner.New(zaptest.NewLogger(t), locksteward.Target{Name: "live", Mode: conn.Mode()}, src, classes, scanner.Config{NoThrottle: true}, scanner.Options{})
	must(t, err)
	sweep, err := s.Sweep(t.Context())
	must(t, err)
	return sweep
}

// calls is how often the server ran a command.
func calls(t *testing.T, c *redis.Client, name string) int {
	t.Helper()
	stats := c.Info(t.Context(), "commandstats").Val()
	m := regexp.MustCompile(`cmdstat_` + regexp.QuoteMeta(name) + `:calls=(\d+)`).FindStringSubmatch(stats)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	must(t, err)
	return n
}

// run takes the lock with the real library, releases it by force while another
// process of the library waits, and sees that one get it and the first one learn
// of it.
func (l live) run(t *testing.T) {
	t.Helper()
	server := testredis.Start(t)
	c := server.Client(t)
	port := server.Addr()[strings.LastIndex(server.Addr(), ":")+1:]

	holder := startWorker(t, l.program, port)
	holder.says("waiting")
	holder.says("held")
	sweep := scanOnce(t, server.URL())
	i := slices.IndexFunc(sweep.Locks, func(k locksteward.Lock) bool { return k.Key == l.key })
	if i < 0 {
		t.Fatalf("the scanner does not see %q among %d locks", l.key, len(sweep.Locks))
	}
	got := sweep.Locks[i]
	if got.Library != l.format || got.Confidence != l.want.Confidence || got.Identity != l.want.Identity || got.Type != l.want.Type {
		t.Errorf("the scanner sees %s, %s, %s, %s, want %s, %s, %s, %s", got.Library, got.Confidence, got.Identity, got.Type, l.format, l.want.Confidence, l.want.Identity, l.want.Type)
	}
	if (got.TTL == locksteward.NoExpiry) != (l.want.TTL == locksteward.NoExpiry) || got.TTL > l.want.TTL {
		t.Errorf("TTL = %s, want %s at most", got.TTL, l.want.TTL)
	}

	before := calls(t, c, l.poll)
	waiter := startWorker(t, l.program, port)
	waiter.says("waiting")
	testredis.Eventually(t, 20*time.Second, func() bool { return calls(t, c, l.poll) > before }, "the waiter does not try")
	s, r := seen(t, c, l.key, "req-1")
	release := plan(t, s, r)
	wantReply(t, run(t, c, release), formats.OutcomeReleased, formats.OutcomeReleased)
	waiter.says("held")

	// The waiter's hold is another: the same request, and the old holder's release.
	wantReply(t, run(t, c, release), formats.OutcomeRepeated, formats.OutcomeReleased)
	r.RequestID = "req-2"
	d, _ := formats.Get(l.format)
	again, err := d.Release(s, r)
	must(t, err)
	wantReply(t, run(t, c, again), formats.OutcomeChanged, formats.OutcomeChanged)
	if !exists(t, c, l.key) {
		t.Fatal("the waiter's hold is gone")
	}
	holder.tell("release")
	holder.says(l.after)
}

// interpreter returns the program of candidates that has what the probe asks
// for. Continuous integration must have it if needed says so.
func interpreter(t *testing.T, needed bool, packages string, probe []string, candidates ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real library of another language: not run with -short")
	}
	for _, candidate := range candidates {
		if exec.CommandContext(t.Context(), candidate, probe...).Run() == nil {
			return candidate
		}
	}
	if needed && os.Getenv("CI") != "" {
		t.Fatalf("the Debian packages %s are not installed", packages)
	}
	t.Skipf("SKIPPED, NOTHING TESTED: the Debian packages %s are not installed", packages)
	return ""
}
