//go:build unix

package execlock

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// command is a process group that runs.
type command struct {
	group int
	tty   int // descriptor of the terminal that the command has; -1 for none
	done  chan struct{}
	code  int // once done is closed
}

// foreground returns stdin if it is the terminal that this process works at, else
// -1. Without a terminal, or in the background, there is nothing to hand on.
func foreground() int {
	const stdin = 0
	group, err := unix.IoctlGetInt(stdin, unix.TIOCGPGRP)
	if err != nil || group != unix.Getpgrp() {
		return -1
	}
	return stdin
}

// attributes give the command a process group, so that all that it starts can be
// stopped together, and the terminal with it: Ctrl-C and Ctrl-Z reach the command as
// they would without exec.
func (c *command) attributes() *syscall.SysProcAttr {
	if c.tty < 0 {
		return &syscall.SysProcAttr{Setpgid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: c.tty}
}

// signal hands a signal to the whole group. A group that is gone needs none.
func (c *command) signal(sig syscall.Signal) { _ = syscall.Kill(-c.group, sig) }

// wait returns when the command has ended.
func (c *command) wait() {
	defer close(c.done)
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(c.group, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			// Somebody else has waited for it: how it ended is not known.
			c.code = 255
			c.takeTerminal()
			return
		case status.Stopped():
			c.suspended()
		case status.Signaled():
			c.code = 128 + int(status.Signal())
			c.takeTerminal()
			return
		case status.Exited():
			c.code = status.ExitStatus()
			c.takeTerminal()
			return
		}
	}
}

// stopsWithin is how long this process may take to stop.
const stopsWithin = 200 * time.Millisecond

// suspended is Ctrl-Z: the command has stopped, and this process stops too, or
// the shell would wait for ever. A waiter gets the lock then at the
// end of the lease: the guard stops the command before.
func (c *command) suspended() {
	if c.tty < 0 {
		return // somebody stopped the command alone, and will continue it
	}
	c.takeTerminal()
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	_ = syscall.Kill(0, syscall.SIGTSTP) // all of a pipeline, as the terminal would
	// Another thread may have got it, so that this one runs on for a moment. A
	// group that nobody could continue does not stop at all.
	select {
	case <-continued:
	case <-time.After(stopsWithin):
	}
	// Here after SIGCONT: fg has made this group the foreground one, bg has not.
	if foreground() >= 0 {
		giveTerminal(c.tty, c.group)
	}
	c.signal(syscall.SIGCONT)
}

func (c *command) takeTerminal() {
	if c.tty >= 0 {
		giveTerminal(c.tty, unix.Getpgrp())
	}
}

// giveTerminal makes a group the one that the terminal listens to. Who does that
// from the background is sent SIGTTOU; it is ignored for good, after the command
// was started, which has inherited none of that.
func giveTerminal(tty, group int) {
	signal.Ignore(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(tty, unix.TIOCSPGRP, group)
}

// signals are those that end or tell a program something, for the command.
type signals struct {
	raw  chan os.Signal
	all  chan syscall.Signal
	quit chan struct{}
	over chan struct{}
}

// catchSignals takes the signals of this process from now on. One that was ignored when
// the process began stays so, for the command as well: nohup.
func catchSignals() *signals {
	s := &signals{
		raw: make(chan os.Signal, 32), all: make(chan syscall.Signal, 32),
		quit: make(chan struct{}), over: make(chan struct{}),
	}
	for _, sig := range []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT,
		syscall.SIGPIPE, // else a reader of stderr that goes away would end exec
	} {
		if !signal.Ignored(sig) {
			signal.Notify(s.raw, sig)
		}
	}
	go func() {
		defer close(s.over)
		for {
			select {
			case sig := <-s.raw:
				n, ok := sig.(syscall.Signal)
				if !ok || n == syscall.SIGPIPE {
					continue
				}
				select {
				case s.all <- n:
				case <-s.quit:
					return
				}
			case <-s.quit:
				return
			}
		}
	}()
	return s
}

// ends says that a signal ends a program that waits.
func ends(sig syscall.Signal) bool {
	return sig == syscall.SIGHUP || sig == syscall.SIGINT || sig == syscall.SIGQUIT || sig == syscall.SIGTERM
}

func (s *signals) stop() {
	signal.Stop(s.raw)
	close(s.quit)
	<-s.over
}
