package alertchaos_test

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"
)

// started is what an agent says when it runs.
var started = regexp.MustCompile(`"agent started".*"metrics":"([^"]+)"`)

// process is one life of an agent.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	in   *os.File

	// up is closed when the agent says that it started.
	up      chan struct{}
	isUp    sync.Once
	metrics string // its address, once it is up
	log     io.Writer
}

// Write takes what the process logs.
func (p *process) Write(raw []byte) (int, error) {
	if at := started.FindSubmatch(raw); at != nil {
		p.isUp.Do(func() { p.metrics = string(at[1]); close(p.up) })
	}
	return p.log.Write(raw)
}

// spawn starts an agent on a configuration.
func spawn(tb testing.TB, file string, log io.Writer) *process {
	tb.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+file)
	return begin(tb, cmd, log)
}

// begin runs a process that is an agent.
func begin(tb testing.TB, cmd *exec.Cmd, log io.Writer) *process {
	tb.Helper()
	p := &process{cmd: cmd, done: make(chan struct{}), up: make(chan struct{}), log: log}
	cmd.Stdout, cmd.Stderr = p, p
	out, in, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	cmd.Stdin = out
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	_ = out.Close()
	p.in = in
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait()
	}()
	return p
}

// kill ends the process at once; it returns whether it was alive.
func (p *process) kill() bool {
	alive := true
	select {
	case <-p.done:
		alive = false
	default:
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	_ = p.in.Close()
	return alive
}
