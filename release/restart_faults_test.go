package release_test

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/release"
	redissource "github.com/locksteward/locksteward/source/redis"
)

// users are those of a server of its own.
func users() testredis.Option {
	return testredis.WithACL(releaserLine(), "scanner on >"+scannerPassword+" resetkeys resetchannels "+strings.Join(redissource.ACL("*"), " "))
}

// A real server comes back with a snapshot from before the release: the lock
// stands again, nobody has it, and that is reported.
// fault: 29
func TestSnapshotBringsBackAReleasedLock(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, users())
	e := newEnvOn(t, srv.URL(), srv.Client(t), options{username: "releaser"})
	const back, other = "lock:order:back", "lock:order:other"
	e.do(t, "set", back, uuid, "px", 60*minute)
	e.do(t, "set", other, uuid, "px", 60*minute)
	e.do(t, "save")
	r := e.approve(t, ben, e.request(t, ana, back))
	e.want(t, r, locksteward.RequestReleased)
	look := func() []locksteward.Event {
		t.Helper()
		if err := e.service.WatchReleased(t.Context()); err != nil {
			t.Fatal(err)
		}
		return e.reported.of(locksteward.EventResurrected)
	}
	if reported := look(); len(reported) != 0 {
		t.Fatalf("before: %+v", reported)
	}
	srv.Kill()
	srv.Restart()
	if !e.exists(t, back) {
		t.Fatal("the lock is not back: not what is to be tested")
	}
	reported := look()
	if len(reported) != 1 || reported[0].Request.ID != r.ID {
		t.Errorf("reported %+v", reported)
	}
	if got := e.trail(t, r.ID); got[len(got)-1] != "agent release.resurrected resurrected" {
		t.Errorf("trail %q", got)
	}
	if reported = look(); len(reported) != 1 {
		t.Errorf("reported again: %+v", reported)
	}
}

// The releaser's address leads to a replica: it takes no writes, so that nothing
// is released there or on the master. What became of it is open until the server
// is a master, and then it is certain that nothing did.
// fault: 34
func TestReplicaReleasesNothing(t *testing.T) {
	t.Parallel()
	master := testredis.Start(t, users())
	replica := testredis.StartReplica(t, master)
	const key = "lock:order:1"
	e := newEnvOn(t, master.URL(), master.Client(t), options{
		username: "releaser", url: replica.URL(), cfg: release.Config{ExecuteTimeout: 5 * time.Second},
	})
	e.do(t, "set", key, uuid, "px", minute)
	there := replica.Client(t)
	stands := func() bool { return e.exists(t, key) && there.Exists(t.Context(), key).Val() == 1 }
	testredis.Eventually(t, 10*time.Second, stands, "the replica has the lock")
	r := e.approve(t, ben, e.request(t, ana, key))
	e.want(t, r, locksteward.RequestExecuting)
	if !stands() {
		t.Error("the lock is gone")
	}
	if err := there.Do(t.Context(), "replicaof", "no", "one").Err(); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, 30*time.Second, func() bool { return e.service.Recover(t.Context()) == nil }, "what was left open is settled")
	r, err := e.service.Get(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	e.want(t, r, locksteward.RequestFailed)
	if !stands() {
		t.Error("the lock is gone after all")
	}
}

// The server forgets all scripts between the request and its approval: releases
// do not depend on what it keeps.
// fault: 41
func TestReleaseAfterScriptFlush(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, key := range []string{"lock:order:1", "lock:order:2"} {
		e.do(t, "set", key, uuid, "px", minute)
		r := e.request(t, ana, key)
		e.do(t, "script", "flush")
		e.want(t, e.approve(t, ben, r), locksteward.RequestReleased)
		if e.exists(t, key) {
			t.Errorf("%s is still there", key)
		}
	}
	stats, err := e.rdb.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(stats) {
		if strings.HasPrefix(line, "cmdstat_evalsha:") && !strings.Contains(line, "failed_calls=0") {
			t.Errorf("a script was not found and nobody noticed: %s", line)
		}
	}
}
