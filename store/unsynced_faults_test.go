//go:build linux && (amd64 || arm64)

package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

// unsynced writes an entry that the disk does not confirm: the kernel refuses that to
// the thread that writes, and to no other.
func unsynced(t *testing.T, s *store.Store, subject string) {
	t.Helper()
	errNone := errors.New("no filter")
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		if err := failing(false, syscall.SYS_FSYNC, syscall.SYS_FDATASYNC); err != nil {
			result <- fmt.Errorf("%w: %w", errNone, err)
			return
		}
		result <- s.AppendEntries(t.Context(), locksteward.Entry{Action: "test", Subject: subject})
	}()
	switch err := <-result; {
	case errors.Is(err, errNone):
		t.Skipf("SKIPPED: no system call can be made to fail here: %v", err)
	case !errors.Is(err, store.ErrUnsure) || !strings.Contains(err.Error(), "the disk gave an error"):
		t.Fatalf("the write that the disk did not confirm: %v", err)
	}
}

// Of writers that wait for one whose commit the disk does not confirm, none writes
// before the file was opened anew.
// fault: 78
func TestWritersWaitForAFileInDoubt(t *testing.T) {
	t.Parallel()
	s := openFile(t)
	appendMany(t, s, 1)
	// Its answer is kept back until others wait behind it.
	inside, goOn := make(chan struct{}), make(chan struct{})
	s.Compose(func(w store.Written) []locksteward.Notification {
		if w.Entries[0].Subject == "doubt" {
			close(inside)
			<-goOn
		}
		return nil
	})
	early := make(chan error, 4)
	go func() {
		select {
		case <-inside:
		case <-t.Context().Done():
			return // it was skipped
		}
		var begun sync.WaitGroup
		for range cap(early) {
			begun.Add(1)
			go func() {
				begun.Done()
				err := s.AppendEntries(t.Context(), locksteward.Entry{Action: "test", Subject: "waits"})
				if err == nil && s.Health().Reopened == 0 {
					err = errors.New("written to a file in doubt")
				} else if errors.Is(err, store.ErrAway) {
					err = nil
				}
				early <- err
			}()
		}
		begun.Wait()
		close(goOn)
	}()
	unsynced(t, s, "doubt")
	for range cap(early) {
		if err := <-early; err != nil {
			t.Error(err)
		}
	}
}

// After a commit that the disk did not confirm nothing that is remembered of the file is
// believed: it is opened anew with new connections, what was in doubt is what is found
// there, and all goes on.
// fault: 78
func TestFileIsOpenedAnew(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locksteward.db")
	s := openAt(t, "sqlite:"+path)
	appendMany(t, s, 20)
	// It lasts as long as the connection that writes.
	if err := s.Exec(t.Context(), `CREATE TEMP TABLE mark (x INTEGER)`); err != nil {
		t.Fatal(err)
	}
	unsynced(t, s, "doubt")
	testredis.Eventually(t, 30*time.Second, func() bool {
		err := s.AppendEntries(t.Context(), locksteward.Entry{Action: "test", Subject: "after"})
		if errors.Is(err, store.ErrUnsure) || err != nil && !strings.Contains(err.Error(), "the disk gave an error") {
			t.Fatal(err)
		}
		return err == nil
	}, "nothing is written any more")
	if err := s.Exec(t.Context(), `INSERT INTO mark VALUES (1)`); err == nil || !strings.Contains(err.Error(), "no such table") {
		t.Errorf("the connection that wrote is still there: %v", err)
	}
	h := s.Health()
	if h.Errors["unsynced"] != 1 || h.Reopened != 1 || h.Refused != nil || h.Damaged != "" {
		t.Errorf("%+v", h)
	}
	if older, is, err := s.Older(t.Context()); is || err != nil {
		t.Errorf("older: %+v, %v", older, err)
	}
	seen, err := s.Stored(t.Context())
	if err != nil || len(seen) < 21 || len(seen) > 22 || seen[len(seen)-1].Subject != "after" || len(seen) == 22 && seen[20].Subject != "doubt" {
		t.Fatalf("%d entries, %v", len(seen), err)
	}
	verified(t, s, int64(len(seen)))
	closeStore(t, s)
	verified(t, openAt(t, "sqlite:"+path), int64(len(seen)))
}

// What was confirmed and is not there when the file is opened anew is told.
// fault: 78
func TestLossIsToldWhenTheFileIsOpenedAnew(t *testing.T) {
	t.Parallel()
	s := openFile(t)
	appendMany(t, s, 20)
	for _, statement := range []string{
		`DELETE FROM entries WHERE seq > 15`,
		`UPDATE entries_head SET (seq, hash) = (SELECT seq, hash FROM entries ORDER BY seq DESC LIMIT 1)`,
	} {
		if err := s.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	unsynced(t, s, "doubt")
	testredis.Eventually(t, 30*time.Second, func() bool { return s.Health().Reopened == 1 }, "it is not opened anew")
	if older, is, err := s.Older(t.Context()); !is || err != nil || older.Missing < 4 || older.Missing > 5 {
		t.Errorf("%+v, %t, %v", older, is, err)
	}
	if older, is, _ := s.Older(t.Context()); is {
		t.Errorf("told twice: %+v", older)
	}
}

// Damage that is found when the file is opened anew: it is told, and nothing is written
// to the file any more. It is read.
// fault: 78, 79
func TestDamageIsFoundWhenTheFileIsOpenedAnew(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locksteward.db")
	s := openAt(t, "sqlite:"+path)
	appendMany(t, s, 20)
	root := rootOf(t, s, "imported")
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // not before the store: SQLite's locks would go with it
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xff}, 4096), root); err != nil {
		t.Fatal(err)
	}
	if got := s.Health().Damaged; got != "" {
		t.Fatalf("known before anybody looked: %s", got)
	}
	unsynced(t, s, "doubt")
	testredis.Eventually(t, 30*time.Second, func() bool { return s.Health().Damaged != "" }, "the damage is not found")
	testredis.Eventually(t, 30*time.Second, func() bool {
		return errors.Is(s.AppendEntries(t.Context(), locksteward.Entry{Action: "test"}), store.ErrDamaged)
	}, "it is not refused for the damage")
	if h := s.Health(); h.Reopened != 0 || h.Errors["damaged"] != 1 || !errors.Is(h.Refused, store.ErrDamaged) {
		t.Errorf("%+v", h)
	}
	if got, err := s.Stored(t.Context()); err != nil || len(got) < 20 || len(got) > 21 {
		t.Errorf("%d entries are read, %v", len(got), err)
	}
}
