package testzk_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/testkit/testzk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testzk.Main{M: m}) }

func TestDirectoriesOfOneServer(t *testing.T) {
	t.Parallel()
	a, b := testzk.Shared(t), testzk.Shared(t)
	if a.Addr() != b.Addr() || a.Directory(t) == b.Directory(t) {
		t.Error("two servers, or one directory for both")
	}
}

func TestKillPauseAndRestart(t *testing.T) {
	t.Parallel()
	s := testzk.Start(t, testzk.Standalone)
	c := s.Client(t, time.Minute)
	if _, err := c.Create("/kept", []byte("x"), zk.FlagPersistent, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	pid, addr := s.PID(), s.Addr()
	s.Pause()
	s.Resume()
	s.Kill()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there: %v", pid, err)
	}
	s.Kill() // once more is no error
	s.Restart()
	if s.Addr() != addr {
		t.Errorf("restarted at %s, was at %s", s.Addr(), addr)
	}
	testredis.Eventually(t, 20*time.Second, func() bool {
		got, _, err := c.Get("/kept")
		return err == nil && string(got) == "x"
	}, "what was acknowledged is gone")
}

func TestServerIsGoneAtTheEndOfItsTest(t *testing.T) {
	t.Parallel()
	var pid int
	t.Run("inner", func(t *testing.T) {
		s := testzk.Start(t, testzk.Lonely)
		pid = s.PID()
		s.Pause()
	})
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there: %v", pid, err)
	}
}

// No parallel: the environment is the whole process's.
func TestMissingServer(t *testing.T) {
	t.Setenv("LOCKSTEWARD_TEST_ZOOKEEPER_JAR", t.TempDir()+"/none.jar")
	t.Setenv("CI", "")
	if testzk.Available() {
		t.Error("a server is available without its jar")
	}
	t.Run("skipped", func(t *testing.T) {
		testzk.Start(t, testzk.Standalone)
		t.Error("a server that is not there was started")
	})
}
