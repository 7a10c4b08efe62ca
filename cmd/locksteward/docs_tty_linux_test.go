package main

import (
	"context"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// screen keeps what a terminal shows.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// atTerminal runs a line at a terminal of its own. keys are in turn what is shown
// and what is pressed then.
func (p *pageRun) atTerminal(t *testing.T, b docBlock, line string, keys []string) {
	t.Helper()
	keyboard, terminal := openTerminal(t)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", line)
	cmd.Dir, cmd.Env = p.dir, append(p.env, "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = terminal.Close()
	var shown screen
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&shown, keyboard) // It ends with an error when nobody has the terminal any more.
	}()
	for i := 0; i < len(keys); i += 2 {
		testredis.Eventually(t, 50*time.Second, func() bool { return strings.Contains(shown.String(), keys[i]) || ctx.Err() != nil }, line+" shows no "+keys[i])
		if _, err := io.WriteString(keyboard, keys[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	err := cmd.Wait()
	_ = keyboard.Close()
	<-read
	if err != nil {
		t.Fatalf("%s: $ %s\n%v\n%s", b, line, err, shown.String())
	}
}
