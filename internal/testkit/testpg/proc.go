package testpg

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

const (
	pollEvery   = 5 * time.Millisecond
	stopTimeout = 10 * time.Second
	// port only names the socket.
	port = "5432"
)

// proc is one server: a directory with data, socket and log, and the processes
// over it. It is safe for concurrent use.
type proc struct {
	bin string
	dir string
	as  *account
	// settings are "name=value", beside those of all servers.
	settings []string

	mu  sync.Mutex
	run *run
}

// run is one life of the server.
type run struct {
	process *os.Process
	done    chan struct{} // closed when the first process is gone and reaped
	err     error         // its exit status; read after done
}

// newProc makes the data and starts the server over it. On an error nothing is
// left.
func newProc(ctx context.Context, bin string, settings ...string) (*proc, error) {
	p := &proc{bin: bin, settings: settings}
	err := p.prepare(ctx)
	if err == nil {
		err = p.launch(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start PostgreSQL: %w", err), p.close())
	}
	return p, nil
}

// prepare makes the directory, short since it names a socket, and the data.
func (p *proc) prepare(ctx context.Context) error {
	var err error
	if p.as, err = unprivileged(); err != nil {
		return err
	}
	if p.dir, err = os.MkdirTemp("", "locksteward-pg-"); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if err := p.as.own(p.dir); err != nil {
		return fmt.Errorf("give directory away: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cmd := p.command(ctx, "initdb", "--pgdata", p.dataPath(), "--username", "postgres", "--auth", "trust",
		"--encoding", "UTF8", "--no-locale", "--no-sync")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run initdb: %w (hint: %s must be able to enter %q):\n%s", err, p.as, os.TempDir(), out)
	}
	return nil
}

// command is a program of the server under its user, without the settings that
// the caller has for a PostgreSQL of his own.
func (p *proc) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, name), args...)
	cmd.Dir = p.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "TMPDIR=" + p.dir, "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = childAttr(p.as)
	return cmd
}

func (p *proc) dataPath() string { return filepath.Join(p.dir, "data") }

func (p *proc) logPath() string { return filepath.Join(p.dir, "postgres.log") }

// dsn says everything, so that no variable of the environment has a say.
func (p *proc) dsn(database string) string {
	u := url.URL{Scheme: "postgres", Path: "/" + database, RawQuery: url.Values{
		"host": {p.dir}, "port": {port}, "user": {"postgres"}, "sslmode": {"disable"},
	}.Encode()}
	// Without a host the two slashes before it are needed all the same.
	return u.Scheme + "://" + u.Path + "?" + u.RawQuery
}

// launch starts the server and waits until it answers. On an error nothing
// runs.
func (p *proc) launch(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	r, err := p.spawn()
	if err != nil {
		return err
	}
	p.run = r
	if err := p.await(ctx, r); err != nil {
		return errors.Join(fmt.Errorf("%w; its log ends:\n%s", err, tail(p.logPath(), 30)), r.crash())
	}
	return nil
}

// spawn starts the first process.
func (p *proc) spawn() (*run, error) {
	log, err := os.OpenFile(p.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	// The life of the server is longer than any context here.
	cmd := p.command(context.Background(), "postgres", "-D", p.dataPath(), "-k", p.dir, "-p", port,
		"-c", "listen_addresses=",
		// The page cache outlives every crash that we make.
		"-c", "fsync=off", "-c", "full_page_writes=off",
		"-c", "shared_buffers=16MB", "-c", "max_wal_senders=0", "-c", "wal_level=minimal")
	for _, setting := range p.settings {
		cmd.Args = append(cmd.Args, "-c", setting)
	}
	cmd.Stdout, cmd.Stderr = log, log

	return start(cmd)
}

// start starts a process. The goroutine that starts it keeps its thread until the process ends,
// since on Linux the death of that thread kills it.
func start(cmd *exec.Cmd) (*run, error) {
	r := &run{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		r.process = cmd.Process
		started <- err
		if err != nil {
			return
		}
		r.err = cmd.Wait()
		close(r.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return r, nil
}

// await asks until the server answers. The socket is in our directory, so that
// nobody else can.
func (p *proc) await(ctx context.Context, r *run) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := query(ctx, p.dsn("postgres"), "SELECT 1")
		if err == nil {
			return nil
		}
		select {
		case <-r.done:
			return fmt.Errorf("server ended at start: %w", r.err)
		case <-ctx.Done():
			return fmt.Errorf("await server: %w (last: %w)", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

func (p *proc) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run.process.Pid
}

func (p *proc) pause() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run.pause()
}

func (p *proc) resume() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run.resume()
}

func (p *proc) kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return nil
	}
	return p.run.crash()
}

// close ends the server and removes its directory.
func (p *proc) close() error {
	err := p.kill()
	if p.dir != "" {
		err = errors.Join(err, os.RemoveAll(p.dir))
	}
	if err != nil {
		return fmt.Errorf("end PostgreSQL: %w", err)
	}
	return nil
}
