//go:build linux && (amd64 || arm64)

package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testsyscall"
	"github.com/locksteward/locksteward/store"
)

// unsyncable runs fn on a thread in which every fsync fails.
func unsyncable(t *testing.T, fn func()) {
	t.Helper()
	filter := make(chan error)
	go func() {
		err := testsyscall.FailInThread(testsyscall.Fsync...)
		if err == nil {
			fn()
		}
		filter <- err
	}()
	if err := <-filter; err != nil {
		t.Skipf("SKIPPED: no system call can be made to fail here: %v", err)
	}
}

// failFsync writes an entry whose commit fails at fsync.
func failFsync(t *testing.T, s *store.Store) {
	t.Helper()
	var err error
	unsyncable(t, func() {
		err = s.AppendEntries(t.Context(), locksteward.Entry{Action: "test", Subject: "unconfirmed"})
	})
	if !errors.Is(err, store.ErrUnsure) || !errors.Is(err, store.ErrNeedsRepair) || !strings.Contains(err.Error(), "the disk did not confirm the write") {
		t.Fatalf("the write that the disk did not confirm: %v", err)
	}
}

// needsRepair makes a store with 20 entries and one whose commit failed at fsync.
func needsRepair(t *testing.T) (dsn, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "locksteward.db")
	dsn = "sqlite:" + path
	s := openAt(t, dsn)
	appendMany(t, s, 20)
	failFsync(t, s)
	closeStore(t, s)
	return dsn, path
}

// onlyStore checks that no file of a repair remains beside the store.
func onlyStore(t *testing.T, path string) {
	t.Helper()
	left, err := filepath.Glob(path + ".*")
	if err != nil || len(left) != 1 || left[0] != path+".lock" {
		t.Errorf("beside the store are %q, %v", left, err)
	}
}

