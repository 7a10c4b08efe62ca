package sqlsource_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testmariadb"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/source"
	sqlsource "github.com/locksteward/locksteward/source/sql"
)

// mysqlTables are the tables of libraries as these create them in MySQL and MariaDB, and the statements with
// which they take a lock; the sources are named in table_shipped.go.
var mysqlTables = []struct {
	library, create, take string
	name                  string // of the lock, behind the database
	lifetime              locksteward.Lifetime
	holder                locksteward.Holder
	identity              locksteward.Identity
	dated                 bool   // it says since when
	free                  string // is true once the lock is released; "" if it cannot be
}{
	{
		library: "liquibase",
		create: `CREATE TABLE DATABASECHANGELOGLOCK (ID INT NOT NULL, ` + "`LOCKED`" + ` BIT(1) NOT NULL, LOCKGRANTED datetime NULL, LOCKEDBY VARCHAR(255) NULL, CONSTRAINT PK_DATABASECHANGELOGLOCK PRIMARY KEY (ID));
			INSERT INTO DATABASECHANGELOGLOCK (ID, ` + "`LOCKED`" + `) VALUES (1, 0)`,
		take: "UPDATE DATABASECHANGELOGLOCK SET `LOCKED` = 1, LOCKEDBY = 'app-7d4f#deploy-9 (10.2.3.4)', LOCKGRANTED = NOW() WHERE ID = 1 AND `LOCKED` = 0",
		name: "DATABASECHANGELOGLOCK:1", lifetime: locksteward.LifetimePersistent, holder: locksteward.Holder{Host: "app-7d4f", App: "deploy-9"},
		identity: locksteward.IdentityLineage, dated: true,
		free: "SELECT NOT `LOCKED` AND lockgranted IS NULL AND lockedby IS NULL FROM DATABASECHANGELOGLOCK",
	},
	{
		library: "shedlock",
		create: `CREATE TABLE shedlock(name VARCHAR(64) NOT NULL, lock_until TIMESTAMP(3) NOT NULL, locked_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
			locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))`,
		take: `INSERT IGNORE INTO shedlock(name, lock_until, locked_at, locked_by) VALUES('nightly:report', TIMESTAMPADD(MICROSECOND, 3600000000, UTC_TIMESTAMP(3)), UTC_TIMESTAMP(3), 'web-1')`,
		name: "shedlock:nightly:report", lifetime: locksteward.LifetimeLease, holder: locksteward.Holder{Host: "web-1"}, identity: locksteward.IdentityLineage, dated: true,
		free: `SELECT lock_until <= UTC_TIMESTAMP(3) AND locked_by = 'web-1' FROM shedlock`, // never deleted
	},
	{
		library: "spring-integration-jdbc",
		create: `CREATE TABLE INT_LOCK (LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36), CREATED_DATE DATETIME(6) NOT NULL,
			EXPIRED_AFTER DATETIME(6) NOT NULL, constraint INT_LOCK_PK primary key (LOCK_KEY, REGION)) ENGINE=InnoDB`,
		take: `INSERT INTO INT_LOCK (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER) VALUES ('a:b', '6c1d3ee0-3a46-3cd3-a6a5-1e0ff5b90e91',
			'0e6d0c38-2a0e-4b0f-9a53-7a6f5a5c0a11', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 10 MINUTE)`,
		name: "INT_LOCK:a%3Ab:6c1d3ee0-3a46-3cd3-a6a5-1e0ff5b90e91", lifetime: locksteward.LifetimeLease,
		holder: locksteward.Holder{Session: "0e6d0c38-2a0e-4b0f-9a53-7a6f5a5c0a11"}, identity: locksteward.IdentityLineage,
		free: `SELECT count(*) = 0 FROM INT_LOCK`,
	},
	{ // before version 7.0
		library: "spring-integration-jdbc",
		create: `CREATE TABLE INT_LOCK (LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36), CREATED_DATE DATETIME(6) NOT NULL,
			constraint INT_LOCK_PK primary key (LOCK_KEY, REGION)) ENGINE=InnoDB`,
		take: `INSERT INTO INT_LOCK (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE) VALUES ('DEFAULT', '6c1d3ee0-3a46-3cd3-a6a5-1e0ff5b90e91', '0e6d0c38-2a0e-4b0f-9a53-7a6f5a5c0a11', NOW(6))`,
		name: "INT_LOCK:DEFAULT:6c1d3ee0-3a46-3cd3-a6a5-1e0ff5b90e91", lifetime: locksteward.LifetimePersistent,
		holder: locksteward.Holder{Session: "0e6d0c38-2a0e-4b0f-9a53-7a6f5a5c0a11"}, identity: locksteward.IdentityLineage,
		free: `SELECT count(*) = 0 FROM INT_LOCK`,
	},
	{
		library: "quartz",
		create: `CREATE TABLE QRTZ_SCHEDULER_STATE (SCHED_NAME VARCHAR(120) NOT NULL, INSTANCE_NAME VARCHAR(190) NOT NULL, LAST_CHECKIN_TIME BIGINT(13) NOT NULL,
			CHECKIN_INTERVAL BIGINT(13) NOT NULL, PRIMARY KEY (SCHED_NAME,INSTANCE_NAME)) ENGINE=InnoDB`,
		take: `INSERT INTO QRTZ_SCHEDULER_STATE VALUES ('jobs', 'node1', UNIX_TIMESTAMP() * 1000, 20000)`,
		name: "QRTZ_SCHEDULER_STATE:jobs:node1", lifetime: locksteward.LifetimeLease, holder: locksteward.Holder{Session: "node1"}, identity: locksteward.IdentityLineage,
	},
	{
		library: "knex",
		create:  "create table `knex_migrations_lock` (`index` int unsigned not null auto_increment primary key, `is_locked` int); INSERT INTO knex_migrations_lock (is_locked) VALUES (0)",
		take:    `UPDATE knex_migrations_lock SET is_locked = 1 WHERE is_locked = 0`,
		name:    "knex_migrations_lock:1", lifetime: locksteward.LifetimePersistent, identity: locksteward.IdentityNone,
		free: `SELECT is_locked = 0 FROM knex_migrations_lock`,
	},
	{
		library: "golang-migrate",
		create:  `CREATE TABLE schema_migrations (version bigint not null primary key, dirty boolean not null)`,
		take:    `INSERT INTO schema_migrations VALUES (20240131, true)`,
		name:    "schema_migrations:20240131", lifetime: locksteward.LifetimePersistent, identity: locksteward.IdentityNone,
	},
}

