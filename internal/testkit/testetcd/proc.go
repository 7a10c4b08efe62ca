package testetcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/redisproc"
)

const (
	startTimeout = 60 * time.Second
	pollEvery    = 5 * time.Millisecond
	// portTries is how often a start is tried with another port, since a free one may be
	// taken by somebody else before the server has it.
	portTries = 5
)

// proc is one member: its data and log in a directory, and the process over them.
type proc struct {
	dir, name string
	peers     string // of all members, as --initial-cluster has them
	addr      string
	args      []string
	run       *run
}

// run is one life of a member.
type run struct {
	process *os.Process
	done    chan struct{} // closed when the process is gone and reaped
	err     error         // its exit status; read after done
}

// peerURL is where a member listens for the others: a socket in the directory in which
// all of them run.
func peerURL(name string) string { return "unix://" + name + ".peer:1" }

func (p *proc) logPath() string { return filepath.Join(p.dir, p.name+".log") }

// freeAddr is an address that nobody listens at now, nor takes before the end of the test.
func freeAddr(t testing.TB) (string, error) {
	port, release, err := redisproc.ReservePort()
	if err != nil {
		return "", err
	}
	t.Cleanup(func() {
		if err := release(); err != nil {
			t.Error(err)
		}
	})
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
}

// spawn starts the process. The goroutine that starts it keeps its thread until the
// process ends, since on Linux the death of that thread kills it.
func (p *proc) spawn(scheme string) error {
	log, err := os.OpenFile(p.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	// Sockets of an earlier life are in the way of new ones.
	for _, kind := range []string{".peer:1", ".health:1"} {
		_ = os.Remove(filepath.Join(p.dir, p.name+kind))
	}
	// The life of the server is longer than any context here.
	cmd := exec.CommandContext(context.Background(), "etcd", append([]string{
		"--name", p.name, "--data-dir", p.name + ".data", "--logger", "zap",
		"--listen-client-urls", scheme + "://" + p.addr, "--advertise-client-urls", scheme + "://" + p.addr,
		"--listen-peer-urls", peerURL(p.name), "--initial-advertise-peer-urls", peerURL(p.name), "--initial-cluster", p.peers,
		"--listen-metrics-urls", "unix://" + p.name + ".health:1",
		"--heartbeat-interval", "20", "--election-timeout", "200",
	}, p.args...)...)
	cmd.Dir = p.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "ETCD_UNSUPPORTED_ARCH=" + runtime.GOARCH}
	cmd.SysProcAttr = childAttr()
	cmd.Stdout, cmd.Stderr = log, log
	r := &run{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		r.process = cmd.Process
		started <- err
		if err == nil {
			r.err = cmd.Wait()
			close(r.done)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	p.run = r
	return nil
}

// await asks until the member answers and knows a leader.
func (p *proc) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(p.dir, p.name+".health:1"))
		},
	}
	client := &http.Client{Transport: transport}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if healthy(ctx, client) {
			return nil
		}
		select {
		case <-p.run.done:
			return fmt.Errorf("etcd ended at start: %w; its log ends:\n%s", p.run.err, tail(p.logPath(), 10))
		case <-ctx.Done():
			return fmt.Errorf("await etcd: %w; its log ends:\n%s", ctx.Err(), tail(p.logPath(), 30))
		case <-tick.C:
		}
	}
}

func healthy(ctx context.Context, client *http.Client) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://etcd/health", http.NoBody)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return err == nil && resp.StatusCode == http.StatusOK && strings.Contains(string(body), "true")
}

func (p *proc) alive() bool {
	if p.run == nil {
		return false
	}
	select {
	case <-p.run.done:
		return false
	default:
		return true
	}
}

// kill ends the process, paused or not, and returns when it is gone.
func (p *proc) kill() error {
	if !p.alive() {
		return nil
	}
	if err := p.run.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill etcd: %w", err)
	}
	<-p.run.done
	return nil
}

// tail returns the last n lines of the file at path, or a line that says why they cannot
// be read.
func tail(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
