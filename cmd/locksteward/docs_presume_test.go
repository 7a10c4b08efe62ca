package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/redisproc"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// What pages presume, before their first command.

func (*docBed) nothing(*testing.T) {}

// lockOrder42 is the stuck lock of many pages.
func (b *docBed) lockOrder42(t *testing.T) {
	t.Helper()
	b.stuck(t, "lock:order:42")
}

// withNewUsers is what pages say behind users add: reload the agent.
func (b *docBed) withNewUsers(t *testing.T) {
	t.Helper()
	b.reload(t)
	b.lockOrder42(t)
}

// redissonOrder42 is a lock of Redisson's for which three clients wait.
func (b *docBed) redissonOrder42(t *testing.T) {
	t.Helper()
	key := "lock:order:42"
	if err := b.rdb.Del(t.Context(), key).Err(); err != nil {
		t.Fatal(err)
	}
	if err := b.rdb.HSet(t.Context(), key, someUUID+":1", 1).Err(); err != nil {
		t.Fatal(err)
	}
	if err := b.rdb.PExpire(t.Context(), key, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		waiter := b.rdb.Subscribe(t.Context(), "redisson_lock__channel:{"+key+"}")
		if _, err := waiter.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = waiter.Close() })
	}
}

// condition is what scan prints beside the stuck lock.
func (b *docBed) condition(t *testing.T) {
	t.Helper()
	b.lockOrder42(t)
	for line := range strings.Lines(b.inProcess(t, "scan", "--redis", b.srv.URL())) {
		if _, rest, ok := strings.Cut(line, " --if "); ok && strings.Contains(line, "-- lock:order:42") {
			b.env = append(b.env, "CONDITION="+strings.Trim(strings.Fields(rest)[0], "'"))
			return
		}
	}
	t.Fatal("scan prints no unlock for lock:order:42")
}

func (b *docBed) paused(t *testing.T) {
	t.Helper()
	if code := b.ask(t, "root", http.MethodPost, "/-/pause?target=orders", nil); code/100 != 2 {
		t.Fatalf("pause: status %d", code)
	}
}

// anaIsKnown awaits that the agent has read the users file again.
func (b *docBed) anaIsKnown(t *testing.T) {
	t.Helper()
	token := b.sh(t, "cat ana.token")
	testredis.Eventually(t, 60*time.Second, func() bool {
		return b.ask(t, strings.TrimSpace(token), http.MethodGet, "/api/v1/locks", nil) == http.StatusOK
	}, "the agent does not know ana")
}

// worm is where anchors are written.
func (b *docBed) worm(t *testing.T) {
	t.Helper()
	b.sh(t, "mkdir worm")
}

// oneLine is an anchor in a file of its own.
func (b *docBed) oneLine(t *testing.T) {
	t.Helper()
	b.sh(t, "tail -n 1 worm/anchors > line")
}

// lastVersion has made a recording, and the new one lies beside it.
func (b *docBed) lastVersion(t *testing.T) {
	t.Helper()
	b.sh(t, `mkdir new && ln -s "$NEXT" new/locksteward
		locksteward scan --redis "$REDIS" --record locks.jsonl > scanned
		locksteward rules test locks.jsonl --config locksteward.yaml --output json > want.json`)
}

func (b *docBed) stopAgent(*testing.T) { stop(b.agentRuns) }

// onAgain is the end of a restore.
func (b *docBed) onAgain(t *testing.T) {
	t.Helper()
	b.run(t)
	b.sh(t, "locksteward audit verify --config locksteward.yaml")
}

// rights has a configuration and passwords, and no users of Redis.
func (b *docBed) rights(t *testing.T) {
	t.Helper()
	for _, name := range []string{"scanner.pw", "releaser.pw", "billing.pw"} {
		b.write(t, name, "not-so-secret-not-so-secret")
	}
	b.write(t, "locksteward.yaml", `
targets: [{name: orders, redis: "`+b.srv.URL()+`", username: scanner, password_file: scanner.pw, release_credentials: {username: releaser, password_file: releaser.pw}}]
classes: [{class: orders, match: ["lock:order:*"], release: approve}]
`)
}

func (b *docBed) rightsInUse(t *testing.T) {
	t.Helper()
	b.sh(t, "locksteward acl --config locksteward.yaml --target orders | redis-cli")
}

// sentinel has a Sentinel of this bed's server, and a configuration that names it.
func (b *docBed) sentinel(t *testing.T) {
	t.Helper()
	_, port, err := net.SplitHostPort(b.srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	proc, err := redisproc.Start(t.Context(), redisproc.Options{
		Dir: t.TempDir(), Sentinel: true, Config: []string{"sentinel monitor mymaster 127.0.0.1 " + port + " 1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proc.Close() })
	b.env = append(b.env, fmt.Sprintf("SENTINEL_PORT=%d", proc.Port()))
	b.write(t, "sentinel.pw", "not-so-secret-not-so-secret")
	b.write(t, "locksteward.yaml", `
targets: [{name: orders, redis: "redis+sentinel://`+proc.Addr()+`/mymaster", sentinel_username: locksteward, sentinel_password_file: sentinel.pw}]
`)
}

// batchLocks are locks for init and for recordings.
func (b *docBed) batchLocks(t *testing.T) {
	t.Helper()
	b.sh(t, `for i in 1 2 3 4 5 6; do redis-cli SET lock:order:$i 5f2b8c1e-9d1a-4b6e-8f0a-1c2d3e4f5a6$i PX 600000; redis-cli SET batch:$i 1; done`)
}

func (b *docBed) noConfiguration(t *testing.T) {
	t.Helper()
	b.sh(t, "rm locksteward.yaml")
}

// archive is the unpacked release beside an empty machine, and the Compose stack.
func (b *docBed) archive(t *testing.T) {
	t.Helper()
	b.batchLocks(t)
	b.sh(t, `mkdir -p root/usr/bin root/usr/lib/sysusers.d root/usr/lib/tmpfiles.d root/etc/systemd/system root/etc/locksteward deploy/compose
		cp "$LOCKSTEWARD_BIN" locksteward; cp -r "$REPO/deploy/systemd" .; cp "$REPO/deploy/compose/secrets.sh" deploy/compose/`)
}
