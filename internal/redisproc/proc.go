package redisproc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	pollEvery   = 5 * time.Millisecond
	stopTimeout = 5 * time.Second
	// maxSocketPath is the shortest limit of a socket's path among the systems
	// we run on (macOS: 104 with the closing NUL).
	maxSocketPath = 100
)

// Proc is one redis-server. Make it with [Start]; it is safe for concurrent
// use.
type Proc struct {
	opts      Options
	binary    string
	version   Version
	dir       string
	ownDirs   []string
	network   string
	addr      string
	port, bus *reservation
	tlsConfig *tls.Config

	mu     sync.Mutex // one change of the process at a time
	closed bool

	runMu sync.Mutex // guards run
	run   *run
}

// Start starts a server and returns when it answers. ctx bounds the start
// alone; the server lives until [Proc.Close]. Errors wrap [ErrNotInstalled]
// when there is no server to start.
func Start(ctx context.Context, opts Options) (*Proc, error) {
	binary, err := opts.Program, error(nil)
	if binary == "" {
		binary, err = Binary()
	}
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	version, err := VersionOf(binary)
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	if opts.Socket && (opts.TLS != nil || opts.Cluster || opts.Sentinel) {
		return nil, errors.New("start redis: a socket goes with a plain standalone server only")
	}
	if opts.StartTimeout <= 0 {
		opts.StartTimeout = 15 * time.Second
	}
	// A program that reserves nothing may take the port between our look and
	// the server's bind: draw again.
	for range 5 {
		p := &Proc{opts: opts, binary: binary, version: version}
		if err = p.prepare(); err == nil {
			err = p.launch(ctx)
		}
		if err == nil {
			return p, nil
		}
		taken := errors.Is(err, errForeign) || strings.Contains(p.logTail(), "Address already in use")
		if closeErr := p.Close(); closeErr != nil {
			err = errors.Join(err, closeErr)
		}
		if !taken {
			break
		}
	}
	return nil, fmt.Errorf("start redis: %w", err)
}

// prepare takes what the server needs: directory, address, configuration.
func (p *Proc) prepare() error {
	var err error
	if p.dir = p.opts.Dir; p.dir == "" {
		if p.dir, err = p.tempDir(); err != nil {
			return err
		}
	}
	if p.dir, err = filepath.Abs(p.dir); err != nil {
		return fmt.Errorf("find directory: %w", err)
	}
	if p.opts.TLS != nil {
		if p.tlsConfig, err = p.opts.TLS.clientConfig(); err != nil {
			return err
		}
	}
	if err := p.takeAddress(); err != nil {
		return err
	}
	conf := strings.Join(p.confLines(), "\n") + "\n"
	if err := os.WriteFile(p.confPath(), []byte(conf), 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}

func (p *Proc) takeAddress() error {
	var err error
	if p.opts.Socket {
		p.network, p.addr = "unix", filepath.Join(p.dir, "redis.sock")
		if len(p.addr) > maxSocketPath {
			dir, err := p.tempDir()
			if err != nil {
				return err
			}
			p.addr = filepath.Join(dir, "redis.sock")
		}
		return nil
	}
	if p.opts.Cluster && !p.version.AtLeast(7, 0) {
		p.port, p.bus, err = reservePair()
	} else if p.port, err = reservePort(); err == nil && p.opts.Cluster {
		p.bus, err = reservePort()
	}
	if err != nil {
		return err
	}
	p.network, p.addr = "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port.port))
	return nil
}

func (p *Proc) tempDir() (string, error) {
	dir, err := os.MkdirTemp("", "locksteward-redis-")
	if err != nil {
		return "", fmt.Errorf("make directory: %w", err)
	}
	p.ownDirs = append(p.ownDirs, dir)
	return dir, nil
}

// launch starts the process and waits until it answers. On an error nothing
// runs.
func (p *Proc) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.opts.StartTimeout,
		fmt.Errorf("no answer within %s", p.opts.StartTimeout))
	defer cancel()
	r, err := p.spawn()
	if err != nil {
		return err
	}
	p.setRun(r)
	if err := p.await(ctx, r); err != nil {
		err = fmt.Errorf("%w; its log ends:\n%s", err, p.logTail())
		return errors.Join(err, r.Kill())
	}
	return nil
}

func (p *Proc) await(ctx context.Context, r *run) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	last := errors.New("not asked yet")
	for {
		select {
		case <-r.Done:
			return fmt.Errorf("server ended at start: %v", r.Err)
		case <-ctx.Done():
			return fmt.Errorf("await server at %s: %w (last: %w)", p.addr, context.Cause(ctx), last)
		case <-tick.C:
		}
		if !p.listening(r) {
			last = errors.New("its log does not say that it listens")
			continue
		}
		last = probe(ctx, p.network, p.addr, p.tlsConfig, p.opts.Username, p.opts.Password, r.Process.Pid)
		if last == nil {
			return nil
		}
		if errors.Is(last, errForeign) {
			return last
		}
	}
}

// listening reads from the log of this very process whether it has bound its
// address: the one proof that does not depend on who answers there.
func (p *Proc) listening(r *run) bool {
	log := p.logFrom(r.logStart)
	return strings.Contains(log, "Ready to accept connections") ||
		strings.Contains(log, "The server is now ready") ||
		strings.Contains(log, "Sentinel ID is")
}