func TestLibrariesInMariaDB(t *testing.T) {
	t.Parallel()
	librariesIn(t, testmariadb.Database)
}

func TestLibrariesInMySQL(t *testing.T) {
	t.Parallel()
	server := testmariadb.StartMySQL(t)
	admin, n := openMySQL(t, server.DSN()), 0
	for i := range mysqlTables {
		must(t, admin, fmt.Sprintf("CREATE DATABASE lib_%d", i))
	}
	librariesIn(t, func(testing.TB) string { n++; return server.URL(fmt.Sprintf("lib_%d", n-1)) })
}

func librariesIn(t *testing.T, database func(testing.TB) string) {
	t.Helper()
	for i, lib := range mysqlTables {
		t.Run(fmt.Sprintf("%s-%d", lib.library, i), func(t *testing.T) {
			dsn := database(t)
			db, s := openMySQL(t, dsn), scan(t, dsn, sqlsource.Options{})
			must(t, db, lib.create)
			if got := sweep(t, s); len(got.Locks) != 0 {
				t.Fatalf("free, and seen %+v", got.Locks)
			}
			must(t, db, lib.take)
			got := sweep(t, s)
			l := find(got.Locks, myName(dsn)+"."+lib.name)
			if l == nil || len(got.Locks) != 1 {
				t.Fatalf("seen %+v", got.Locks)
			}
			if l.Library != lib.library || l.Lifetime != lib.lifetime || l.Holder != lib.holder || l.Identity != lib.identity ||
				(l.Lifetime == locksteward.LifetimeLease) != (l.TTL > 0) || l.TTL > 4*time.Hour {
				t.Errorf("seen %+v", l)
			}
			if ago := l.At.Sub(l.Acquired); lib.dated != !l.Acquired.IsZero() || lib.dated && (ago < 0 || ago > time.Minute) {
				t.Errorf("acquired %s, seen at %s", l.Acquired, l.At)
			}
			r := releaser(t, dsn, sqlsource.Options{Digest: digest})
			req := frozen(rid(t, 1), l)
			if lib.free == "" {
				if why := r.Limits(req.Evidence).Release; !isRefused(why) {
					t.Errorf("limits %v", why)
				}
				return
			}
			if limits := r.Limits(req.Evidence); limits.Release != nil || !strings.Contains(limits.Decision, "no version") {
				t.Errorf("limits %+v", limits)
			}
			if out, err := r.Release(t.Context(), req); err != nil || out.State != locksteward.RequestReleased || out.ConfirmedBy != source.ConfirmedByAnswer {
				t.Errorf("release %+v, %v", out, err)
			}
			var free bool
			if err := db.QueryRowContext(t.Context(), lib.free).Scan(&free); err != nil || !free {
				t.Errorf("free %v, %v", free, err)
			}
			if got := sweep(t, s); len(got.Locks) != 0 || len(got.Endings) != 1 {
				t.Errorf("after the release: %+v, ended %+v", got.Locks, got.Endings)
			}
		})
	}
}

