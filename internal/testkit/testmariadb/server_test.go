//go:build unix

package testmariadb_test

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/locksteward/locksteward/internal/testkit/testmariadb"
)

func open(t *testing.T, s *testmariadb.Server) *sql.DB {
	t.Helper()
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.DBName, cfg.Logger = "unix", s.Socket(), "root", "test", &mysql.NopLogger{}
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(c)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// A commit outlives a crash, and the server is at the same address again.
func TestKillAndRestart(t *testing.T) {
	t.Parallel()
	s := testmariadb.Start(t)
	db, pid := open(t, s), s.PID()
	for _, statement := range []string{"CREATE TABLE k (v int) ENGINE=InnoDB", "INSERT INTO k VALUES (7)"} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	s.Kill()
	if err := db.PingContext(t.Context()); err == nil {
		t.Error("a killed server answers")
	}
	s.Restart()
	var sum int
	if err := db.QueryRowContext(t.Context(), "SELECT sum(v) FROM k").Scan(&sum); err != nil || sum != 7 || s.PID() == pid {
		t.Errorf("sum %d, pid %d, %v", sum, s.PID(), err)
	}
}

func TestServerIsGoneAtTheEndOfItsTest(t *testing.T) {
	t.Parallel()
	var dir string
	var pid int
	t.Run("inner", func(t *testing.T) {
		s := testmariadb.Start(t)
		s.Pause()
		dir, pid = s.Dir(), s.PID()
	})
	if dir == "" {
		t.Skip("there is no server")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there: %v", pid, err)
	}
}
