package lock_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

// snippet is a holder in another language (docs/snippets) that runs and does what
// a line tells it.
type snippet struct {
	t     *testing.T
	in    *os.File
	lines <-chan string
}

// runSnippet starts a program for the lock key.
func runSnippet(t *testing.T, program []string, url, key string, ttl time.Duration) *snippet {
	t.Helper()
	scripts, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program[0], append(program[1:], url, key, fmt.Sprint(ttl.Seconds()))...)
	cmd.Env = append(os.Environ(), "SCRIPTS="+scripts)
	cmd.Stderr = os.Stderr
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = r
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	lines := make(chan string, 16)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = w.Close()
		for range lines { //nolint:revive // Drain, so that the reader ends.
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("snippet: %v", err)
		}
	})
	return &snippet{t: t, in: w, lines: lines}
}

// do sends a line and returns the answer, in small letters.
func (s *snippet) do(command string) string {
	s.t.Helper()
	if _, err := fmt.Fprintln(s.in, command); err != nil {
		s.t.Fatal(err)
	}
	return strings.ToLower(line(s.t, s.lines, 60*time.Second))
}

func (s *snippet) want(command string, answers ...string) {
	s.t.Helper()
	got := s.do(command)
	if slices.Contains(answers, got) {
		return
	}
	s.t.Errorf("%s: %q, want %q", command, got, answers)
}

// handedWithin bounds a hand-off: a waiter that receives nothing comes by itself
// after a turn at the soonest.
const handedWithin = 100 * time.Millisecond

// takeTurns lets the snippet, which holds the lock, hand it to c, and c hand it
// back, until each has been fast enough.
func (s *snippet) takeTurns(rdb redis.Cmdable, c *lock.Client, key string, fence int64) {
	s.t.Helper()
	theirs, ours := time.Hour, time.Hour
	for n := 0; n == 0 || n < 5 && max(theirs, ours) > handedWithin; n++ {
		got := make(chan *lock.Handle, 1)
		go func() {
			h, err := c.Acquire(s.t.Context(), key, lease())
			if err != nil {
				s.t.Error(err)
			}
			got <- h
		}()
		queued(s.t, rdb, key, 1)
		released := time.Now()
		s.want("release", "released")
		h := served(s.t, got)
		theirs = min(theirs, time.Since(released))
		if h.Fence() <= fence {
			s.t.Errorf("fence %d after %d", h.Fence(), fence)
		}
		s.want("release", "lost")

		if _, err := fmt.Fprintln(s.in, "wait"); err != nil {
			s.t.Fatal(err)
		}
		queued(s.t, rdb, key, 1)
		released = time.Now()
		mustRelease(s.t, h)
		answer := line(s.t, s.lines, 60*time.Second)
		took := time.Since(released)
		ours = min(ours, took)
		if _, err := fmt.Sscan(answer, &fence); err != nil || fence <= h.Fence() {
			s.t.Fatalf("wait: %q, after fence %d", answer, h.Fence())
		}
		s.want("valid", "true")
		// A slow machine may have been late for its turn, and have the lock after that.
		if m := meta(s.t, rdb, key); m == nil || m.Offered != 0 || m.App != "snippet" || m.Fence != fence || m.Lost != nil && took < record.Turn {
			s.t.Errorf("handed over: %+v", m)
		}
		if ttl := rdb.PTTL(s.t.Context(), key).Val(); ttl < 31*time.Second {
			s.t.Errorf("handed over for %s", ttl)
		}
	}
	s.t.Logf("the snippet's release serves in %s, ours in %s", theirs, ours)
	if theirs > handedWithin || ours > handedWithin {
		s.t.Errorf("the snippet's release serves in %s, ours in %s, want %s", theirs, ours, handedWithin)
	}
}

// python returns an interpreter with redis-py; the test is skipped without.
func python(t *testing.T) []string {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(name, "-c", "import redis.crc").Run() == nil {
			return []string{name, "../docs/snippets/python/lockholder.py"}
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("python3 with redis-py is not installed (hint: make deps)")
	}
	t.Skip("python3 with redis-py is not installed (hint: make deps)")
	return nil
}

// jedisLibraries is where Maven puts Jedis, if it was asked to (docs/snippets/java/pom.xml).
const jedisLibraries = "../docs/snippets/java/target/lib"

// java returns what runs the Java snippet: with Jedis if that is there, else with a
// stand-in that has the few methods in use (testdata/jedis). Without a compiler the test
// is skipped, but not where CI is set: there make deps installs one.
func java(t *testing.T) []string {
	t.Helper()
	if _, err := exec.LookPath("javac"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("no Java compiler here: %v (hint: scripts/deps.sh java)", err)
		}
		t.Skipf("no Java compiler here: %v (hint: scripts/deps.sh java)", err)
	}
	classes, libraries := t.TempDir(), jedisLibraries+"/*"
	sources := []string{"../docs/snippets/java/LockstewardLock.java"}
	if jars, err := filepath.Glob(jedisLibraries + "/jedis-*.jar"); err != nil || len(jars) == 0 {
		libraries = "."
		for _, folder := range []string{"*.java", "*/*.java"} {
			more, err := filepath.Glob("testdata/jedis/redis/clients/jedis/" + folder)
			if err != nil || len(more) == 0 {
				t.Fatalf("no stand-in for Jedis: %v", err)
			}
			sources = append(sources, more...)
		}
		t.Log("Jedis is not here: with the stand-in for it")
	}
	compile := exec.Command("javac", append([]string{"-Xlint:all,-serial", "-Werror", "-cp", libraries, "-d", classes}, sources...)...)
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	return []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", classes + string(os.PathListSeparator) + libraries, "LockstewardLock"}
}

