package agent_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

// An agent whose store does not say at the start what fired before: it works all the
// same, and as soon as the store says it people hear the end of what is over.
func TestFindingsThatAreReadLate(t *testing.T) {
	t.Parallel()
	srv, e := testredis.Start(t), newEar(t)
	rdb := srv.Client(t)
	set(t, rdb, "lock:order:over", token, 0)
	set(t, rdb, "lock:order:still", token, 0)
	b := newBed(t, target(srv.URL())+orders+receivers("ops", e.url))
	const metric = `locksteward_findings{class="orders",risk="deadlock",rule="ttl/none",severity="critical",target="main"} `
	b.awaitMetric(metric + "2")
	e.await(2)
	b.stop()
	rdb.Del(t.Context(), "lock:order:over")
	path := filepath.Join(b.dir, "store.db")
	alter := func(from, to string) {
		shell, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
		if err != nil {
			t.Fatal(err)
		}
		defer shell.Close()
		if _, err := shell.ExecContext(context.Background(), "ALTER TABLE findings RENAME COLUMN "+from+" TO "+to); err != nil {
			t.Fatal(err)
		}
	}
	alter("finding", "gone")
	b.start()
	set(t, rdb, "lock:order:new", token, 0)
	b.awaitMetric(metric + "2")
	times := func(what string) int {
		n := 0
		for _, h := range e.of("") {
			if h.finding() == what {
				n++
			}
		}
		return n
	}
	testredis.Eventually(t, within, func() bool { return times("lock:order:new firing") > 0 }, "people do not hear of what is new meanwhile")
	if times("lock:order:over resolved") != 0 {
		t.Error("the end of an unknown finding was reported")
	}
	if text := logText(b); !strings.Contains(text, "findings of the last run are not known yet") {
		t.Error("the log does not say that findings are missing:", text)
	}
	alter("gone", "finding")
	testredis.Eventually(t, within, func() bool { return times("lock:order:over resolved") == 1 }, "nobody tells the end of what fired before")
	b.awaitMetric(metric + "2")
	b.stop()
	if n := times("lock:order:new firing"); n != 1 {
		t.Errorf("what was new was reported %d times", n)
	}
	st, err := store.Open(t.Context(), "sqlite:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	findings, err := st.LoadFindings(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]locksteward.Status{}
	for _, f := range findings {
		if f.Key != "" {
			keys[f.Key] = f.Status
		}
	}
	if len(keys) != 2 || keys["lock:order:still"] != locksteward.StatusFiring || keys["lock:order:new"] != locksteward.StatusFiring {
		t.Errorf("the store has %v", keys)
	}
}
