package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/demo/lockuser"
	"github.com/locksteward/locksteward/internal/redisproc"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// interruptWithin is how much later than a child process this one may notice Ctrl-C.
const interruptWithin = 200 * time.Millisecond

// heldWord is what the holder's process prints once it has the lock.
const heldWord = "held"

// between is how long the import rests before it starts again.
const between = 20 * time.Second

// errand is what the holder's process reads from its stdin. A pipe and not the
// command line, which every process of the machine can read.
type errand struct {
	URL, Username, Password   string
	CAFile, CertFile, KeyFile string
	Key, Companions           string
	Lease                     lock.Lease
}

// Hold is the process that takes a lock to be killed with it: it reads its
// errand from stdin, takes the lock, says so on stdout, and holds it until ctx
// ends or stdin does, which is when the demo is gone. Then it releases the lock.
func Hold(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	var e errand
	in := json.NewDecoder(stdin)
	if err := in.Decode(&e); err != nil {
		return fmt.Errorf("read errand of the demo: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		// What comes does not matter, only that it ends.
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	conn, rdb, err := dial(ctx, connect.Config{
		URL: e.URL, Username: e.Username, Password: locksteward.Secret(e.Password),
		CAFile: e.CAFile, CertFile: e.CertFile, KeyFile: e.KeyFile,
	}, "import")
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // Nothing is buffered in it.
	opts := lock.Options{App: "importer", KeyPrefix: e.Companions}
	return lockuser.HoldOn(ctx, rdb, opts, e.Key, e.Lease, func() { fmt.Fprintln(stdout, heldWord) })
}

// die makes a process take a lock and kills it once the agent has seen it.
func (p *players) die(ctx context.Context) error {
	for {
		if err := p.dieOnce(ctx); err != nil || !p.again {
			return err
		}
		// The lease runs out, and the next run finds the lock free.
		pause(ctx, between)
		if ctx.Err() != nil {
			return nil
		}
	}
}

func (p *players) dieOnce(ctx context.Context) (err error) {
	complaint := &tail{}
	cmd := exec.Command(p.holder[0], p.holder[1:]...)
	cmd.Stderr = complaint
	stdin, inErr := cmd.StdinPipe()
	stdout, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		return fmt.Errorf("start the process that takes a lock: %w", err)
	}
	// Spawn also keeps a Ctrl-C at the terminal from the process: it would end
	// first, and the demo would take that for a failure.
	child, err := redisproc.Spawn(cmd)
	if err != nil {
		return fmt.Errorf("start the process that takes a lock: %w", err)
	}
	// SIGKILL, whatever came before: that is what the process is for.
	defer func() { err = errors.Join(err, child.Kill()) }()
	unblock := context.AfterFunc(ctx, func() { _ = child.Process.Kill() })
	defer unblock()
	if err := p.send(stdin, stdout); err != nil {
		// Ctrl-C at a terminal ends the process, too, perhaps before this one notices.
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interruptWithin):
		}
		// What it says is complete when it is gone.
		return fmt.Errorf("the process did not take its lock: %w; it said: %s", errors.Join(err, child.Kill()), complaint)
	}
	key := p.scene.importing()
	if p.board.await(ctx, func(s *state) bool { return s.holds(key) }) != nil {
		return nil // The demo ends first.
	}
	p.board.killed(child.Process.Pid)
	return nil
}

// send hands the errand over and waits until the lock is taken.
func (p *players) send(stdin io.Writer, stdout io.Reader) error {
	c := p.connect
	err := json.NewEncoder(stdin).Encode(errand{
		URL: c.URL, Username: c.Username, Password: c.Password.Reveal(),
		CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile,
		Key: p.scene.importing(), Companions: p.scene.companions(),
		Lease: lock.Lease{TTL: importTTL, RenewFraction: importRenews, Class: classImports, Purpose: "import the orders of the EU"},
	})
	if err != nil {
		return err
	}
	word, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil && strings.TrimSpace(word) != heldWord {
		err = fmt.Errorf("got %q, want %q", word, heldWord)
	}
	return err
}
