//go:build linux && (amd64 || arm64)

package store_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

// holderEnv makes this test binary another program that begins to use a file of SQLite.
const holderEnv = "LOCKSTEWARD_STORE_TEST_HOLDS"

// renewed makes a store with some entries.
func renewed(t *testing.T) (path string, s *store.Store, old os.FileInfo) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "locksteward.db")
	s = openAt(t, "sqlite:"+path)
	appendMany(t, s, 20)
	return path, s, stat(t, path)
}

func stat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// noCopy says that nothing of a copy lies beside the store.
func noCopy(t *testing.T, path string) {
	t.Helper()
	if left, err := filepath.Glob(path + ".anew*"); err != nil || len(left) > 0 {
		t.Errorf("beside the store lies %q, %v", left, err)
	}
}

// unsyncable runs fn on a thread to which the kernel confirms nothing.
func unsyncable(t *testing.T, fn func()) {
	t.Helper()
	filter := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		err := failing(false, syscall.SYS_FSYNC, syscall.SYS_FDATASYNC)
		if err == nil {
			fn()
		}
		filter <- err
	}()
	if err := <-filter; err != nil {
		t.Skipf("SKIPPED: no system call can be made to fail here: %v", err)
	}
}

// After a commit that the disk did not confirm another file takes the place of the one in
// doubt, with all that it had and its mode, and the store is still one agent's alone.
// fault: 78
func TestFileInDoubtIsReplaced(t *testing.T) {
	t.Parallel()
	path, s, _ := renewed(t)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	for round := range int64(2) {
		old := stat(t, path)
		kept, err := os.Open(path) // it keeps the number of the file from being used again
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { kept.Close() })
		unsynced(t, s, "doubt")
		testredis.Eventually(t, 30*time.Second, func() bool { return s.Health().Reopened == round+1 }, "it is not opened anew")
		h, now := s.Health(), stat(t, path)
		if os.SameFile(old, now) || h.Kept != "" || h.Errors["uncopied"] != 0 || now.Mode() != old.Mode() {
			t.Errorf("the same file: %t, %v, %+v", os.SameFile(old, now), now.Mode(), h)
		}
		noCopy(t, path)
		testredis.Eventually(t, 30*time.Second, func() bool {
			return s.AppendEntries(t.Context(), locksteward.Entry{Action: "test", Subject: "after"}) == nil
		}, "nothing is written any more")
	}
	if _, err := store.Open(t.Context(), "sqlite:"+path); err == nil || !strings.Contains(err.Error(), "uses") {
		t.Errorf("a second agent: %v", err)
	}
	seen, err := s.Stored(t.Context())
	if err != nil || len(seen) < 22 || len(seen) > 24 {
		t.Fatalf("%d entries, %v", len(seen), err)
	}
	closeStore(t, s)
	verified(t, openAt(t, "sqlite:"+path), int64(len(seen)))
}

// An agent that is killed at any point of it leaves a store that has all, and what is left
// of the copy is removed by the next.
// fault: 78
func TestKilledWhileAFileIsReplaced(t *testing.T) {
	t.Parallel()
	path, s, old := renewed(t)
	killed := func(step string, torn bool) {
		t.Helper()
		there, err := filepath.Glob(path + "*")
		if err != nil {
			t.Fatal(err)
		}
		left := map[string][]byte{}
		for _, name := range there {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if part := strings.TrimPrefix(name, path); part != "-shm" { // it is memory
				left[part] = raw
			}
		}
		if torn {
			left[".anew"] = left[""][:len(left[""])/2]
			left[".anew-journal"], left[".anew-wal"] = []byte("torn"), left["-wal"]
		}
		at := lay(t, left)
		next := openAt(t, "sqlite:"+at)
		verified(t, next, 20)
		noCopy(t, at)
		if older, is, err := next.Older(t.Context()); is || err != nil {
			t.Errorf("%s: older: %+v, %v", step, older, err)
		}
		appendMany(t, next, 1)
		closeStore(t, next)
	}
	killed("before", false)
	killed("in the middle of the copy", true)
	r := s.Renewal()
	f, err := r.Copy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	killed("copied", false)
	if err := r.GiveName(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if os.SameFile(old, stat(t, path)) {
		t.Error("it is the same file")
	}
	killed("named", false)
	if confirmed, err := r.Settle(); !confirmed || err != nil {
		t.Error(err)
	}
	verified(t, s, 20)
	killed("open", false)
}

// A copy that the disk does not confirm is not used, and another one is made; one whose
// name it does not confirm is not written until it does.
// fault: 78
func TestCopyThatTheDiskDoesNotConfirm(t *testing.T) {
	t.Parallel()
	path, s, old := renewed(t)
	r := s.Renewal()
	unsyncable(t, func() {
		if f, err := r.Copy(t.Context()); err == nil || f != nil {
			t.Error("a copy that is not confirmed is used")
		}
	})
	noCopy(t, path)
	f, err := r.Copy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	unsyncable(t, func() {
		if err := r.Confirm(f); err == nil {
			t.Error("it is confirmed, and the disk did not")
		}
		if err := r.Try(t.Context()); err == nil {
			t.Error("a file that is not confirmed is written on")
		}
	})
	if !os.SameFile(old, stat(t, path)) {
		t.Error("it has the name already")
	}
	if err := r.GiveName(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	unsyncable(t, func() {
		if confirmed, err := r.Settle(); confirmed || err == nil {
			t.Errorf("the name is confirmed, and the disk did not: %v", err)
		}
	})
	if err := r.Try(t.Context()); err != nil {
		t.Error(err)
	}
	if confirmed, err := r.Settle(); !confirmed || err != nil {
		t.Errorf("the name is not confirmed: %v", err)
	}
	verified(t, s, 20)
}

// Where no copy can be made the same file is written on, which is told; one that can be
// made at the second try takes its place.
// fault: 78
func TestCopyThatCannotBeMade(t *testing.T) {
	t.Parallel()
	for name, mended := range map[string]bool{"for good": false, "at first": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, s, old := renewed(t)
			if err := os.MkdirAll(path+".anew/in the way", 0o700); err != nil {
				t.Fatal(err)
			}
			r := s.Renewal()
			tries := 0
			for r.Try(t.Context()) != nil {
				if tries++; tries > 3 {
					t.Fatal("it is tried for ever")
				}
				if mended {
					if err := os.RemoveAll(path + ".anew"); err != nil {
						t.Fatal(err)
					}
				}
			}
			h, same := s.Health(), os.SameFile(old, stat(t, path))
			if h.Reopened != 1 || same == mended || (h.Kept == "") != mended || (h.Errors["uncopied"] == 0) != mended || mended != (tries == 1) {
				t.Errorf("after %d tries, the same file: %t, %+v", tries, same, h)
			}
			appendMany(t, s, 1)
			verified(t, s, 21)
		})
	}
}

