package testmariadb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	pollEvery = 20 * time.Millisecond
	// startTimeout bounds making the data, and each start of the server.
	startTimeout = 120 * time.Second
)

// proc is one server: a directory with data, socket and log, and the process over it. It is safe for
// concurrent use.
type proc struct {
	flavour flavour
	dir     string
	user    string // that the server runs as; "" is who we are
	options []string

	mu  sync.Mutex
	run *run
}

// run is one life of the server.
type run struct {
	process *os.Process
	done    chan struct{} // closed when it is gone and reaped
	err     error         // its exit status; read after done
}

// newProc makes the data and starts the server over it. On an error nothing is left.
func newProc(ctx context.Context, f flavour, options []string) (*proc, error) {
	p := &proc{flavour: f, options: options}
	err := p.prepare(ctx)
	if err == nil {
		err = p.launch(ctx)
	}
	if err == nil {
		err = p.query(ctx, "CREATE DATABASE IF NOT EXISTS test")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", f.server, err), p.close())
	}
	return p, nil
}

// prepare makes the directory, short since it names a socket, and the data.
func (p *proc) prepare(ctx context.Context) error {
	var err error
	if p.dir, err = os.MkdirTemp("", "locksteward-my-"); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if err := p.giveAway(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	args := []string{
		"--no-defaults", "--datadir=" + p.data(), "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve",
		"--innodb-log-file-size=8M", "--innodb-data-file-path=ibdata1:3M:autoextend", "--skip-log-bin", "--tmpdir=" + p.dir,
	}
	program := p.flavour.install
	if p.flavour.mysql {
		program, args = p.flavour.server, []string{"--no-defaults", "--initialize-insecure", "--datadir=" + p.data(), "--skip-log-bin", "--secure-file-priv="}
	}
	if out, err := p.command(ctx, program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("make the data: %w (hint: user %q must be able to enter %q):\n%s", err, p.user, os.TempDir(), out)
	}
	return nil
}

// giveAway gives the directory to the user that the server runs as: it refuses root.
func (p *proc) giveAway() error {
	if os.Geteuid() != 0 {
		return nil
	}
	var last error
	for _, name := range []string{"mysql", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			last = err
			continue
		}
		uid, errUID := strconv.Atoi(u.Uid)
		gid, errGID := strconv.Atoi(u.Gid)
		p.user = name
		return errors.Join(errUID, errGID, os.Chown(p.dir, uid, gid))
	}
	return fmt.Errorf("find a user to run as: %w", last)
}

// command is a program of the server, without the settings that the caller has for one of his own.
func (p *proc) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	if p.user != "" {
		args = append(args, "--user="+p.user)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = p.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin", "HOME=" + p.dir, "TMPDIR=" + p.dir, "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = childAttr()
	return cmd
}

func (p *proc) data() string    { return filepath.Join(p.dir, "data") }
func (p *proc) socket() string  { return filepath.Join(p.dir, "s") }
func (p *proc) logPath() string { return filepath.Join(p.dir, "server.log") }

// launch starts the server and waits until it answers. On an error nothing runs.
func (p *proc) launch(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	log, err := os.OpenFile(p.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	args := []string{
		"--no-defaults", "--datadir=" + p.data(), "--socket=" + p.socket(), "--pid-file=" + filepath.Join(p.dir, "pid"), "--tmpdir=" + p.dir,
		"--skip-log-bin", "--skip-name-resolve", "--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=2", "--innodb-doublewrite=OFF",
		"--bind-address=127.0.0.1",
	}
	if p.flavour.mysql {
		args = append(args, "--mysqlx=OFF", "--secure-file-priv=")
	} else {
		args = append(args, "--innodb-log-file-size=8M", "--innodb-data-file-path=ibdata1:3M:autoextend", "--plugin-load-add=metadata_lock_info")
	}
	listens := false
	for _, option := range p.options {
		args = append(args, "--"+option)
		listens = listens || len(option) > 5 && option[:5] == "port="
	}
	if !listens {
		args = append(args, "--skip-networking")
	}
	// The life of the server is longer than any context here.
	cmd := p.command(context.Background(), p.flavour.server, args...)
	cmd.Stdout, cmd.Stderr = log, log
	r, err := spawn(cmd)
	if err != nil {
		return err
	}
	p.run = r
	if err := p.await(ctx, r); err != nil {
		return errors.Join(fmt.Errorf("%w; its log ends:\n%s", err, tail(p.logPath(), 30)), r.kill())
	}
	return nil
}

// spawn starts a process. The goroutine that starts it keeps its thread until the process ends, since
// on Linux the death of that thread kills it.
func spawn(cmd *exec.Cmd) (*run, error) {
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

// await asks until the server answers.
func (p *proc) await(ctx context.Context, r *run) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := p.query(ctx, "SELECT 1")
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

// query runs one statement on a connection of its own.
func (p *proc) query(ctx context.Context, statement string) error {
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.Logger = "unix", p.socket(), "root", &mysql.NopLogger{}
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(c)
	_, err = db.ExecContext(ctx, statement)
	return errors.Join(err, db.Close())
}

func (p *proc) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run.process.Pid
}

var errNotRunning = errors.New("it is not running")

func (p *proc) signal(send func(*os.Process) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.run.done:
		return errNotRunning
	default:
		return send(p.run.process)
	}
}

func (p *proc) kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return nil
	}
	return p.run.kill()
}

func (r *run) kill() error {
	err := r.process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-r.done
	return err
}

// close ends the server and removes its directory.
func (p *proc) close() error {
	err := p.kill()
	if p.dir != "" {
		err = errors.Join(err, os.RemoveAll(p.dir))
	}
	if err != nil {
		return fmt.Errorf("end the server: %w", err)
	}
	return nil
}
