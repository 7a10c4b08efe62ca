package sqlsource_test

import (
	"net/url"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testmariadb"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testtooz"
	sqlsource "github.com/locksteward/locksteward/source/sql"
)

// tooz takes pg_advisory_lock of the first two bytes of the MD5 of the name, in a transaction that
// psycopg2 begins and that stays open, and GET_LOCK of the name.
func TestTooz(t *testing.T) {
	t.Parallel()
	server, maria := testpg.Start(t), testmariadb.Start(t, "plugin-load-add=metadata_lock_info")
	dsn, err := url.Parse(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		url, dsn, key, library string
		state                  locksteward.SessionState
	}{
		"PostgreSQL": {"postgresql://postgres@/postgres?port=5432&host=" + dsn.Query().Get("host"), server.DSN(), "advisory:postgres:10:227", "postgres-advisory", locksteward.SessionInTransaction},
		"MariaDB":    {"mysql://root@localhost/test?unix_socket=" + maria.Socket(), maria.DSN(), "getlock:" + testtooz.Lock, "get-lock", locksteward.SessionIdle},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scan(t, test.dsn, sqlsource.Options{})
			release := testtooz.Hold(t, test.url)
			l := find(sweep(t, s).Locks, test.key)
			if l == nil || l.Library != test.library || l.Lifetime != locksteward.LifetimeSession || l.Session == nil || l.Session.State != test.state {
				t.Fatalf("seen %+v of %+v", l, sweep(t, s).Locks)
			}
			release()
			if l := find(sweep(t, s).Locks, test.key); l != nil {
				t.Errorf("left %+v", l)
			}
		})
	}
}
