package deploytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// nobody is the uid of the image, which nothing on this machine belongs to.
const nobody = 65532

// machine is a file system like that of the image: the static program, a folder for
// its data that is its own, and what the test puts there. Everything else belongs to
// root, so that to the program it is read-only.
type machine struct {
	t    *testing.T
	dir  string
	uid  uint32
	env  []string
	cwd  string
	port int // of metrics and health
	page int // of the console
}

// newMachine skips where the test may not change its root and user.
func newMachine(t *testing.T) *machine {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: to run the program as another user in a root of its own needs root")
	}
	m := &machine{t: t, dir: t.TempDir(), uid: nobody, cwd: "/var/lib/locksteward", port: freePort(t), page: freePort(t)}
	if err := os.Chmod(m.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program := m.path("/usr/bin/locksteward")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	// A link, since fifty megabytes need not be there again and again.
	if err := os.Link(binary(t), program); err != nil {
		t.Fatal(err)
	}
	data := m.path(m.cwd)
	if err := errors.Join(os.MkdirAll(filepath.Dir(data), 0o755), os.Mkdir(data, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(data, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	m.env = []string{
		"SQLITE_TMPDIR=/var/lib/locksteward",
		fmt.Sprintf("LOCKSTEWARD_METRICS_LISTEN=127.0.0.1:%d", m.port),
		fmt.Sprintf("LOCKSTEWARD_CONSOLE_LISTEN=127.0.0.1:%d", m.page),
	}
	m.put("/etc/hosts", "127.0.0.1 localhost redis alertmanager\n", 0o644)
	return m
}

func (m *machine) path(inside string) string { return filepath.Join(m.dir, filepath.FromSlash(inside)) }

// put writes a file that belongs to root, readable by the program's group.
func (m *machine) put(inside, content string, mode os.FileMode) {
	m.t.Helper()
	file := m.path(inside)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Chown(file, 0, nobody); err != nil {
		m.t.Fatal(err)
	}
}

// command is a program of the machine, run by its user.
func (m *machine) command(ctx context.Context, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot: m.dir, Credential: &syscall.Credential{Uid: m.uid, Gid: m.uid, NoSetGroups: false},
		Pdeathsig: syscall.SIGKILL,
	}
	cmd.Dir, cmd.Env = m.cwd, m.env
	return cmd
}

// start starts the agent, awaits that it says of itself that it is ready, and ends it
// with the test: by SIGTERM, in time, with exit code 0.
func (m *machine) start(argv ...string) {
	m.t.Helper()
	var log buffer
	cmd := m.command(context.Background(), argv...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		m.t.Fatalf("start %v: %v", argv, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	m.t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			m.t.Errorf("stop the agent: %v\n%s", err, log.String())
			return
		}
		select {
		case err := <-ended:
			if err != nil {
				m.t.Errorf("the agent ended with %v\n%s", err, log.String())
			}
		case <-time.After(45 * time.Second):
			_ = cmd.Process.Kill()
			m.t.Errorf("the agent did not end in 45s\n%s", log.String())
		}
	})
	m.until("the agent is ready", func() (string, bool) {
		select {
		case err := <-ended:
			ended <- err
			m.t.Fatalf("the agent ended: %v\n%s", err, log.String())
		default:
		}
		said, err := m.command(m.t.Context(), "/usr/bin/locksteward", "health", "--ready", fmt.Sprintf("--url=http://127.0.0.1:%d", m.port)).CombinedOutput()
		return string(said), err == nil
	})
}

// until asks again and again, for at most a minute.
func (m *machine) until(what string, look func() (string, bool)) {
	m.t.Helper()
	until(m.t, what, look)
}

func until(t *testing.T, what string, look func() (string, bool)) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		said, ok := look()
		if ok {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("not within a minute: %s; last: %s", what, said)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// fetch is a GET; "" if there is no answer.
func fetch(url string, head ...string) (string, int) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return "", 0
	}
	for i := 0; i+1 < len(head); i += 2 {
		req.Header.Set(head[i], head[i+1])
	}
	resp, err := (&http.Client{Timeout: 5 * time.Second}).Do(req)
	if err != nil {
		return err.Error(), 0
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error(), 0
	}
	return string(raw), resp.StatusCode
}

func freePort(t *testing.T) int {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if _, given := givenPorts.LoadOrStore(port, true); !given {
			return port
		}
	}
}

// givenPorts are those that somebody here was informed to listen on, and may not yet.
var givenPorts sync.Map

// serve starts a server of this machine for the length of the test.
func serve(t *testing.T, argv ...string) {
	t.Helper()
	var log buffer
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = t.TempDir()
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%v: %s", argv, log.String())
		}
	})
}

// redis starts a server with further arguments and returns its port.
func redis(t *testing.T, args ...string) int {
	t.Helper()
	port := freePort(t)
	serve(t, append([]string{lookPath(t, "redis-server"), "--port", strconv.Itoa(port), "--bind", "127.0.0.1"}, args...)...)
	until(t, "redis-server listens", func() (string, bool) {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
		if err != nil {
			return err.Error(), false
		}
		return "", conn.Close() == nil
	})
	return port
}

// at moves the servers of a configuration to this machine's ports.
func at(config string, ports map[string]int) string {
	for from, port := range ports {
		name, _, _ := strings.Cut(from, ":")
		config = strings.ReplaceAll(config, from, fmt.Sprintf("%s:%d", name, port))
	}
	return config
}

// buffer is written by a process and read by the test.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func runSecrets(t *testing.T, dir string) string {
	t.Helper()
	said, err := command(t, filepath.Join(dir, "secrets.sh"))
	if err != nil {
		t.Fatalf("secrets.sh: %v\n%s", err, said)
	}
	return said
}