// myName returns the database of a URL of testmariadb.
func myName(dsn string) string {
	_, path, _ := strings.Cut(strings.TrimPrefix(dsn[strings.Index(dsn, "://"):], "://"), "/")
	name, _, _ := strings.Cut(path, "?")
	return name
}

// Columns of any type and character set are compared byte by byte: a collation that takes two values for
// one lets no row go.
func TestRowsAreComparedByteByByte(t *testing.T) {
	t.Parallel()
	dsn := testmariadb.Database(t)
	db := openMySQL(t, dsn)
	must(t, db, `CREATE TABLE odd (name varchar(40) CHARACTER SET latin1 COLLATE latin1_swedish_ci, id binary(4), kind enum('a','B'), price decimal(20,5), rate double, flag bit(1),
		at datetime(3), day date, doc longtext CHARACTER SET utf8mb4, who varchar(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci, n bigint unsigned, PRIMARY KEY (name, id)) ENGINE=InnoDB`)
	odd := sqlsource.Table{
		Library: "odd", Table: "odd", Prefix: "lock:", Name: []string{"name", "id", "kind", "price", "rate", "flag", "at", "day", "doc", "n"}, Holder: "who", Release: "delete",
	}
	opts := sqlsource.Options{Digest: digest, Tables: []sqlsource.Table{odd}}
	const row = `('M\xFCller', x'ff002741', 'B', 1.5, 0.1, b'1', '2026-01-02 03:04:05.678', '2026-01-02', '💣''"\\', 'Owner', 18446744073709551615)`
	must(t, db, "INSERT INTO odd VALUES "+strings.Replace(row, `'M\xFCller'`, "_latin1 x'4DFC6C6C6572'", 1))
	s, r := scan(t, dsn, opts), releaser(t, dsn, opts)
	look := func() locksteward.Request {
		t.Helper()
		got := sweep(t, s)
		if len(got.Locks) != 1 || !strings.HasPrefix(got.Locks[0].Key, "lock:Müller:FF002741:B:") {
			t.Fatalf("seen %+v", got.Locks)
		}
		return frozen("r-"+fmt.Sprint(time.Now().UnixNano()), &got.Locks[0])
	}
	for _, change := range []string{"who = 'owner'", "who = 'Owner '", "who = 'Öwner'", "who = NULL"} {
		must(t, db, "UPDATE odd SET who = 'Owner'")
		req := look()
		must(t, db, "UPDATE odd SET "+change)
		if out, err := r.Release(t.Context(), req); err != nil || out.State != locksteward.RequestChanged {
			t.Errorf("%s: %+v, %v", change, out, err)
		}
	}
	must(t, db, "UPDATE odd SET who = 'Owner'")
	if out, err := r.Release(t.Context(), look()); err != nil || out.State != locksteward.RequestReleased {
		t.Errorf("unchanged: %+v, %v", out, err)
	}
}

// A row without a version can be taken again and look the same: the approver confirms that.
func TestRowWithoutVersionTakenAgain(t *testing.T) {
	t.Parallel()
	dsn := testmariadb.Database(t)
	db, s := openMySQL(t, dsn), scan(t, dsn, sqlsource.Options{})
	must(t, db, mysqlTables[0].create)
	must(t, db, mysqlTables[0].take)
	l := find(sweep(t, s).Locks, myName(dsn)+".DATABASECHANGELOGLOCK:1")
	must(t, db, "UPDATE DATABASECHANGELOGLOCK SET LOCKGRANTED = LOCKGRANTED + INTERVAL 1 SECOND")
	r := releaser(t, dsn, sqlsource.Options{Digest: digest})
	if out, err := r.Release(t.Context(), frozen(rid(t, 1), l)); err != nil || out.State != locksteward.RequestChanged || len(out.Differences) == 0 {
		t.Errorf("taken a second later: %+v, %v", out, err)
	}
	next := sweep(t, s)
	if len(next.Endings) != 1 || next.Endings[0].How != locksteward.EndedReplaced {
		t.Errorf("endings %+v", next.Endings)
	}
}

