package redisproc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// Child is a process that ends with this one at the latest; see [Spawn].
type Child struct {
	Process *os.Process
	Done    <-chan struct{} // closed when the process is gone and reaped
	Err     error           // its exit status; read after Done
}

// Spawn starts a command. On Linux the kernel kills it when this process ends,
// however that comes, and a Ctrl-C at the terminal does not reach it before us.
// The goroutine that starts it keeps its thread until the process ends, since it
// is the death of that thread that kills the child.
func Spawn(cmd *exec.Cmd) (*Child, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = childAttr()
	}
	done := make(chan struct{})
	c := &Child{Done: done}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		c.Process = cmd.Process
		started <- err
		if err != nil {
			return
		}
		c.Err = cmd.Wait()
		close(done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return c, nil
}

// Kill ends the process at once, frozen or not, and returns when it is gone.
func (c *Child) Kill() error {
	if err := c.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill process %d: %w", c.Process.Pid, err)
	}
	<-c.Done
	return nil
}

// Alive says that the process has not ended.
func (c *Child) Alive() bool {
	select {
	case <-c.Done:
		return false
	default:
		return true
	}
}

// Freeze stops the process (SIGSTOP) and returns when all its threads stand, on
// Linux; elsewhere it returns at once.
func (c *Child) Freeze() error { return sendStop(c.Process) }

// Thaw ends a [Child.Freeze] (SIGCONT).
func (c *Child) Thaw() error { return sendContinue(c.Process) }

// Terminate asks the process to end (SIGTERM); where that cannot be asked it is killed.
func (c *Child) Terminate() error { return sendTerminate(c.Process) }
