package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// waiterArg makes this program a process that waits for a lock until it is
// killed.
const waiterArg = "wait-until-killed"

// waitUntilKilled is that process: args are server, TTL, contestant and lock.
// It also ends when its standard input does, which is when its parent is gone.
func waitUntilKilled(args []string, stdin io.Reader, stdout io.Writer) int {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		// Whatever ends the input, the parent is gone.
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	err := waitFor(ctx, args)
	if ctx.Err() == nil {
		fmt.Fprintln(stdout, "the waiter did not wait:", err)
		return 1
	}
	return 0
}

func waitFor(ctx context.Context, args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("want server, TTL, contestant and lock, got %q", args)
	}
	l, err := openContestant(args[0], args[1], args[2])
	if err != nil {
		return err
	}
	_, err = l.Acquire(ctx, args[3])
	return errors.Join(err, l.Close())
}

// openContestant opens a contestant by name.
func openContestant(addr, ttl, name string) (locker, error) {
	d, err := time.ParseDuration(ttl)
	if err != nil {
		return nil, fmt.Errorf("read TTL: %w", err)
	}
	for _, v := range variants() {
		if v.name == name {
			return v.open(target{addr: addr, ttl: d})
		}
	}
	return nil, fmt.Errorf("no contestant %q", name)
}

// child is a process that waits for a lock.
type child struct {
	cmd   *exec.Cmd
	input io.Closer
	dead  bool
}

func startChild(ctx context.Context, b *bed, v variant, name string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, waiterArg, b.server.Addr(), b.TTL.String(), v.name, name)
	cmd.Stdout, cmd.Stderr = b.stderr, b.stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start waiter: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start waiter: %w", err)
	}
	return &child{cmd: cmd, input: input}, nil
}

// kill ends the process without any chance to tidy up, and returns when it is
// gone. Later calls do nothing.
func (c *child) kill() error {
	if c.dead {
		return nil
	}
	c.dead = true
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill waiter: %w", err)
	}
	err := c.cmd.Wait()
	if _, killed := errors.AsType[*exec.ExitError](err); err != nil && !killed {
		return fmt.Errorf("await waiter's end: %w", err)
	}
	// Wait has closed it; the call shows who holds it open until then.
	_ = c.input.Close()
	return nil
}