// An engine without transactions cannot take back what it changed: its rows are seen and not released.
func TestTableWithoutTransactions(t *testing.T) {
	t.Parallel()
	dsn := testmariadb.Database(t)
	db, s := openMySQL(t, dsn), scan(t, dsn, sqlsource.Options{})
	must(t, db, strings.Replace(mysqlTables[5].create, "`is_locked` int)", "`is_locked` int) ENGINE=MyISAM", 1))
	must(t, db, mysqlTables[5].take)
	must(t, db, "CREATE VIEW shedlock AS SELECT 1 AS name, NOW() AS lock_until, NOW() AS locked_at, 'x' AS locked_by")
	l := find(sweep(t, s).Locks, myName(dsn)+".knex_migrations_lock:1")
	r := releaser(t, dsn, sqlsource.Options{Digest: digest})
	if out, err := r.Release(t.Context(), frozen(rid(t, 1), l)); err != nil || out.State != locksteward.RequestFailed || !strings.Contains(out.Reason, "MyISAM") {
		t.Errorf("release %+v, %v", out, err)
	}
}

// Who holds Liquibase's row is dead once no session comes from its address, in sweep after sweep.
func TestHolderWithoutSessionInMariaDB(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: needs an address of its own in 127.0.0.0/8")
	}
	addr := fmt.Sprintf("127.78.%d.%d", os.Getpid()>>8&0xff, os.Getpid()&0xff)
	server := testmariadb.Start(t, "bind-address="+addr, "port=3306")
	db := openMySQL(t, server.DSN())
	must(t, db, "CREATE USER app IDENTIFIED BY 'secret'; GRANT ALL ON test.* TO app")
	src := openSource(t, server.DSN(), sqlsource.Options{})
	src.BelieveLoopback()
	s := scanOver(t, src)
	must(t, db, mysqlTables[0].create)
	must(t, db, strings.Replace(mysqlTables[0].take, "10.2.3.4", "127.0.0.1", 1))
	password := func() (locksteward.Secret, error) { return "secret", nil }
	login := source.Login{URL: "mariadb://app@" + addr + ":3306/test", Password: password}
	connected := func() *sqlsource.Source {
		t.Helper()
		app, err := sqlsource.Open(login, sqlsource.Options{Digest: digest})
		if err != nil {
			t.Fatal(err)
		}
		if err := app.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		return app
	}
	holder := connected()
	var l locksteward.Lock
	look := func() *locksteward.Absence {
		l = *find(sweep(t, s).Locks, "test.DATABASECHANGELOGLOCK:1")
		return l.Absence
	}
	for range 3 {
		if got := look(); got != nil {
			t.Errorf("with a session from there: %+v", got)
		}
	}
	if err := holder.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, db, "SELECT COUNT(*) = 0 FROM information_schema.PROCESSLIST WHERE HOST LIKE '127.0.0.1:%'")
	first := look()
	if v := judge(t, l, time.Hour, "holder/dead"); v.Result != rules.Clear {
		t.Errorf("after one look: %+v", v)
	}
	if first == nil || first.Looks != 1 || first.From != "127.0.0.1" {
		t.Fatalf("after its end: %+v", first)
	}
	if second := look(); second == nil || second.Looks != 2 || !second.Since.Equal(first.Since) {
		t.Errorf("and then: %+v, before %+v", second, first)
	}
	if v := judge(t, l, time.Minute, "holder/dead"); v.Result != rules.Fires || v.Finding.Proof != locksteward.Presumed {
		t.Errorf("after two looks: %+v", v)
	}
	again := connected()
	if got := look(); got != nil {
		t.Errorf("with another session from there: %+v", got)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestMySQLURLs(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"mysql://h", "mysql://h/", "mysql:///app", "mysql://u:se cret@h/app", "mysql://h/app?sslmode=x", "mysql://h/app?tls=skip-verify", "mysql://h/app#cret", "mysql://:cret@h/app",
	} {
		if _, err := sqlsource.Open(source.Login{URL: url}, sqlsource.Options{}); err == nil || strings.Contains(err.Error(), "cret") {
			t.Errorf("%q: %v", url, err)
		}
	}
}
