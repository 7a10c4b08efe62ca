package zksource_test

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap/zaptest"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testzk"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
	zksource "github.com/locksteward/locksteward/source/zookeeper"
)

// soon is how long anything may take on a loaded machine.
const soon = 30 * time.Second

// uuid is what Curator puts into the names of its nodes.
func uuid() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// guid is what go-zookeeper and kazoo put there.
func guid() string { return strings.ReplaceAll(uuid(), "-", "") }

// world is a directory of a server with an application's session, a source and its scanner.
type world struct {
	t       *testing.T
	server  *testzk.Server
	root    string
	app     *zk.Conn
	src     *zksource.Source
	scanner *scanner.Scanner
	digest  locksteward.DigestKey
}

// newWorld makes one on a server. Its class "all" has the patterns.
func newWorld(t *testing.T, server *testzk.Server, patterns ...string) *world {
	t.Helper()
	w := &world{t: t, server: server, app: server.Client(t, time.Minute), root: server.Directory(t), digest: locksteward.NewDigestKey()}
	w.src = open(t, source.Login{URL: "zookeeper://" + server.Addr() + w.root}, zksource.Options{Digest: w.digest})
	w.scanner = scan(t, w.src, patterns...)
	return w
}

// scan returns a scanner over a source, with a class "all" that has the patterns.
func scan(t *testing.T, src source.Source, patterns ...string) *scanner.Scanner {
	t.Helper()
	classes, err := class.NewSet([]class.Class{{Name: "all", Match: patterns}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := scanner.New(zaptest.NewLogger(t), locksteward.Target{Name: "t"}, src, classes, scanner.Config{NoThrottle: true, Timeout: soon}, scanner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// create makes a node below the root, and the nodes above it, and returns its path there.
func (w *world) create(path, data string, flags int32) string {
	w.t.Helper()
	return create(w.t, w.app, w.root, path, data, flags)
}

func create(t *testing.T, conn *zk.Conn, root, path, data string, flags int32) string {
	t.Helper()
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			if _, err := conn.Create(root+path[:i], nil, zk.FlagPersistent, anybody); err != nil && err != zk.ErrNodeExists {
				t.Fatalf("create %s: %v", path[:i], err)
			}
		}
	}
	got, err := conn.Create(root+path, []byte(data), flags, anybody)
	if err != nil {
		t.Fatalf("create %s: %v", path, err)
	}
	return strings.TrimPrefix(got, root)
}

func (w *world) delete(path string) {
	w.t.Helper()
	if err := w.app.Delete(w.root+path, -1); err != nil {
		w.t.Fatalf("delete %s: %v", path, err)
	}
}

// sweep makes a sweep that must be complete.
func (w *world) sweep() locksteward.Sweep {
	w.t.Helper()
	sweep, err := w.scanner.Sweep(w.t.Context())
	if err != nil || !sweep.Complete() {
		w.t.Fatalf("complete %v: %+v, %v", sweep.Complete(), sweep.Masters, err)
	}
	return sweep
}

// names are those of locks.
func names(locks []locksteward.Lock) []string {
	var out []string
	for _, l := range locks {
		out = append(out, l.Key)
	}
	return out
}

func find(locks []locksteward.Lock, name string) *locksteward.Lock {
	if i := slices.IndexFunc(locks, func(l locksteward.Lock) bool { return l.Key == name }); i >= 0 {
		return &locks[i]
	}
	return nil
}

// one is the only lock of a sweep.
func (w *world) one() locksteward.Lock {
	w.t.Helper()
	sweep := w.sweep()
	if len(sweep.Locks) != 1 {
		w.t.Fatalf("locks %q, want one", names(sweep.Locks))
	}
	return sweep.Locks[0]
}

func (w *world) releaser() *zksource.Releaser {
	w.t.Helper()
	return openReleaser(w.t, source.Login{URL: "zookeeper://" + w.server.Addr() + w.root}, w.digest)
}

func openReleaser(t *testing.T, login source.Login, digest locksteward.DigestKey) *zksource.Releaser {
	t.Helper()
	r, err := zksource.OpenReleaser(login, zksource.ReleaserOptions{Digest: digest})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// request freezes a lock as the release service does.
func request(l locksteward.Lock) locksteward.Request {
	return locksteward.Request{ID: "r-" + rand.Text(), CreatedAt: time.Now(), Evidence: locksteward.Evidence{
		Target: l.Target, Key: l.Key, Class: l.Class, Library: l.Library, Type: l.Type, Identity: l.Identity,
		TokenDigest: l.TokenDigest, ExpireAt: l.ExpireAt, Count: l.Count, Holder: l.Holder,
	}}
}

// program is a process with a lock of a real library.
type program struct {
	t     *testing.T
	in    io.WriteCloser
	lines chan string
	cmd   *exec.Cmd
}

// start runs a program of testdata, which ends with the test.
func start(t *testing.T, command []string, args ...string) *program {
	t.Helper()
	cmd := exec.Command(command[0], append(slices.Clone(command[1:]), args...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, in: in, cmd: cmd, lines: make(chan string, 16)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s says: %s", command[0], errs.String())
		}
	})
	return p
}

// want waits for a line that begins so and returns the rest of it.
func (p *program) want(begin string) string {
	p.t.Helper()
	timer := time.NewTimer(soon)
	defer timer.Stop()
	for {
		select {
		case line, ok := <-p.lines:
			if rest, found := strings.CutPrefix(line, begin); found {
				return strings.TrimSpace(rest)
			}
			if !ok {
				p.t.Fatalf("it ended without %q", begin)
			}
		case <-timer.C:
			p.t.Fatalf("it does not say %q", begin)
		}
	}
}

// say writes a line to the program.
func (p *program) say(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// missing skips the test, but not where CI is set.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" && runtime.GOOS == "linux" { // Homebrew has neither
		t.Fatalf("%s (hint: make deps)", what)
	}
	t.Skipf("%s (hint: make deps)", what)
}

// kazoo returns what runs kazoo's locks.
func kazoo(t *testing.T) []string {
	t.Helper()
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(python, "-c", "import kazoo").Run() == nil {
			return []string{python, "testdata/kazoo_locks.py"}
		}
	}
	missing(t, "python3 with kazoo is not installed")
	return nil
}

// curator returns what runs Curator's locks.
func curator(t *testing.T) []string {
	t.Helper()
	const jars = "/usr/share/java/"
	if _, err := os.Stat(jars + "curator-recipes.jar"); err != nil {
		missing(t, "Curator is not installed")
	}
	if _, err := exec.LookPath("javac"); err != nil {
		missing(t, "no Java compiler here")
	}
	dir := t.TempDir()
	classes := []string{dir}
	for _, jar := range []string{"curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute", "guava", "slf4j-api", "slf4j-nop"} {
		classes = append(classes, jars+jar+".jar")
	}
	path := strings.Join(classes, ":")
	if out, err := exec.Command("javac", "-cp", path, "-d", dir, "testdata/CuratorLocks.java").CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	return []string{"java", "-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", path, "CuratorLocks"}
}