// The snippets of docs/snippets hold a lock as this library does: each sees the
// other's, wakes the other's waiters, and tells released, lost and unknown apart.
func TestSnippets(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]func(*testing.T) []string{"redis-py": python, "Jedis": java} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := program(t)
			for _, key := range []string{"lock:order:42", "{user:7}:lock", "order}42"} {
				t.Run(key, func(t *testing.T) {
					t.Parallel()
					snippetHolds(t, command, key)
				})
			}
		})
	}
}

func snippetHolds(t *testing.T, command []string, key string) {
	b := setup(t, lock.Options{App: "go"})
	s := runSnippet(t, command, b.srv.URL(), key, 60*time.Second)
	ours := mustAcquire(t, b.client, key, lease())
	s.want("acquire", "none", "null")
	mustRelease(t, ours)

	var fence int64
	if _, err := fmt.Sscan(s.do("acquire"), &fence); err != nil || fence <= ours.Fence() {
		t.Fatalf("fence %d after %d, %v", fence, ours.Fence(), err)
	}
	value := b.rdb.Get(t.Context(), key).Val()
	id, ok := record.ParseValue([]byte(value))
	m := meta(t, b.rdb, key)
	if !ok || m == nil || m.ID != id || m.V != 2 || m.App != "snippet" || m.Purpose != "by hand" || m.Fence != fence || m.TTL != 60000 || m.RenewEvery != 20000 || m.PID == 0 {
		t.Errorf("value of %d bytes, metadata %+v", len(value), m)
	}
	_, err := b.client.TryAcquire(t.Context(), key, lease())
	if held, is := errors.AsType[*lock.HeldError](err); !is || held.Holder.App != "snippet" || held.Holder.Fence != fence {
		t.Errorf("our attempt: %v", err)
	}
	if err := b.rdb.PExpire(t.Context(), key, 30*time.Second).Err(); err != nil {
		t.Fatal(err)
	}
	s.want("renew", "true", "renewed")
	if m := meta(t, b.rdb, key); m.Renewals != 1 || b.rdb.PTTL(t.Context(), key).Val() < 31*time.Second {
		t.Errorf("renewed: %+v", m)
	}
	s.want("valid", "true")

	s.takeTurns(b.rdb, b.client, key, fence)
	s.want("release", "released")
	if n := exists(t, b.rdb, key, metaKey(key), queueKey(key), waiterKey(key)); n != 0 {
		t.Errorf("%d keys are left", n)
	}

	// Lost: the key is another's, and stays.
	s.do("acquire")
	if err := b.rdb.Set(t.Context(), key, "another", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	s.want("renew", "false", "lost")
	s.want("valid", "false")
	s.want("release", "lost")
	if b.rdb.Get(t.Context(), key).Val() != "another" {
		t.Error("the other's lock was touched")
	}

	// The next hold says which one was lost.
	lost := meta(t, b.rdb, key)
	if err := b.rdb.Del(t.Context(), key).Err(); err != nil {
		t.Fatal(err)
	}
	s.do("acquire")
	if m := meta(t, b.rdb, key); m.Lost == nil || lost == nil || m.Lost.ID != lost.ID || m.Lost.Holder != lost.Instance || m.Lost.Fence != lost.Fence {
		t.Errorf("metadata %+v after that of a lost hold %+v", m, lost)
	}

	// Unknown: no reply.
	b.srv.Pause()
	s.want("renew", "none", "unknown")
	s.want("release", "unknown")
	b.srv.Resume()
}

// On a Cluster waiters listen on sharded channels: the snippets and the library
// hand the lock to each other there, too.
func TestSnippetsOnCluster(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 7, 0, "a sharded channel")
	for name, program := range map[string]func(*testing.T) []string{"redis-py": python, "Jedis": java} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := program(t)
			cluster := testredis.StartCluster(t)
			rdb := cluster.Client(t)
			c := open(t, rdb, lock.Options{App: "go"})
			url := strings.Replace(cluster.Nodes[0].URL(), "redis:", "redis+cluster:", 1)
			for _, key := range []string{"lock:order:42", "{user:7}:lock", "order}42"} {
				ours := mustAcquire(t, c, key, lease())
				s := runSnippet(t, command, url, key, 60*time.Second)
				s.want("acquire", "none", "null")
				mustRelease(t, ours)
				var fence int64
				if _, err := fmt.Sscan(s.do("acquire"), &fence); err != nil || fence <= ours.Fence() {
					t.Fatalf("fence %d after %d, %v", fence, ours.Fence(), err)
				}
				s.takeTurns(rdb, c, key, fence)
				s.want("release", "released")
			}
		})
	}
}