// repaired checks that the store was repaired: all confirmed entries are there, and the
// unconfirmed one completely or not at all.
func repaired(t *testing.T, dsn string) {
	t.Helper()
	s := openAt(t, dsn)
	entries, err := s.Stored(t.Context())
	if err != nil || len(entries) < 20 || len(entries) > 21 || len(entries) == 21 && entries[20].Subject != "unconfirmed" {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	if older, is, err := s.Older(t.Context()); is || err != nil {
		t.Errorf("older: %+v, %v", older, err)
	}
	appendMany(t, s, 1)
	verified(t, s, int64(len(entries)+1))
	closeStore(t, s)
}

// After a failed fsync nothing is written any more, errors and health say what to do, and
// reads go on. A later start refuses the file until it was repaired.
// fault: 78
func TestFailedFsyncStopsTheStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locksteward.db")
	dsn := "sqlite:" + path
	s := openAt(t, dsn)
	appendMany(t, s, 20)
	if h := s.Health(); h.NeedsRepair != "" {
		t.Errorf("before: %+v", h)
	}
	failFsync(t, s)
	for range 2 {
		err := s.AppendEntries(t.Context(), locksteward.Entry{Action: "test", Subject: "after"})
		if !errors.Is(err, store.ErrNeedsRepair) || errors.Is(err, store.ErrUnsure) ||
			!strings.Contains(err.Error(), "the disk did not confirm an earlier write") || !strings.Contains(err.Error(), "locksteward store backup --in-place --store "+dsn) {
			t.Errorf("a write after it: %v", err)
		}
	}
	if h := s.Health(); h.Errors["unsynced"] != 1 || !strings.Contains(h.NeedsRepair, "locksteward store backup --in-place --store "+dsn) || strings.Contains(h.NeedsRepair, "\n") {
		t.Errorf("%+v", h)
	}
	verified(t, s, 20)
	if _, err := store.Repair(t.Context(), dsn); err == nil || !strings.Contains(err.Error(), "stop it first") {
		t.Errorf("repaired while the agent runs: %v", err)
	}
	closeStore(t, s)

	for range 2 {
		_, err := store.Open(t.Context(), dsn)
		if !errors.Is(err, store.ErrNeedsRepair) || !strings.Contains(err.Error(), path+".needs-repair") ||
			!strings.Contains(err.Error(), "locksteward store backup --in-place --store "+dsn) || !strings.Contains(err.Error(), "restore the last backup") {
			t.Fatalf("a later start: %v", err)
		}
	}
	reader, err := store.OpenReader(t.Context(), store.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	verified(t, reader, 20)
	closeStore(t, reader)

	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	old, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.Open(path) // keeps its inode number from being reused
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	r, err := store.Repair(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || os.SameFile(old, info) || info.Mode() != old.Mode() || r.Path != path || r.Bytes != info.Size() || r.Entries != 20 {
		t.Errorf("%+v, %v, %v", r, info, err)
	}
	onlyStore(t, path)
	repaired(t, dsn)
}

// An agent that is killed after a failed fsync leaves the unconfirmed commit in the log:
// the repair copies it completely or not at all.
// fault: 78
func TestRepairAfterAKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locksteward.db")
	s := openAt(t, "sqlite:"+path)
	appendMany(t, s, 20)
	failFsync(t, s)
	left := files(t, path)
	marker, err := os.ReadFile(path + ".needs-repair")
	if err != nil || len(left["-wal"]) == 0 {
		t.Fatalf("%v, a log of %d bytes", err, len(left["-wal"]))
	}
	left[".needs-repair"] = marker
	at := lay(t, left)
	if _, err := store.Repair(t.Context(), "sqlite:"+at); err != nil {
		t.Fatal(err)
	}
	onlyStore(t, at)
	repaired(t, "sqlite:"+at)
}

// Writers that wait behind the commit that fails at fsync do not write.
// fault: 78
func TestWritersBehindAFailedFsync(t *testing.T) {
	t.Parallel()
	s := openFile(t)
	appendMany(t, s, 1)
	inside, goOn := make(chan struct{}), make(chan struct{})
	s.Compose(func(w store.Written) []locksteward.Notification {
		if w.Entries[0].Subject == "unconfirmed" {
			close(inside)
			<-goOn
		}
		return nil
	})
	waiting := make(chan error, 4)
	go func() {
		select {
		case <-inside:
		case <-t.Context().Done():
			return // the test was skipped
		}
		var begun sync.WaitGroup
		for range cap(waiting) {
			begun.Add(1)
			go func() {
				begun.Done()
				waiting <- s.AppendEntries(t.Context(), locksteward.Entry{Action: "test", Subject: "waits"})
			}()
		}
		begun.Wait()
		close(goOn)
	}()
	failFsync(t, s)
	for range cap(waiting) {
		if err := <-waiting; !errors.Is(err, store.ErrNeedsRepair) {
			t.Errorf("written after a failed fsync: %v", err)
		}
	}
}

// A marker that cannot be written is reported, and the file can be repaired without one.
// fault: 78
func TestMarkerThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locksteward.db")
	s := openAt(t, "sqlite:"+path)
	appendMany(t, s, 20)
	if err := os.Mkdir(path+".needs-repair", 0o700); err != nil {
		t.Fatal(err)
	}
	failFsync(t, s)
	if h := s.Health(); !strings.Contains(h.NeedsRepair, "the marker file may be missing after a restart") || !strings.Contains(h.NeedsRepair, "do not start the agent before the repair") {
		t.Errorf("%+v", h)
	}
	closeStore(t, s)
	if err := os.Remove(path + ".needs-repair"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Repair(t.Context(), "sqlite:"+path); err != nil {
		t.Fatal(err)
	}
	onlyStore(t, path)
	repaired(t, "sqlite:"+path)
}

// A repair that was killed at any step is finished by the next one, and the marker keeps
// agents away until then.
// fault: 78
func TestRepairThatWasKilled(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(t *testing.T, path string) error{
		"during the copy": func(_ *testing.T, path string) error {
			return errors.Join(os.WriteFile(path+".repairing", []byte("half a copy"), 0o600), os.WriteFile(path+".repairing-journal", []byte("torn"), 0o600))
		},
		"after the copy": func(t *testing.T, path string) error { return store.CopyForRepair(t.Context(), path) },
		"after the log was removed": func(t *testing.T, path string) error {
			// What is in the log alone is in the copy.
			return errors.Join(store.CopyForRepair(t.Context(), path), os.Remove(path+"-wal"))
		},
		"before the marker was removed": func(t *testing.T, path string) error {
			marker, err := os.ReadFile(path + ".needs-repair")
			if err != nil {
				return err
			}
			_, err = store.Repair(t.Context(), "sqlite:"+path)
			return errors.Join(err, os.WriteFile(path+".needs-repair", marker, 0o600))
		},
		"with the copy of an earlier failure": func(_ *testing.T, path string) error {
			return os.WriteFile(path+".repaired-0123456789ab", []byte("old"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			origin := filepath.Join(t.TempDir(), "locksteward.db")
			s := openAt(t, "sqlite:"+origin)
			appendMany(t, s, 20)
			failFsync(t, s)
			left := files(t, origin)
			marker, err := os.ReadFile(origin + ".needs-repair")
			if err != nil {
				t.Fatal(err)
			}
			left[".needs-repair"] = marker
			path := lay(t, left)
			if err := leave(t, path); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if _, err := store.Open(t.Context(), "sqlite:"+path); !errors.Is(err, store.ErrNeedsRepair) {
				t.Fatalf("opened before the repair ended: %v", err)
			}
			if _, err := store.Repair(t.Context(), "sqlite:"+path); err != nil {
				t.Fatal(err)
			}
			_ = os.Remove(path + ".repaired-0123456789ab") // not used, and not removed
			onlyStore(t, path)
			repaired(t, "sqlite:"+path)
		})
	}
}

// While the disk confirms nothing, a repair fails and changes nothing.
// fault: 78
func TestRepairOnADiskThatFails(t *testing.T) {
	t.Parallel()
	dsn, path := needsRepair(t)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	unsyncable(t, func() {
		_, err = store.Repair(t.Context(), dsn)
	})
	if err == nil {
		t.Fatal("repaired without fsync")
	}
	after, err := os.Stat(path)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the file was replaced, %v", err)
	}
	if _, err := store.Open(t.Context(), dsn); !errors.Is(err, store.ErrNeedsRepair) {
		t.Errorf("opened after a repair that failed: %v", err)
	}
	if _, err := store.Repair(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	onlyStore(t, path)
	repaired(t, dsn)
}

// Without room for a copy a repair says so and changes nothing.
// fault: 78
func TestRepairWithoutRoom(t *testing.T) {
	t.Parallel()
	path := filepath.Join(smallDisk(t), "locksteward.db")
	s := openAt(t, "sqlite:"+path)
	for range 25 {
		if err := s.AppendEntries(t.Context(), locksteward.Entry{Action: "fill", Reason: strings.Repeat("x", 4096)}); err != nil {
			t.Fatal(err)
		}
		if err := s.Exec(t.Context(), `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil { // keeps the log small
			t.Fatal(err)
		}
	}
	closeStore(t, s)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(path, &disk); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(filepath.Dir(path), "ballast")
	if err := os.WriteFile(ballast, make([]byte, max(0, int64(disk.Bavail)*disk.Bsize-info.Size()/2)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Repair(t.Context(), "sqlite:"+path); !errors.Is(err, store.ErrFull) {
		t.Errorf("got %v", err)
	}
	if left, err := filepath.Glob(path + ".repair*"); err != nil || len(left) > 0 {
		t.Errorf("%q is left, %v", left, err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if r, err := store.Repair(t.Context(), "sqlite:"+path); err != nil || r.Entries != 25 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A repair refuses what it cannot repair, with file and remedy.
func TestRepairThatIsRefused(t *testing.T) {
	t.Parallel()
	dsn, path := needsRepair(t)
	refused := func(dsn string, want ...string) {
		t.Helper()
		_, err := store.Repair(t.Context(), dsn)
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v lacks %q", dsn, err, w)
			}
		}
	}
	refused("postgres://u@h/db", "not an SQLite file", "docs/store.md")
	refused("sqlite::memory:", "not an SQLite file")
	refused("sqlite:"+path+".none", path+".none", "restore the last backup")
	reader, err := store.OpenReader(t.Context(), store.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	verified(t, reader, 20)
	refused(dsn, path, "another program keeps the file locked", "end the other program")
	closeStore(t, reader)
	damaged := lay(t, map[string][]byte{"": []byte(strings.Repeat("this is not a database ", 500))})
	refused("sqlite:"+damaged, damaged, "damaged or not a database", "restore the last backup")
	if raw, err := os.ReadFile(damaged); err != nil || !strings.HasPrefix(string(raw), "this is not") {
		t.Errorf("a damaged file was changed: %v", err)
	}
	if _, err := store.Repair(t.Context(), dsn); err != nil {
		t.Error(err)
	}
	if s, err := store.Open(t.Context(), fmt.Sprint("sqlite:", path)); err != nil {
		t.Error(err)
	} else {
		closeStore(t, s)
	}
}

// A symbolic link keeps pointing to the file, which is what is replaced.
func TestRepairBehindALink(t *testing.T) {
	t.Parallel()
	_, path := needsRepair(t)
	link := filepath.Join(t.TempDir(), "store.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if r, err := store.Repair(t.Context(), "sqlite:"+link); err != nil || r.Path != link {
		t.Fatalf("%+v, %v", r, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	repaired(t, "sqlite:"+link)
}
