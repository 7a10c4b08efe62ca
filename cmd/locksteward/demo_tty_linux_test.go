package main

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// A Ctrl-C at the terminal reaches all processes of the demo. One that comes while
// the demo still starts them ends it as any other does.
func TestDemoInterruptedAtItsStart(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	for range 3 {
		keyboard, terminal := openTerminal(t)
		cmd := exec.Command("locksteward", "demo")
		cmd.Dir = t.TempDir()
		cmd.Env = append(cmd.Environ(), "TERM=xterm", "GORACE=atexit_sleep_ms=0")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_ = terminal.Close()
		var shown strings.Builder
		pressed := false
		for in := bufio.NewReader(keyboard); ; {
			line, err := in.ReadString('\n')
			shown.WriteString(line)
			if !pressed && strings.Contains(shown.String(), "Ctrl-C ends it") {
				if _, err := io.WriteString(keyboard, "\x03"); err != nil {
					t.Fatal(err)
				}
				pressed = true
			}
			if err != nil { // nobody has the terminal open any more
				break
			}
		}
		if err := cmd.Wait(); err != nil || !pressed {
			t.Fatalf("%v, Ctrl-C pressed: %t\n%s", err, pressed, shown.String())
		}
		_ = keyboard.Close()
	}
}
