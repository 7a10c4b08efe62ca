//go:build linux && (amd64 || arm64)

package store_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testsyscall"
	"github.com/locksteward/locksteward/store"
)

// brokenEnv makes this test binary write to a store on a disk that fails from some
// moment on: "CALL PATH", where CALL is fsync or pwrite.
const brokenEnv = "LOCKSTEWARD_STORE_TEST_BROKEN_DISK"

// TestBrokenDiskChild is the process of TestDiskThatFails.
func TestBrokenDiskChild(t *testing.T) {
	call, path, ok := strings.Cut(os.Getenv(brokenEnv), " ")
	if !ok {
		t.Skip("it is the child of TestDiskThatFails")
	}
	s, err := store.Open(t.Context(), "sqlite:"+path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(n int) {
		switch err := s.AppendEntries(t.Context(), locksteward.Entry{Action: "test", Subject: fmt.Sprint(n)}); {
		case err == nil:
			fmt.Println("wrote", n)
		case errors.Is(err, store.ErrUnsure):
			fmt.Println("unsure", n, err)
		default:
			fmt.Println("refused", n, err)
		}
	}
	for n := range 20 {
		write(n)
	}
	calls := map[string][]uintptr{"fsync": testsyscall.Fsync, "pwrite": {syscall.SYS_PWRITE64}}[call]
	if err := testsyscall.FailInProcess(calls...); err != nil {
		fmt.Println("no filter:", err)
		return
	}
	for n := 20; n < 25; n++ {
		write(n)
	}
	if list, err := s.Entries(t.Context(), store.EntryQuery{Limit: 100}); err != nil || len(list) < 20 {
		t.Errorf("entries are not read: %d, %v", len(list), err)
	}
	fmt.Println("end")
	_ = s.Close() // it may fail to tidy up
}

// A disk that fails while a store is in use, at writing or at fsync: every write that was
// reported is there afterwards, no write that was refused is, reads go on, and nothing
// panics. After a failed fsync a later start refuses the file until it was repaired.
// fault: 78
func TestDiskThatFails(t *testing.T) {
	t.Parallel()
	for call, reason := range map[string]string{"fsync": "the disk did not confirm", "pwrite": "the disk returned an error"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "locksteward.db")
			cmd := exec.Command(os.Args[0], "-test.run=^TestBrokenDiskChild$", "-test.v")
			cmd.Env = append(os.Environ(), brokenEnv+"="+call+" "+path)
			out, err := cmd.CombinedOutput()
			text := string(out)
			if strings.Contains(text, "no filter:") {
				t.Skipf("SKIPPED: no system call can be made to fail here: %s", text)
			}
			if err != nil || !strings.Contains(text, "end\n") || strings.Contains(text, "panic") {
				t.Fatalf("the process ended with %v:\n%s", err, text)
			}
			outcome := map[string]string{}
			for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
				if f := strings.Fields(lines.Text()); len(f) > 1 && (f[0] == "wrote" || f[0] == "unsure" || f[0] == "refused") {
					outcome[f[1]] = f[0]
					if f[0] != "wrote" && !strings.Contains(lines.Text(), reason) {
						t.Errorf("the error does not give the reason: %s", lines.Text())
					}
				}
			}
			if call == "fsync" {
				if _, err := store.Open(t.Context(), "sqlite:"+path); !errors.Is(err, store.ErrNeedsRepair) {
					t.Fatalf("opened before the repair: %v", err)
				}
				if _, err := store.Repair(t.Context(), "sqlite:"+path); err != nil {
					t.Fatal(err)
				}
			}
			s := openAt(t, "sqlite:"+path)
			entries, err := s.Stored(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			stored := map[string]bool{}
			for _, e := range entries {
				stored[e.Subject] = true
			}
			failed, unsure := 0, 0
			for n, what := range outcome {
				if what == "wrote" && !stored[n] || what == "refused" && stored[n] {
					t.Errorf("%s was %s, stored: %t", n, what, stored[n])
				}
				if what != "wrote" {
					failed++
				}
				if what == "unsure" {
					unsure++
				}
			}
			if call == "fsync" && unsure != 1 {
				t.Errorf("%d writes were tried after an fsync failed", unsure-1)
			}
			if len(outcome) != 25 || failed == 0 {
				t.Errorf("%d of %d writes failed: this shows nothing", failed, len(outcome))
			}
			if _, err := s.Verify(t.Context()); err != nil {
				t.Error(err)
			}
			if err := s.AppendEntries(t.Context(), locksteward.Entry{Action: "after"}); err != nil {
				t.Error(err)
			}
		})
	}
}