// A disk that has no room for a copy is not filled again and again.
// fault: 78
func TestNoRoomForACopy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(smallDisk(t), "locksteward.db")
	s := openAt(t, "sqlite:"+path)
	for range 60 {
		if err := s.AppendEntries(t.Context(), locksteward.Entry{Action: "fill", Reason: strings.Repeat("x", 4096)}); err != nil {
			t.Fatal(err)
		}
		// Its log takes no more room than it must.
		if err := s.Exec(t.Context(), `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
			t.Fatal(err)
		}
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(path, &disk); err != nil {
		t.Fatal(err)
	}
	ballast := max(0, int64(disk.Bavail)*disk.Bsize-stat(t, path).Size()/2)
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "ballast"), make([]byte, ballast), 0o600); err != nil {
		t.Fatal(err)
	}
	r := s.Renewal()
	if err := r.Try(t.Context()); !errors.Is(err, store.ErrFull) {
		t.Fatalf("the first try: %v", err)
	}
	noCopy(t, path)
	if err := r.Try(t.Context()); err != nil {
		t.Errorf("the second try: %v", err)
	}
	if h := s.Health(); h.Reopened != 1 || !strings.Contains(h.Kept, "no space left") {
		t.Errorf("%+v", h)
	}
	verified(t, s, 60)
	appendMany(t, s, 1)
}

// TestHolderChild is no test: it is the other program of TestFileThatOthersUse.
func TestHolderChild(t *testing.T) {
	path := os.Getenv(holderEnv)
	if path == "" {
		t.Skip("it is the child of TestFileThatOthersUse")
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	shared := syscall.Flock_t{Type: syscall.F_RDLCK, Start: 1<<30 + 2, Len: 510}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &shared); err != nil {
		t.Fatal(err)
	}
	_, _ = os.Stdout.WriteString("holds\n")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// A file that another program uses keeps its name, since that one's log would lie beside
// the copy; and so does one that was put in its place.
// fault: 78
func TestFileThatOthersUse(t *testing.T) {
	t.Parallel()
	path, s, old := renewed(t)
	r := s.Renewal()
	refused := func(why string, begun func()) {
		t.Helper()
		f, err := r.Copy(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		begun()
		if err := r.GiveName(t.Context(), f); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("got %v, want %q", err, why)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		verified(t, s, 20)
	}
	reader, err := store.OpenReader(t.Context(), store.Config{DSN: "sqlite:" + path})
	if err != nil {
		t.Fatal(err)
	}
	refused("another program has the file open", func() {})
	verified(t, reader, 20)
	closeStore(t, reader)

	cmd := exec.Command(os.Args[0], "-test.run=^TestHolderChild$")
	cmd.Env = append(os.Environ(), holderEnv+"="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	refused("another program has the store open", func() {
		// It begins when the log is gone with our last connection.
		if err := r.Alone(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "holds\n" {
			t.Fatalf("the other program: %q, %v", line, err)
		}
	})
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Error(err)
	}
	if !os.SameFile(old, stat(t, path)) {
		t.Error("another file has the name")
	}

	if err := r.Alone(t.Context()); err != nil { // no log is in the way either
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("restored"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path + ".anew")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := r.GiveName(t.Context(), f); err == nil {
		t.Error("a file that was put in its place is replaced")
	}
	if raw, err := os.ReadFile(path); err != nil || string(raw) != "restored" {
		t.Errorf("%q, %v", raw, err)
	}
	if err := os.Rename(path+".moved", path); err != nil {
		t.Fatal(err)
	}
	if err := r.Try(t.Context()); err != nil || os.SameFile(old, stat(t, path)) {
		t.Errorf("with nobody else there: %v", err)
	}
	verified(t, s, 20)
}
