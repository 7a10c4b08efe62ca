package testredis

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// apart marks the process that [Apart] starts.
const apart = "LOCKSTEWARD_TEST_APART"

// mostMemory is what a process may need of which a server lies.
const mostMemory = 300 << 20

// Apart runs the test t, and no other, in a process of its own, whose death is a failure
// and whose memory is its own: at most 300 MiB, unless it is raced. It says whether this
// is that process. Lines that begin with "| " are shown with the result.
func Apart(t *testing.T, raced bool) bool {
	t.Helper()
	if os.Getenv(apart) != "" {
		t.Cleanup(func() {
			peak := peakMemory(t)
			fmt.Printf("| peak memory: %d MiB\n", peak>>20)
			if peak > mostMemory && !raced {
				t.Errorf("the process needed %d MiB, at most %d are right", peak>>20, mostMemory>>20)
			}
		})
		return true
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.parallel=8")
	cmd.Env = append(os.Environ(), apart+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		said := failures(out)
		t.Errorf("%v\n%s", err, said[max(0, len(said)-8000):])
	}
	for line := range bytes.Lines(out) {
		if bytes.HasPrefix(line, []byte("| ")) {
			t.Logf("%s", bytes.TrimSpace(line))
		}
	}
	return false
}

// failures is what a verbose test wrote, without what passed and what [Apart] shows anyway.
func failures(out []byte) []byte {
	var said []byte
	for line := range bytes.Lines(out) {
		text := bytes.TrimSpace(line)
		if !bytes.HasPrefix(text, []byte("=== ")) && !bytes.HasPrefix(text, []byte("--- PASS")) && !bytes.HasPrefix(text, []byte("| ")) {
			said = append(said, line...)
		}
	}
	return said
}

// peakMemory is the most that this process has had in memory.
func peakMemory(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Logf("the memory is not looked at: %v", err)
		return 0
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var kib int64
	if _, err := fmt.Sscan(after, &kib); err != nil {
		t.Fatalf("read VmHWM: %v", err)
	}
	return kib << 10
}
