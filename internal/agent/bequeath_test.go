package agent_test

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// A replica that is cut off from the database tells from memory that a lock is
// broken. Another one takes the target over when the lock is free already, and hears
// of what was told as soon as the first one is back: people hear of its end.
func TestEndOfWhatWasToldFromMemory(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	at, err := url.Parse(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	proxy := testredis.NewProxy(t, filepath.Join(at.Query().Get("host"), ".s.PGSQL."+at.Query().Get("port")))
	srv, e := testredis.Start(t), newEar(t)
	rdb := srv.Client(t)
	rest := orders + receivers("ops", e.url) + "cluster: {lease: 1s}\n"
	if err := rdb.Do(t.Context(), "ACL", "SETUSER", "one", "on", "nopass", "~*", "&*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	one := newBedOn(t, strings.Replace(target(srv.URL()), "name: main,", "name: main, username: one,", 1)+rest,
		"postgres://postgres@"+proxy.Addr()+"/postgres?sslmode=disable")
	// One message through the store, so that nothing waits there.
	set(t, rdb, "lock:order:0", token, 0)
	e.await(1)
	rdb.Del(t.Context(), "lock:order:0")
	e.await(2)
	one.awaitDrained("ops", 2)

	proxy.Cut()
	set(t, rdb, "lock:order:1", token, 0)
	if got := e.await(3)[2].finding(); got != "lock:order:1 firing" {
		t.Fatalf("told from memory: %s", got)
	}
	// It does not see the end either.
	for _, command := range [][]any{{"ACL", "SETUSER", "one", "off"}, {"CLIENT", "KILL", "USER", "one"}} {
		if err := rdb.Do(t.Context(), command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	rdb.Del(t.Context(), "lock:order:1")
	two := newBedOn(t, target(srv.URL())+rest, server.DSN())
	testredis.Eventually(t, within, func() bool {
		l := two.agent.Targets()
		return len(two.leads()) == 1 && len(l) == 1 && l[0].LastSweep != nil && l[0].LastSweep.Complete
	}, "nobody takes the target over")
	proxy.Heal()
	if got := e.await(4)[3].finding(); got != "lock:order:1 resolved" {
		t.Errorf("then told: %s", got)
	}
	if !strings.Contains(logText(two), "another replica had told of findings from memory") {
		t.Error("nothing was handed over")
	}
}
