package testetcd_test

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/locksteward/locksteward/internal/testkit/testetcd"
)

// probe asks for a key with a linearizable read, which needs a leader.
func probe(t *testing.T, c *clientv3.Client, within time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	_, err := c.Get(ctx, "probe")
	return err
}

func TestKillRestartAndPause(t *testing.T) {
	t.Parallel()
	s := testetcd.Start(t)
	c := s.Client(t)
	if _, err := c.Put(t.Context(), "a", "1"); err != nil {
		t.Fatal(err)
	}
	s.Pause()
	if err := probe(t, c, 200*time.Millisecond); err == nil {
		t.Error("a paused server answers")
	}
	s.Resume()
	if err := probe(t, c, 30*time.Second); err != nil {
		t.Errorf("after the pause: %v", err)
	}
	s.Kill()
	if err := probe(t, c, 200*time.Millisecond); err == nil {
		t.Error("a killed server answers")
	}
	s.Restart()
	if got, err := c.Get(t.Context(), "a"); err != nil || got.Count != 1 {
		t.Errorf("after a restart: %+v, %v", got, err)
	}
}

func TestMembersLoseTheirLeader(t *testing.T) {
	t.Parallel()
	s := testetcd.StartWith(t, testetcd.Options{Members: 3})
	c := s.Client(t)
	s.Kill(1, 2)
	if err := probe(t, c, time.Second); err == nil {
		t.Error("one member of three answers")
	}
	s.Restart(1)
	if err := probe(t, c, 30*time.Second); err != nil {
		t.Errorf("two members of three: %v", err)
	}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	s := testetcd.Start(t)
	root := s.EnableAuth(t)
	if err := probe(t, root, 30*time.Second); err != nil {
		t.Errorf("root: %v", err)
	}
	if err := probe(t, s.Client(t), 30*time.Second); err == nil {
		t.Error("nobody may read")
	}
}
