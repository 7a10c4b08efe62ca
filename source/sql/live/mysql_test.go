package live_test

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/golang-migrate/migrate/v4/database"
	migratemysql "github.com/golang-migrate/migrate/v4/database/mysql"

	"github.com/locksteward/locksteward/internal/testkit/testmariadb"
)

func TestGolangMigrateOnMariaDB(t *testing.T) {
	t.Parallel()
	dsn := testmariadb.Database(t)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	open := func() database.Driver {
		cfg := mysql.NewConfig()
		cfg.Net, cfg.Addr, cfg.User, cfg.DBName, cfg.MultiStatements = "unix", u.Query().Get("socket"), "root", strings.TrimPrefix(u.Path, "/"), true
		cfg.Logger = &mysql.NopLogger{}
		c, err := mysql.NewConnector(cfg)
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(c)
		t.Cleanup(func() { _ = db.Close() })
		d, err := migratemysql.WithInstance(db, &migratemysql.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	dead, next := open(), open()
	if err := dead.Lock(); err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 1)
	go func() { waits <- next.Lock() }()
	l := only(t, dsn, "golang-migrate")
	if l.Session == nil || !strings.HasPrefix(l.Key, "getlock:") {
		t.Errorf("seen %+v", l)
	}
	free(t, dsn, l)
	if err := <-waits; err != nil {
		t.Errorf("the next migration: %v", err)
	}
	if err := next.Unlock(); err != nil {
		t.Error(err)
	}
}
