package agent_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

const otherToken = "6f2b8c1e-9d1a-4b6e-8f0a-1c2d3e4f5a6b"

// forgotten is what agents did that a backup of their store lacks.
type forgotten struct {
	t           *testing.T
	srv         *testredis.Server
	e           *ear
	again, gone api.Request
}

// before has two requests made, of which the backup knows.
func (f *forgotten) before(a clocked) {
	f.t.Helper()
	rdb := f.srv.Client(f.t)
	for _, key := range []string{"lock:order:stuck", "lock:order:again", "lock:order:gone"} {
		set(f.t, rdb, key, token, 0)
	}
	f.again, f.gone = a.request("main", "lock:order:again"), a.request("main", "lock:order:gone")
	testredis.Eventually(f.t, within, func() bool {
		return f.e.times("lock:order:stuck firing") == 1 && f.e.times("lock:order:again firing") == 1 && f.e.times("lock:order:gone firing") == 1
	}, "what is stuck is not reported")
	a.sweeps("main", 2) // until the delivery is noted
}

// after has them executed, and something found that the backup has never seen.
func (f *forgotten) after(a clocked) {
	f.t.Helper()
	rdb := f.srv.Client(f.t)
	for _, r := range []api.Request{f.again, f.gone} {
		if r, err := a.approve(r); err != nil || r.State != "released" {
			f.t.Fatalf("%+v, %v", r, err)
		}
	}
	testredis.Eventually(f.t, within, func() bool {
		return f.e.times("lock:order:again resolved") == 1 && f.e.times("lock:order:gone resolved") == 1
	}, "the end of what was released is not reported")
	set(f.t, rdb, "lock:order:again", otherToken, 0) // somebody works under it by now
	set(f.t, rdb, "lock:order:later", token, 0)
	testredis.Eventually(f.t, within, func() bool {
		return f.e.times("lock:order:later firing") == 1 && f.e.times("lock:order:again firing") == 2
	}, "what happens later is not reported")
}

// holds requires of agents on the backup that they release nothing for what it says, tell
// again what it forgot, once, and nothing else twice. leader is the one that works on the
// target; it may change.
func (f *forgotten) holds(leader func() clocked) {
	f.t.Helper()
	rdb := f.srv.Client(f.t)
	for r, want := range map[*api.Request]string{&f.again: "changed", &f.gone: "already_gone"} {
		testredis.Eventually(f.t, within, func() bool {
			got, err := leader().approve(*r)
			if err == nil {
				*r = got
			}
			return err == nil
		}, "it cannot be approved")
		if r.State != want {
			f.t.Errorf("%s: %s (%s), want %s", r.ID, r.State, r.Outcome, want)
		}
	}
	if rdb.Get(f.t.Context(), "lock:order:again").Val() != otherToken {
		f.t.Error("released twice")
	}
	testredis.Eventually(f.t, 3*within, func() bool { return f.e.times("lock:order:later firing") == 2 }, "what the store forgot is not reported again")
	// Its end is reported too, and that of what the store remembers: nothing stays open.
	if err := rdb.Del(f.t.Context(), "lock:order:later", "lock:order:stuck").Err(); err != nil {
		f.t.Fatal(err)
	}
	testredis.Eventually(f.t, within, func() bool {
		return f.e.times("lock:order:later resolved") == 1 && f.e.times("lock:order:stuck resolved") == 1
	}, "an end is not reported")
	leader().sweeps("main", 2)
	for finding, most := range map[string]int{
		"lock:order:stuck firing": 1, "lock:order:stuck resolved": 1, "lock:order:later firing": 2, "lock:order:later resolved": 1,
		"lock:order:gone firing": 1, "lock:order:gone resolved": 2, "lock:order:again firing": 3, "lock:order:again resolved": 2,
	} {
		if n := f.e.times(finding); n > most {
			f.t.Errorf("%s: reported %d times, at most %d are due", finding, n, most)
		}
	}
}

