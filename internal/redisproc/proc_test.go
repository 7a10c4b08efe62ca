package redisproc

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestStartAndClose(t *testing.T) {
	t.Parallel()
	p := start(t, Options{})
	if err := answers(t, p); err != nil {
		t.Fatal(err)
	}
	if p.Network() != "tcp" || p.Addr() != net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Port())) || p.BusPort() != 0 {
		t.Errorf("at %s %q, port %d, bus %d", p.Network(), p.Addr(), p.Port(), p.BusPort())
	}
	if _, err := os.Stat(p.LogPath()); err != nil {
		t.Error(err)
	}
	dir := p.Dir()
	for range 2 {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory after close: %v, want it gone", err)
	}
	if err := answers(t, p); err == nil {
		t.Error("a closed server answers")
	}
	if err := p.Restart(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("restart after close: %v, want ErrClosed", err)
	}
	select {
	case <-p.Done():
	default:
		t.Error("the process of a closed server is not done")
	}
}

func TestManyServersAtOnce(t *testing.T) {
	t.Parallel()
	start(t, Options{}) // Skips where there is none.
	const n = 12
	procs, errs := make([]*Proc, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { procs[i], errs[i] = Start(t.Context(), Options{Cluster: i%2 == 0}) })
	}
	wg.Wait()
	ports := map[int]bool{}
	for i, p := range procs {
		if errs[i] != nil {
			t.Error(errs[i])
			continue
		}
		if err := answers(t, p); err != nil {
			t.Errorf("server %d: %v", i, err)
		}
		ports[p.Port()] = true
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(ports) != n {
		t.Errorf("%d servers have %d ports", n, len(ports))
	}
}

func TestSocketWithLongPath(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long ", 20)+`"quoted" \`)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	p := start(t, Options{Dir: dir, Socket: true})
	if err := answers(t, p); err != nil {
		t.Fatal(err)
	}
	if p.Network() != "unix" || p.Port() != 0 || len(p.Addr()) > maxSocketPath {
		t.Errorf("at %s %q, port %d", p.Network(), p.Addr(), p.Port())
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(p.Addr())); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory of the socket: %v, want it gone", err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("directory of the caller: %v, want it kept", err)
	}
}

func TestPauseResume(t *testing.T) {
	t.Parallel()
	p := start(t, Options{})
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := probe(ctx, p.network, p.addr, nil, "", "", p.PID()); err == nil {
		t.Error("a paused server answers")
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := answers(t, p); err != nil {
		t.Error(err)
	}
}

func TestKillRestart(t *testing.T) {
	t.Parallel()
	p := start(t, Options{})
	addr, pid := p.Addr(), p.PID()
	for range 2 { // A second kill finds nothing to do.
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	for name, verb := range map[string]func() error{"pause": p.Pause, "resume": p.Resume} {
		if err := verb(); !errors.Is(err, ErrNotRunning) {
			t.Errorf("%s after kill: %v, want ErrNotRunning", name, err)
		}
	}
	for range 2 { // The second kills a running server first.
		if err := p.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p.Addr() != addr || p.PID() == pid {
			t.Errorf("restarted at %s as %d, was at %s as %d", p.Addr(), p.PID(), addr, pid)
		}
		if err := answers(t, p); err != nil {
			t.Error(err)
		}
		pid = p.PID()
	}
}

// The port of a server that is down stays its own.
func TestPortIsHeldWhileDown(t *testing.T) {
	t.Parallel()
	p := start(t, Options{})
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(p.port.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := lockFile(file); err == nil {
		t.Error("the port of a killed server can be reserved by another")
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	// A process that is just being forked elsewhere holds the lock until its exec.
	await(t, "the port of a closed server can be reserved", func() bool { return lockFile(file) == nil })
}

func TestStop(t *testing.T) {
	t.Parallel()
	p := start(t, Options{Config: []string{"save 3600 1000"}})
	if err := p.Pause(); err != nil { // A paused one is stopped as well.
		t.Fatal(err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if log := Tail(p.LogPath(), 10); !strings.Contains(log, "ready to exit") {
		t.Errorf("the server did not shut down in order; its log ends:\n%s", log)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Errorf("second stop: %v", err)
	}
	if err := p.Restart(t.Context()); err != nil {
		t.Errorf("restart after stop: %v", err)
	}
}

func TestDoneTellsOfACrash(t *testing.T) {
	t.Parallel()
	p := start(t, Options{Config: []string{"enable-debug-command yes"}})
	conn, err := net.Dial(p.Network(), p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("DEBUG SEGFAULT\r\n")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("a crash is not seen")
	}
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	start(t, Options{}) // Skips where there is none.
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no longer wanted"))
	for name, tc := range map[string]struct {
		ctx  context.Context
		opts Options
		want string
	}{
		"bad configuration": {t.Context(), Options{Config: []string{"no-such-setting 1"}}, "Bad directive"},
		"missing CA":        {t.Context(), Options{TLS: &TLS{CAFile: "no-such-file"}}, "no-such-file"},
		"socket and TLS":    {t.Context(), Options{Socket: true, TLS: &TLS{}}, "standalone"},
		"context ended":     {ended, Options{}, "no longer wanted"},
		"no answer": {
			t.Context(),
			// It listens, but not where we ask.
			Options{Config: []string{"port 0", "unixsocket other.sock"}, StartTimeout: 200 * time.Millisecond},
			"no answer within 200ms",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Start(tc.ctx, tc.opts)
			if err == nil {
				t.Fatal(errors.Join(errors.New("started"), p.Close()))
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %q does not say %q", err, tc.want)
			}
		})
	}
}

// No parallel: the environment is the whole process's.
func TestNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Start(t.Context(), Options{}); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("start without a binary: %v, want ErrNotInstalled", err)
	}
}
