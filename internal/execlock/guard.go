//go:build unix

package execlock

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// guardProcess is the guard, as exec sees it.
type guardProcess struct {
	o    Options
	cmd  *exec.Cmd
	done chan struct{}

	mu   sync.Mutex
	pipe *os.File // nil once it is of no use
}

// sendTimeout bounds a word to a guard that does not read.
const sendTimeout = 100 * time.Millisecond

// startGuard starts the guard in a session of its own, where no terminal
// reaches it, with nothing of this process's environment that is secret.
func startGuard(o Options) (*guardProcess, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start guard: %w", err)
	}
	defer r.Close() //nolint:errcheck // Only read from, by the guard.
	args := append(slices.Clone(o.Guard[1:]), string(o.OnLost), o.Grace.String())
	cmd := exec.Command(o.Guard[0], args...)
	cmd.Stdin, cmd.Stderr = r, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = slices.DeleteFunc(slices.Clone(o.Env), func(v string) bool { return strings.HasPrefix(v, "LOCKSTEWARD_") })
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return nil, fmt.Errorf("start guard: %w", err)
	}
	g := &guardProcess{o: o, cmd: cmd, done: make(chan struct{}), pipe: w}
	go func() {
		defer close(g.done)
		// It ends on request; if it ended before, the next word finds out.
		_ = cmd.Wait()
	}()
	return g, nil
}

// send writes one line to the guard. When that fails the guard is gone, or hangs:
// it is said, once, and exec goes on alone.
func (g *guardProcess) send(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pipe == nil {
		return
	}
	err := g.pipe.SetWriteDeadline(time.Now().Add(sendTimeout))
	if err == nil {
		_, err = fmt.Fprintf(g.pipe, format+"\n", args...)
	}
	if err != nil {
		_ = g.pipe.Close()
		g.pipe = nil
		g.o.Print(fmt.Sprintf("the guard of the command does not answer (%v): should this process be killed now, the command would run on", err))
	}
}

// end tells the guard that it is not needed any more, and waits for its end.
func (g *guardProcess) end() {
	g.send("done")
	g.mu.Lock()
	if g.pipe != nil {
		_ = g.pipe.Close()
		g.pipe = nil
	}
	g.mu.Unlock()
	select {
	case <-g.done:
	case <-time.After(time.Second):
		_ = g.cmd.Process.Kill()
		<-g.done
	}
}

// Guard is the work of the guard process: it reads from in what exec tells it, and
// stops the command when exec is gone, or silent beyond the end of the lock. It
// returns when its work is done. Signals that end programs do not end it.
func Guard(in io.Reader, how Stop, grace time.Duration, say func(string)) error {
	if how != StopTerm && how != StopKill {
		return fmt.Errorf("guard: want %s or %s, got %q", StopTerm, StopKill, how)
	}
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGPIPE)
	g := &guard{how: how, grace: grace, say: say}
	lines := make(chan string)
	quit := make(chan struct{})
	defer close(quit)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			select {
			case lines <- s.Text():
			case <-quit:
				return
			}
		}
	}()
	look := time.NewTimer(guardInterval)
	defer look.Stop()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return g.orphaned()
			}
			if done, err := g.handle(line); done || err != nil {
				return err
			}
		case <-look.C:
			g.check(time.Now())
		}
		look.Reset(g.next(time.Now()))
	}
}

// guardInterval is how often the guard compares its clocks at least: the timer of a
// machine that was suspended has stood.
const guardInterval = time.Second

// guard is what the guard process knows.
type guard struct {
	how   Stop
	grace time.Duration
	say   func(string)

	group    int
	until    time.Time // zero until it is known; with both clocks
	stopping *stopper
	byExec   bool
}

// next is how long until there may be something to do.
func (g *guard) next(now time.Time) time.Duration {
	if g.until.IsZero() || g.stopping != nil {
		return guardInterval
	}
	return min(guardInterval, max(0, g.until.Sub(now)))
}

func (g *guard) handle(line string) (done bool, err error) {
	var word string
	var n int64
	if _, err := fmt.Sscanf(line, "%s %d", &word, &n); err != nil && word != "done" {
		return false, fmt.Errorf("guard: a line of an unknown form: %q", line)
	}
	switch word {
	case "done":
		return true, nil
	case "group":
		if n < 2 {
			return false, fmt.Errorf("guard: a group cannot be %d", n)
		}
		g.group = int(n)
	case "until":
		g.until = deadline(n)
	case "stopping":
		// Exec does it; should it be frozen over that, what is left is killed.
		g.byExec = true
		g.until = deadline(n).Add(time.Second)
	}
	return false, nil
}

// deadline is a time of the wall clock, in ns since 1970, on both clocks of this
// process. Exec sends no durations: they arrive late when the guard has just begun.
func deadline(ns int64) time.Time {
	now := time.Now()
	return now.Add(time.Unix(0, ns).Sub(now.Round(0)))
}

// check stops the command if its time is over, by the clock that says so first:
// one stands while a machine is suspended, the other can be set.
func (g *guard) check(now time.Time) {
	if g.group == 0 || g.until.IsZero() || g.stopping != nil {
		return
	}
	if now.Before(g.until) && now.Round(0).Before(g.until.Round(0)) {
		return
	}
	if g.byExec {
		g.stopping = stopGroup(g.group, StopKill, 0)
		return
	}
	g.say("the lock's lease is over and locksteward exec has not spoken (frozen, or the machine was suspended): stopping the command")
	g.stopping = stopGroup(g.group, g.how, g.grace)
}

// orphaned is the end of exec without a word.
func (g *guard) orphaned() error {
	if g.group == 0 {
		return nil
	}
	if g.stopping == nil {
		g.say("locksteward exec has died: stopping the command; its lock ends with its lease")
		g.stopping = stopGroup(g.group, g.how, g.grace)
	}
	g.stopping.finish()
	return nil
}
