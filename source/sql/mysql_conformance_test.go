package sqlsource_test

import (
	"context"
	"database/sql"
	"net/url"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/sourcetest"
	"github.com/locksteward/locksteward/internal/testkit/testmariadb"
	"github.com/locksteward/locksteward/source"
)

// openMySQL returns a pool of an application, which is closed with the test.
func openMySQL(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.DBName = "unix", u.Query().Get("socket"), u.User.Username(), strings.TrimPrefix(u.Path, "/")
	cfg.Logger, cfg.MultiStatements, cfg.InterpolateParams = &mysql.NopLogger{}, true, true
	cfg.Params = map[string]string{"time_zone": "'+00:00'"}
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(c)
	t.Cleanup(func() {
		if err := db.Close(); err != nil && !strings.Contains(err.Error(), "bad connection") { // of a server that was killed
			t.Error(err)
		}
	})
	return db
}

// asMySQL returns the URL for another user.
func asMySQL(t testing.TB, dsn, user string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(user)
	return u.String()
}

var mysqlRows = rowStatements{
	create: `CREATE TABLE app_locks (name varchar(700) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, owner varchar(200), taken timestamp(6) NULL, until datetime(6)) ENGINE=InnoDB`,
	// Without an end the row stands until somebody deletes it.
	take: `INSERT INTO app_locks (name, owner, taken, until) SELECT v.name, v.owner, SYSDATE(6), CASE WHEN v.ttl > 0 THEN SYSDATE(6) + INTERVAL v.ttl MICROSECOND ELSE '9999-12-31 23:59:59' END
		FROM (SELECT ? AS name, ? AS owner, ? AS ttl) v
		ON DUPLICATE KEY UPDATE owner = v.owner, taken = SYSDATE(6), until = CASE WHEN v.ttl > 0 THEN SYSDATE(6) + INTERVAL v.ttl MICROSECOND ELSE '9999-12-31 23:59:59' END`,
	free: `DELETE FROM app_locks WHERE name = ?`, owner: `SELECT owner FROM app_locks WHERE name = ?`,
}

// onMySQL is a store on a server that can be restarted, and that refuses some users.
type onMySQL struct {
	*rows
	server *testmariadb.Server
}

func (s *onMySQL) Restart(t testing.TB) {
	t.Helper()
	s.server.Restart()
	must(t, s.db, "SELECT 1")
}

func (s *onMySQL) Cut(t testing.TB) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	rows, err := s.db.QueryContext(ctx, "SELECT ID FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND USER = 'root'")
	if err != nil {
		t.Fatal(err)
	}
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if _, err := s.db.ExecContext(ctx, "KILL ?", id); err != nil && !strings.Contains(err.Error(), "Unknown thread") {
			t.Fatal(err)
		}
	}
}

func (s *onMySQL) Refused(t testing.TB) (sources map[string]source.Source, secrets []string) {
	t.Helper()
	must(t, s.db, `CREATE USER nobody_may; CREATE USER unknown_login ACCOUNT LOCK`)
	password := func() (locksteward.Secret, error) { return scannerPassword, nil }
	return map[string]source.Source{
		"no right to read the database": s.source(t, source.Login{URL: asMySQL(t, s.dsn, "nobody_may")}),
		"no login":                      s.source(t, source.Login{URL: s.dsn, Username: "unknown_login", Password: password}),
		"no such user":                  s.source(t, source.Login{URL: s.dsn, Username: "stranger", Password: password}),
		"no such database":              s.source(t, source.Login{URL: strings.Replace(s.dsn, "/test?", "/nowhere?", 1), Password: password}),
		"no server":                     s.source(t, source.Login{URL: "mysql://root@127.0.0.1:1/app", Password: password}),
	}, []string{scannerPassword}
}

func mysqlStore(t testing.TB, server *testmariadb.Server) *onMySQL {
	t.Helper()
	return &onMySQL{rows: newRowsOf(t, server.DSN(), openMySQL(t, server.DSN()), mysqlRows), server: server}
}

func TestConformanceOfMariaDB(t *testing.T) {
	t.Parallel()
	sourcetest.Conformance(t, *races, func(t testing.TB) sourcetest.Store {
		if !strings.Contains(t.Name(), "restart") && !strings.Contains(t.Name(), "refusal") {
			dsn := testmariadb.Database(t)
			return newRowsOf(t, dsn, openMySQL(t, dsn), mysqlRows) // which is faster, and no other test may harm it
		}
		return mysqlStore(t, testmariadb.Start(t))
	})
}

func TestConformanceOfMySQL(t *testing.T) {
	t.Parallel()
	sourcetest.Conformance(t, *races, func(t testing.TB) sourcetest.Store { return mysqlStore(t, testmariadb.StartMySQL(t)) })
}
