package testpg_test

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/internal/testkit/testpg"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect returns a connection that is closed at the end of the test, if it is
// still there.
func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(context.Background()); err != nil {
			t.Logf("close: %v", err)
		}
	})
	return conn
}

func must(t *testing.T, conn *pgx.Conn, statement string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func TestDatabasesOfOneServerShareNothing(t *testing.T) {
	t.Parallel()
	first, second := testpg.Database(t), testpg.Database(t)
	if first == second {
		t.Fatalf("twice %q", first)
	}
	a, b := connect(t, first), connect(t, second)
	must(t, a, "CREATE TABLE k (v int)")
	if _, err := b.Exec(t.Context(), "SELECT v FROM k"); err == nil {
		t.Error("a table of one database is in the other")
	}
	var listens string
	if err := a.QueryRow(t.Context(), "SHOW listen_addresses").Scan(&listens); err != nil || listens != "" {
		t.Errorf("listens on %q, %v; want no port", listens, err)
	}
}

func TestServerRunsWithoutRights(t *testing.T) {
	t.Parallel()
	s := testpg.Start(t)
	info, err := os.Stat(socketDir(t, s.DSN()))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("its directory is open to others: %s", info.Mode())
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid == 0 {
		t.Errorf("its directory belongs to %+v, want not to root", info.Sys())
	}
	log, err := os.ReadFile(s.LogPath())
	if err != nil || !strings.Contains(string(log), "ready to accept connections") {
		t.Errorf("log of the server: %v, %q", err, log)
	}
}

func TestServerIsGoneAtTheEndOfItsTest(t *testing.T) {
	t.Parallel()
	var dirs []string
	var pids []int
	t.Run("inner", func(t *testing.T) {
		running, paused := testpg.Start(t), testpg.Start(t)
		connect(t, running.DSN())
		paused.Pause()
		for _, s := range []*testpg.Server{running, paused} {
			dirs, pids = append(dirs, socketDir(t, s.DSN())), append(pids, s.PID())
		}
	})
	for i, dir := range dirs {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", dir, err)
		}
		if err := syscall.Kill(pids[i], 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is still there: %v", pids[i], err)
		}
	}
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	s := testpg.Start(t)
	conn := connect(t, s.DSN())
	must(t, conn, "CREATE TABLE k (v int)")
	s.Pause()

	answer := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "INSERT INTO k VALUES (1)")
		answer <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if c, err := pgx.Connect(ctx, s.DSN()); err == nil {
		t.Error("a paused server takes connections")
		_ = c.Close(t.Context())
	}
	select {
	case err := <-answer:
		t.Errorf("a connection of a paused server answers: %v", err)
		answer <- err
	default:
	}
	s.Resume()
	select {
	case err := <-answer:
		if err != nil {
			t.Errorf("after resume: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("no answer after resume")
	}
}

func TestKillAndRestart(t *testing.T) {
	t.Parallel()
	s := testpg.Start(t)
	conn, pid, dsn := connect(t, s.DSN()), s.PID(), s.DSN()
	must(t, conn, "CREATE TABLE k (v int)")
	must(t, conn, "INSERT INTO k VALUES (7)")
	must(t, conn, "BEGIN")
	must(t, conn, "INSERT INTO k VALUES (8)")
	s.Kill()
	if _, err := conn.Exec(t.Context(), "SELECT 1"); err == nil {
		t.Error("a killed server answers")
	}
	if c, err := pgx.Connect(t.Context(), dsn); err == nil {
		t.Error("a killed server takes connections")
		_ = c.Close(t.Context())
	}
	s.Kill() // Once more is no error.
	s.Restart()
	if s.PID() == pid || s.DSN() != dsn {
		t.Errorf("restarted at %s as %d, was at %s as %d", s.DSN(), s.PID(), dsn, pid)
	}
	var sum int
	if err := connect(t, dsn).QueryRow(t.Context(), "SELECT sum(v) FROM k").Scan(&sum); err != nil || sum != 7 {
		t.Errorf("sum %d after the restart, %v; want what was committed, 7", sum, err)
	}
	s.Pause()
	s.Restart()
	must(t, connect(t, dsn), "SELECT 1")
}

// Two clients of a pooler have one session of the server, one after the other.
func TestPooler(t *testing.T) {
	t.Parallel()
	s := testpg.Start(t)
	dsn := s.Pooler(1)
	session := func() (pid int) {
		t.Helper()
		if err := connect(t, dsn).QueryRow(t.Context(), "SELECT pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid); err != nil {
			t.Fatal(err)
		}
		return pid
	}
	if first, second := session(), session(); first != second {
		t.Errorf("sessions %d and %d, want one", first, second)
	}
}

func socketDir(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("host")
}
