package sqlsource_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/source"
	sqlsource "github.com/locksteward/locksteward/source/sql"
)

// failed returns the checks that are not OK.
func failed(checks []source.Check) []string {
	var out []string
	for _, c := range checks {
		if c.Status != source.StatusOK {
			out = append(out, c.Name+": "+c.Found+c.Todo)
		}
	}
	return out
}

// The rights that are printed are enough to read and to release, and each is needed.
func TestRightsAreEnough(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	db := open(t, server.DSN())
	for _, i := range []int{0, 1, 6} {
		must(t, db, libraryTables[i].create)
		must(t, db, libraryTables[i].take)
	}
	must(t, db, appTables)
	must(t, db, "CREATE SCHEMA own; ALTER TABLE app_locks SET SCHEMA own; INSERT INTO own.app_locks VALUES ('a', 'me', now(), now() + interval '1 h')")
	must(t, db, "CREATE ROLE app LOGIN; REVOKE ALL ON SCHEMA public FROM PUBLIC")
	opts := sqlsource.Options{Digest: digest, Tables: []sqlsource.Table{leases}}

	text, err := sqlsource.Rights(t.Context(), source.Login{URL: as(t, server.DSN(), "app")}, opts)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := sqlsource.Rights(t.Context(), source.Login{URL: "postgres://127.0.0.1:1/app"}, opts); err != nil || !strings.Contains(again, "-- the database was not asked") {
		t.Errorf("without a server: %v\n%s", err, again)
	}
	must(t, db, text)
	connect(t, as(t, server.DSN(), "app"), "app").do("SELECT pg_advisory_lock(1)")
	reader, releases := as(t, server.DSN(), "locksteward"), as(t, server.DSN(), "locksteward_release")
	src := openSource(t, reader, opts)
	s := scanOver(t, src)
	got := sweep(t, s)
	if len(got.Locks) != 5 || len(s.Stats().Degraded) != 0 {
		t.Errorf("degraded %q, seen %+v", s.Stats().Degraded, got.Locks)
	}
	if bad := failed(src.Check(t.Context())); len(bad) != 0 {
		t.Errorf("checks of the reader: %q", bad)
	}
	r := releaser(t, releases, opts)
	if bad := failed(r.Check(t.Context())); len(bad) != 0 {
		t.Errorf("checks of the releaser: %q", bad)
	}
	if bad := failed(releaser(t, reader, opts).Check(t.Context())); len(bad) != 5 {
		t.Errorf("the reader may release but for %q", bad)
	}
	for _, l := range got.Locks {
		if out, err := r.Release(t.Context(), frozen("r-"+l.Key, &l)); err != nil || out.State != locksteward.RequestReleased {
			t.Errorf("%s: %+v, %v\n%s", l.Key, out, err, text)
		}
	}
	// Each right is needed.
	grants := 0
	for line := range strings.Lines(text) {
		grant, ok := strings.CutPrefix(line, "GRANT ")
		if !ok || strings.Contains(line, "CONNECT") { // which everybody has by default
			continue
		}
		grants++
		must(t, db, "REVOKE "+strings.Replace(grant, " TO ", " FROM ", 1))
		bad := append(failed(src.Check(t.Context())), failed(r.Check(t.Context()))...)
		if len(bad) == 0 {
			t.Errorf("nothing is missing without %s", line)
		}
		must(t, db, line)
	}
	if grants < 12 {
		t.Errorf("%d grants in\n%s", grants, text)
	}
	server.Kill()
	for _, bad := range [][]string{failed(src.Check(t.Context())), failed(r.Check(t.Context()))} {
		if len(bad) != 1 || !slices.ContainsFunc(bad, func(s string) bool { return strings.HasPrefix(s, "database: ") }) {
			t.Errorf("of a dead server: %q", bad)
		}
	}
}

// A TCP port where something else listens, or nobody answers.
func TestExplain(t *testing.T) {
	t.Parallel()
	src := openSource(t, "postgres://127.0.0.1:1/app", sqlsource.Options{Timeout: time.Second})
	if bad := failed(src.Check(t.Context())); len(bad) != 1 || !strings.Contains(bad[0], "connection refused") {
		t.Errorf("checks %q", bad)
	}
	src = openSource(t, "postgres://no-such-host.invalid/app", sqlsource.Options{Timeout: time.Minute}) // a resolver may be slow
	if bad := failed(src.Check(t.Context())); len(bad) != 1 || !strings.Contains(bad[0], "no-such-host.invalid cannot be resolved") {
		t.Errorf("checks %q", bad)
	}
	if src.Explain(nil) != "" {
		t.Error("nothing is explained")
	}
}
