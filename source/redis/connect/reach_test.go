package connect_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/connect"
)

const patience = 30 * time.Second

// reach tries to reach a target over connections of its own, within a bound.
func reach(t *testing.T, bound time.Duration, cfg connect.Config) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	return connect.Reach(ctx, cfg)
}

// ping asks the masters that conn knows, within a bound.
func ping(t *testing.T, bound time.Duration, conn *connect.Conn) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	return conn.Ping(ctx)
}

func TestReachOneServer(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	cfg := connect.Config{URL: srv.URL()}
	conn := open(t, cfg)
	if err := ping(t, patience, conn); err == nil {
		t.Error("a master answers before one is known")
	}
	if _, err := conn.Masters(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ping(t, patience, conn); err != nil {
		t.Errorf("ping: %v", err)
	}
	if err := reach(t, patience, cfg); err != nil {
		t.Errorf("reach: %v", err)
	}
	srv.Pause()
	if err := ping(t, 200*time.Millisecond, conn); err == nil {
		t.Error("ping: a server that stands still answers")
	}
	if err := reach(t, 200*time.Millisecond, cfg); !strings.Contains(connect.Explain(err), "no answer in time") {
		t.Errorf("reach a server that stands still: %v", err)
	}
	srv.Resume()
	srv.Kill()
	if err := reach(t, patience, cfg); !strings.Contains(connect.Explain(err), "refused") {
		t.Errorf("reach a dead server: %v", err)
	}
	srv.Restart()
	if err := reach(t, patience, cfg); err != nil {
		t.Errorf("reach it again: %v", err)
	}
	rdb := srv.Client(t)
	testredis.Eventually(t, patience, func() bool { return strings.Count(rdb.ClientList(t.Context()).Val(), "name=locksteward ") == 0 }, "connections stay")
}

// Who may not ask PING was answered; who may not log in was not let in.
func TestReachAsWhom(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL("user mute on >pass ~* -@all +hello +auth +info +select +client|setname", "default on nopass ~* +@all"))
	if err := reach(t, patience, connect.Config{URL: srv.URL(), Username: "mute", Password: "pass"}); err != nil {
		t.Errorf("without the right to ask: %v", err)
	}
	if err := reach(t, patience, connect.Config{URL: srv.URL(), Username: "mute", Password: "wrong"}); !strings.Contains(connect.Explain(err), "refused user or password") {
		t.Errorf("with a wrong password: %v", err)
	}
}

// A Cluster is in reach while one master answers, whichever seeds do not.
func TestReachACluster(t *testing.T) {
	t.Parallel()
	cluster := testredis.StartCluster(t)
	cfg := connect.Config{URL: cluster.URL(), DialTimeout: time.Minute, ReadTimeout: time.Minute}
	conn := open(t, cfg)
	if _, err := conn.Masters(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, node := range cluster.Nodes[:2] {
		node.Pause()
		defer node.Resume()
		began := time.Now()
		if err := reach(t, 2*patience, cfg); err != nil {
			t.Errorf("reach: %v", err)
		}
		if took := time.Since(began); took > patience {
			t.Errorf("it waited %s for a node that does not answer", took)
		}
		if err := ping(t, 5*time.Second, conn); err != nil {
			t.Errorf("ping: %v", err)
		}
	}
	cluster.Nodes[2].Pause()
	defer cluster.Nodes[2].Resume()
	if reach(t, 200*time.Millisecond, connect.Config{URL: cfg.URL}) == nil || ping(t, 200*time.Millisecond, conn) == nil {
		t.Error("nobody answers, and it is in reach")
	}
}

func TestReachBehindSentinels(t *testing.T) {
	t.Parallel()
	s := testredis.StartSentinel(t)
	cfg := connect.Config{URL: s.URL(), DialTimeout: time.Minute, ReadTimeout: time.Minute}
	master := s.Master()
	s.Sentinels[0].Pause()
	defer s.Sentinels[0].Resume()
	began := time.Now()
	if err := reach(t, 2*patience, cfg); err != nil {
		t.Errorf("reach: %v", err)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("it waited %s for a Sentinel that does not answer", took)
	}
	master.Pause()
	defer master.Resume()
	if err := reach(t, 200*time.Millisecond, connect.Config{URL: cfg.URL}); err == nil {
		t.Error("the master does not answer, and it is in reach")
	}
}