// A copy of the store, taken while the agent ran, takes its place after the agent was
// killed: it is said so, nothing is released a second time, and what fires is reported again.
func TestStoreThatIsOlderAfterAKill(t *testing.T) {
	t.Parallel()
	srv, e := testredis.Start(t), newEar(t)
	f := &forgotten{t: t, srv: srv, e: e}
	a := newProcess(layBed(t, target(srv.URL())+orders+receivers("ops", e.url), ""), "agent")
	a.Start()
	f.before(a)
	copied := a.b.backup()
	f.after(a)
	a.Kill()
	a.b.restore(copied)
	a.Start()
	a.said("the store is older than it was", `"entries_missing":`)
	f.holds(func() clocked { return a })
	a.End()
	a.b.verify()
}

// postgres is a database of a server of its own.
type postgres struct {
	t      *testing.T
	server *testpg.Server
	dsn    string
}

func newPostgres(t *testing.T) *postgres {
	t.Helper()
	server := testpg.Start(t)
	p := &postgres{t, server, strings.Replace(server.DSN(), "/postgres", "/steward", 1)}
	if p.dsn == server.DSN() {
		t.Fatalf("no database in %s", p.dsn)
	}
	p.exec("CREATE DATABASE steward")
	return p
}

func (p *postgres) exec(statements ...string) {
	p.t.Helper()
	conn, err := pgx.Connect(p.t.Context(), p.server.DSN())
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close(p.t.Context())
	for _, s := range statements {
		if _, err := conn.Exec(p.t.Context(), s); err != nil {
			p.t.Fatalf("%s: %v", s, err)
		}
	}
}

func (p *postgres) run(program string, args ...string) {
	p.t.Helper()
	if out, err := exec.Command(testpg.Program(p.t, program), args...).CombinedOutput(); err != nil {
		p.t.Fatalf("%s: %v: %s", program, err, out)
	}
}

// restore puts a dump in the place of the database, anyone who uses it.
func (p *postgres) restore(dump string) {
	p.t.Helper()
	p.exec("CREATE DATABASE restored")
	p.run("pg_restore", "--no-owner", "--single-transaction", "--dbname="+strings.Replace(p.dsn, "/steward", "/restored", 1), dump)
	p.exec("DROP DATABASE steward WITH (FORCE)", "ALTER DATABASE restored RENAME TO steward")
}

// An older dump takes the place of the database of two replicas, while they are stopped,
// and while they run: it is said so by each that had it open, nothing is released a second
// time, and what fires is reported again.
func TestDatabaseOfReplicasThatIsOlder(t *testing.T) {
	for name, running := range map[string]bool{"stopped": false, "killed": false, "running": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, srv, e := newPostgres(t), testredis.Start(t), newEar(t)
			f := &forgotten{t: t, srv: srv, e: e}
			b := layBed(t, fmt.Sprintf("targets: [%s]\n", replicaTarget("main", srv, 0))+orders+receivers("ops", e.url), db.dsn)
			one, two := newProcess(b, "one"), newProcess(b, "two")
			one.Start()
			two.Start()
			leader := func() (a clocked) {
				t.Helper()
				testredis.Eventually(t, 2*within, func() bool {
					for _, a = range []clocked{one, two} {
						if strings.Contains(get("http://"+a.Where().Metrics+"/metrics"), `locksteward_leader{target="main"} 1`) {
							return true
						}
					}
					return false
				}, "the target is with nobody")
				return a
			}
			f.before(leader())
			dump := filepath.Join(t.TempDir(), "dump")
			db.run("pg_dump", "--format=custom", "--no-owner", "--file="+dump, db.dsn)
			f.after(leader())
			switch name {
			case "stopped":
				one.End()
				two.End()
			case "killed":
				one.Kill()
				two.Kill()
			}
			db.restore(dump)
			if !running {
				one.Start()
				one.said("the database is not the one in which the store was written last", `"entries_missing":0`)
				two.Start()
			} else {
				one.said("the database is not the one in which the store was written last")
				two.said("the database is not the one in which the store was written last")
			}
			f.holds(leader)
			one.End()
			two.End()
			b.verify()
		})
	}
}
