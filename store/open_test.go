package store_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

func TestOpenMakesNarrowFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b %23?x=1", "lock steward#1.db")
	s := openAt(t, "sqlite:"+path)
	appendMany(t, s, 1)
	for name, want := range map[string]os.FileMode{
		filepath.Dir(path): 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600, path + ".lock": 0o600,
	} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", name, info, err, want)
		}
	}
}

func TestSecondAgentIsRefused(t *testing.T) {
	t.Parallel()
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "locksteward.db")
	s := openAt(t, dsn)
	_, err := store.Open(t.Context(), dsn)
	if err == nil || !strings.Contains(err.Error(), "another agent (process ") || !strings.Contains(err.Error(), "store.dsn") {
		t.Fatalf("got %v", err)
	}
	closeStore(t, s)
	closeStore(t, openAt(t, dsn))
}

func TestBadDSN(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"postgres://u:hunter2@h:x/db":   "cannot be read as an address of PostgreSQL",
		"postgres:u:hunter2@h/db":       "cannot be read as an address of PostgreSQL",
		"postgresql://u:hunter2@h":      "names no database",
		"postgres://u:hunter2@h/d?a=%z": "cannot be read as an address of PostgreSQL",
		"mysql://u:hunter2@h/db":        "must be sqlite:PATH",
		"data/hunter2.db":               "must be sqlite:PATH",
		"sqlite:":                       "needs a path",
		"sqlite:///var/x.db":            "without slashes",
	} {
		err := store.Config{DSN: dsn}.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), "dsn: ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Validate(%q) = %v", dsn, err)
		}
		_, oerr := store.Open(t.Context(), dsn)
		if oerr == nil || !strings.HasPrefix(oerr.Error(), "store.dsn: ") || strings.Contains(oerr.Error(), "hunter2") {
			t.Errorf("Open(%q) = %v", dsn, oerr)
		}
	}
	if err := errors.Join(store.DefaultConfig().Validate(), store.Config{}.Validate()); err != nil {
		t.Error(err)
	}
}

func TestConfigOfAStore(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := store.Config{DSN: "postgres://u@h/db", PasswordFile: file, KeepAudit: 365 * 24 * time.Hour}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	bad := store.Config{PasswordFile: file + "x", KeepRequests: time.Hour, KeepAudit: time.Hour}
	err := bad.Validate()
	for _, want := range []string{"password_file: set, but", "password_file: stat", "keep_requests: got 1h0m0s", "keep_audit: got 1h0m0s, write 720h"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	_, err = store.OpenConfig(t.Context(), store.Config{DSN: "postgres://u@127.0.0.1:1/db", PasswordFile: file})
	if !errors.Is(err, store.ErrAway) || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "check that PostgreSQL runs") {
		t.Errorf("away at the start: %v", err)
	}
}

func TestEmptyFileGetsTheSchema(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locksteward.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, "sqlite:"+path)
	create(t, s, newRequest("r-1", "lock:a"))
	closeStore(t, s)
	// Opening again applies nothing twice.
	s = openAt(t, "sqlite:"+path)
	verified(t, s, 1)
}

// A schema that cannot be created leaves the file empty.
func TestFailedSchemaLeavesNothing(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", "file::memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if err := store.CreateSchema(t.Context(), db, "CREATE TABLE a (x INTEGER); CREATE TABEL b;"); err == nil {
		t.Fatal("a script with an error passed")
	}
	var tables int
	if err := db.QueryRow(`SELECT COUNT(*) FROM sqlite_master`).Scan(&tables); err != nil || tables != 0 {
		t.Errorf("%d tables, %v: half a schema remained", tables, err)
	}
	if err := store.CreateSchema(t.Context(), db, "CREATE TABLE a (x INTEGER);"); err != nil {
		t.Fatal(err)
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := openFile(t)
	appendMany(t, s, 1)
	// The page limit gives the same SQLITE_FULL that a full disk gives.
	if err := s.Exec(t.Context(), `PRAGMA max_page_count = 1`); err != nil {
		t.Fatal(err)
	}
	big := locksteward.Entry{Reason: strings.Repeat("x", 1<<20)}
	err := s.AppendEntries(t.Context(), big)
	e, ok := errors.AsType[*store.Error](err)
	if !ok || !errors.Is(err, store.ErrFull) || e.Op != "append audit entry" || !strings.Contains(e.Error(), "no space left") || !strings.Contains(e.Error(), "free space") {
		t.Fatalf("got %v", err)
	}
	// Nothing of it was written, reads go on, and so do writes once there is room.
	verified(t, s, 1)
	if err := s.Exec(t.Context(), `PRAGMA max_page_count = 100000`); err != nil {
		t.Fatal(err)
	}
	if err := s.AppendEntries(t.Context(), big); err != nil {
		t.Fatal(err)
	}
	verified(t, s, 2)
}

func TestReadOnlyFile(t *testing.T) {
	t.Parallel()
	s := openFile(t)
	if err := s.Exec(t.Context(), `PRAGMA query_only = 1`); err != nil {
		t.Fatal(err)
	}
	err := s.SaveFindings(t.Context(), "orders", []locksteward.Finding{{Rule: "a/b", Severity: locksteward.SeverityInfo}})
	if e, ok := errors.AsType[*store.Error](err); !ok || !errors.Is(err, store.ErrReadOnly) || !strings.Contains(e.Error(), "cannot be written") || !strings.Contains(e.Hint, "writable") {
		t.Fatalf("got %v", err)
	}
}

func TestLockedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locksteward.db")
	s, err := store.OpenImpatient(t.Context(), "sqlite:"+path, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	shell, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer shell.Close()
	shell.SetMaxOpenConns(1)
	if _, err := shell.Exec(`BEGIN EXCLUSIVE`); err != nil {
		t.Fatal(err)
	}
	err = s.AppendEntries(t.Context(), locksteward.Entry{Action: "test"})
	if e, ok := errors.AsType[*store.Error](err); !ok || !errors.Is(err, store.ErrBusy) || !strings.Contains(e.Error(), "another program keeps the file locked") {
		t.Fatalf("got %v", err)
	}
	if _, err := shell.Exec(`ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if err := s.AppendEntries(t.Context(), locksteward.Entry{Action: "test"}); err != nil {
		t.Fatal(err)
	}
}

// fault: 79
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locksteward.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("this is no database ", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := store.Open(t.Context(), "sqlite:"+path)
	if e, ok := errors.AsType[*store.Error](err); !ok || !errors.Is(err, store.ErrDamaged) || !strings.Contains(e.Error(), "damaged or not a database") || !strings.Contains(e.Hint, "restore the last backup") {
		t.Fatalf("got %v", err)
	}
	if _, err := store.Open(t.Context(), "sqlite:"+path+"/below/x.db"); err == nil || !strings.Contains(err.Error(), "another path") {
		t.Fatalf("got %v", err)
	}
}
