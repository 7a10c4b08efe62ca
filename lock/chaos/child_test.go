package chaos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/redisproc"
	"github.com/locksteward/locksteward/internal/testkit/lockcheck"
	"github.com/locksteward/locksteward/lock"
)

// childArg makes the test binary a process with one worker.
const childArg = "chaos-test-child"

// order is what a child is told.
type order struct {
	Name, Server, Ledger string
	Locks                []string
	Patient              bool
	TTL, Hold            time.Duration
	Timeout              time.Duration
	Rude                 bool
	Seed                 uint64
}

// child works as ordered, and tells its records on stdout, until stdin ends:
// because the parent wants it or has died.
func child(text string) int {
	err := func() error {
		var o order
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			return err
		}
		server, err := redis.ParseURL(o.Server)
		if err != nil {
			return err
		}
		store, err := redis.ParseURL(o.Ledger)
		if err != nil {
			return err
		}
		rdb, ledgerDB := redis.NewClient(server), redis.NewClient(store)
		defer rdb.Close()
		defer ledgerDB.Close()
		client, err := lock.New(rdb, lock.Options{App: o.Name, Timeout: o.Timeout})
		if err != nil {
			return err
		}
		defer client.Close()
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		go func() {
			// The end of stdin, however it comes, is the end of the work.
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
		w := &worker{
			name: o.Name, client: client, ledger: &ledger{ledgerDB}, rec: lockcheck.NewRecorder(os.Stdout),
			locks: o.Locks, patient: o.Patient, ttl: o.TTL, hold: o.Hold, rude: o.Rude,
			rng: rand.New(rand.NewPCG(o.Seed, 1)),
		}
		w.run(ctx)
		return w.rec.Err()
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos child:", err)
		return 1
	}
	return 0
}

// process is a child from outside.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	read  sync.WaitGroup
	once  sync.Once
	err   error // of reading its records
}

// startChild starts a child whose records go to rec. It has ended when the test
// has.
func startChild(t *testing.T, o order, rec *lockcheck.Recorder) *process {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(os.Args[0], childArg, string(text))}
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.read.Go(func() { p.err = rec.Replay(out, nil) })
	t.Cleanup(p.kill)
	return p
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %s: %v", s, err)
	}
}

// stop returns when the child stands: what it was sending is on its way.
func (p *process) stop() {
	p.t.Helper()
	if err := redisproc.Freeze(p.cmd.Process); err != nil {
		p.t.Fatalf("stop child: %v", err)
	}
}

func (p *process) cont() { p.t.Helper(); p.signal(syscall.SIGCONT) }

// kill ends the child at once, stopped or not, unless it has ended.
func (p *process) kill() {
	p.once.Do(func() {
		if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			p.t.Errorf("kill child: %v", err)
		}
		p.reap(true)
	})
}

// finish lets the child release what it holds and end.
func (p *process) finish() {
	p.once.Do(func() {
		if err := p.stdin.Close(); err != nil {
			p.t.Errorf("end child: %v", err)
		}
		// One that hangs is killed, and told of by its exit status.
		hang := time.AfterFunc(30*time.Second, func() { _ = p.cmd.Process.Kill() })
		defer hang.Stop()
		p.reap(false)
	})
}

func (p *process) reap(killed bool) {
	p.read.Wait()
	if p.err != nil {
		p.t.Errorf("child: %v", p.err)
	}
	if err := p.cmd.Wait(); err != nil && !killed {
		p.t.Errorf("child: %v", err)
	}
}
