// Package testtooz takes locks with tooz, OpenStack's library for locks in many stores, as it is
// in Debian's python3-tooz. Only tests import it.
package testtooz

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// Member is the name that the process has in tooz, and Lock that of its lock.
const Member, Lock = "worker-7.example", "nightly"

const program = `
import sys
from tooz import coordination
c = coordination.get_coordinator(sys.argv[1], sys.argv[2].encode())
c.start(start_heart=True)
lock = c.get_lock(sys.argv[3].encode())
print(lock.acquire(), flush=True)
sys.stdin.readline()
print(lock.release(), flush=True)
c.stop()
`

// Hold has a process take [Lock] at the URL of a coordinator of tooz and returns when it holds the
// lock; what it returns releases the lock, as tooz does. The process ends with the test. It skips
// the test where tooz is not installed, and fails it where CI is set.
func Hold(t testing.TB, url string) (release func()) {
	t.Helper()
	const python = "/usr/bin/python3" // that of Debian's packages
	if exec.Command(python, "-c", "import tooz, psycopg2").Run() != nil {
		if os.Getenv("CI") != "" && runtime.GOOS == "linux" { // Homebrew does not have it
			t.Fatal("python3-tooz is not installed (hint: make deps)")
		}
		t.Skip("SKIPPED: python3-tooz is not installed (hint: make deps)")
	}
	cmd := exec.Command(python, "-c", program, url, Member, Lock)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		kill.Stop()
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	lines := bufio.NewScanner(out)
	want := func(did string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != "True" {
			t.Fatalf("tooz at %s does not %s its lock: %q", url, did, lines.Text())
		}
	}
	want("take")
	return func() {
		t.Helper()
		if _, err := io.WriteString(in, "\n"); err != nil {
			t.Fatal(err)
		}
		want("release")
	}
}
