package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"time"
)

// memberArg makes this program a process that wants one lock over and over.
const memberArg = "want-over-and-over"

// crowd is processes that want one lock over and over.
type crowd struct {
	members []*member
	gaveUp  chan struct{} // closed when a process ends before end
	once    sync.Once
	wait    sync.WaitGroup
}

// member is one process of a crowd, and its report.
type member struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	report memberReport
	err    error
}

// memberReport lists the holds of a member. Times are in ns since 1970, by the clock
// that the processes of a machine share.
type memberReport struct {
	// Holds are wanted, acquired, releasing and released of each hold.
	Holds [][4]int64 `json:"holds"`
	// Waiting is when the wait began that the end cut off; 0 for none.
	Waiting int64         `json:"waiting"`
	CPU     time.Duration `json:"cpu"`
}

// gather starts a crowd: when it returns, all members are connected and want the lock.
func gather(ctx context.Context, b *bed, v variant, hold time.Duration) (_ *crowd, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	c := &crowd{gaveUp: make(chan struct{})}
	defer func() {
		if err != nil {
			_, _, ended := c.end()
			err = errors.Join(err, ended)
		}
	}()
	name := b.name()
	ready := make(chan struct{}, b.Waiters)
	for range b.Waiters {
		m := &member{cmd: exec.CommandContext(ctx, self, memberArg, b.server.Addr(), b.TTL.String(), v.name, b.name(), name, hold.String())}
		m.cmd.Stderr = b.stderr
		if m.input, err = m.cmd.StdinPipe(); err != nil {
			return nil, fmt.Errorf("start waiter: %w", err)
		}
		output, err := m.cmd.StdoutPipe()
		if err != nil {
			return nil, fmt.Errorf("start waiter: %w", err)
		}
		if err := m.cmd.Start(); err != nil {
			return nil, fmt.Errorf("start waiter: %w", err)
		}
		c.members = append(c.members, m)
		c.wait.Go(func() {
			m.err = m.listen(output, ready)
			c.once.Do(func() { close(c.gaveUp) })
		})
	}
	for range b.Waiters {
		select {
		case <-ready:
		case <-c.gaveUp:
			return nil, errors.New("a waiter did not start")
		}
	}
	for _, m := range c.members {
		if _, err := io.WriteString(m.input, "go\n"); err != nil {
			return nil, fmt.Errorf("start waiter: %w", err)
		}
	}
	return c, nil
}

// listen returns when the process has ended.
func (m *member) listen(output io.Reader, ready chan<- struct{}) error {
	lines := bufio.NewReader(output)
	_, err := lines.ReadString('\n')
	if err == nil {
		ready <- struct{}{}
		err = json.NewDecoder(lines).Decode(&m.report)
	}
	return errors.Join(err, m.cmd.Wait())
}

// end sends the members home and returns their holds, and what they used of their cores.
func (c *crowd) end() (log *holdLog, cpu time.Duration, err error) {
	for _, m := range c.members {
		_ = m.input.Close() // a process that is gone says so in listen
	}
	c.wait.Wait()
	log = &holdLog{waiters: len(c.members)}
	for i, m := range c.members {
		err = errors.Join(err, m.err)
		cpu += m.report.CPU
		for _, h := range m.report.Holds {
			log.holds = append(log.holds, hold{i, time.Duration(h[0]), time.Duration(h[1]), time.Duration(h[2]), time.Duration(h[3])})
		}
		if m.report.Waiting != 0 {
			log.cut = append(log.cut, time.Duration(m.report.Waiting))
		}
	}
	slices.SortFunc(log.holds, func(a, b hold) int { return cmp.Compare(a.acquired, b.acquired) })
	return log, cpu, err
}

// wantOverAndOver is a member: args are server, TTL, contestant, a lock of its own, the
// lock that all want, and how long to hold it. It begins with the first line of its input
// and ends with the input.
func wantOverAndOver(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if err := want(args, stdin, stdout); err != nil {
		fmt.Fprintln(stderr, "a waiter failed:", err)
		return 1
	}
	return 0
}

func want(args []string, stdin io.Reader, stdout io.Writer) (err error) {
	if len(args) != 6 {
		return fmt.Errorf("want server, TTL, contestant, own lock, lock and hold, got %q", args)
	}
	pause, err := time.ParseDuration(args[5])
	if err != nil {
		return fmt.Errorf("read hold: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l, err := openContestant(args[0], args[1], args[2])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	// Its connections stand when it is ready.
	h, err := l.Acquire(ctx, args[3])
	if err != nil {
		return err
	}
	if err := h.Release(ctx); err != nil {
		return err
	}
	fmt.Fprintln(stdout, "ready")
	lines := bufio.NewReader(stdin)
	if _, err := lines.ReadString('\n'); err != nil {
		return fmt.Errorf("await the start: %w", err)
	}
	go func() {
		// Whatever ends the input, the parent wants no more.
		_, _ = io.Copy(io.Discard, lines)
		cancel()
	}()
	before, err := clientCPU()
	if err != nil {
		return err
	}
	r := memberReport{Holds: make([][4]int64, 0, 1<<14)}
	if err := r.hold(ctx, l, args[4], pause); err != nil {
		return err
	}
	after, err := clientCPU()
	if err != nil {
		return err
	}
	r.CPU = after - before
	return json.NewEncoder(stdout).Encode(r)
}

// hold takes the lock over and over until ctx ends.
func (r *memberReport) hold(ctx context.Context, l locker, name string, pause time.Duration) error {
	now := func() int64 { return time.Now().UnixNano() }
	for ctx.Err() == nil {
		wanted := now()
		h, err := l.Acquire(ctx, name)
		acquired := now()
		if err != nil {
			if ctx.Err() == nil {
				return err
			}
			r.Waiting = wanted
			return nil
		}
		work(pause)
		releasing := now()
		// The end of the crowd is no reason to leave a lock behind.
		if err := h.Release(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		r.Holds = append(r.Holds, [4]int64{wanted, acquired, releasing, now()})
	}
	return nil
}

// work takes d to the microsecond: a timer may be a millisecond late. It leaves
// the core to others for most of it.
func work(d time.Duration) {
	end := time.Now().Add(d)
	if d > 2*time.Millisecond {
		time.Sleep(d - 2*time.Millisecond)
	}
	for time.Now().Before(end) {
		runtime.Gosched()
	}
}
