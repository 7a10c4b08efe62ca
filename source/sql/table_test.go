package sqlsource_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/source"
	sqlsource "github.com/locksteward/locksteward/source/sql"
)

// libraryTables are the tables of libraries as these create them, and the statements with which they
// take a lock; the sources are named in table_shipped.go.
var libraryTables = []struct {
	library, create, take string
	name                  string // of the lock
	lifetime              locksteward.Lifetime
	holder                locksteward.Holder
	identity              locksteward.Identity
	dated                 bool   // it says since when
	free                  string // is true once the lock is released; "" if it cannot be
}{
	{
		library: "liquibase",
		create: `CREATE TABLE databasechangeloglock (ID INTEGER NOT NULL, LOCKED BOOLEAN NOT NULL, LOCKGRANTED TIMESTAMP WITHOUT TIME ZONE, LOCKEDBY VARCHAR(255), PRIMARY KEY (ID));
			INSERT INTO databasechangeloglock (ID, LOCKED) VALUES (1, FALSE)`,
		take: `UPDATE databasechangeloglock SET LOCKED = TRUE, LOCKEDBY = 'app-7d4f#deploy-9 (10.2.3.4)', LOCKGRANTED = NOW() AT TIME ZONE 'UTC' WHERE ID = 1 AND LOCKED = FALSE`,
		name: "public.databasechangeloglock:1", lifetime: locksteward.LifetimePersistent, holder: locksteward.Holder{Host: "app-7d4f", App: "deploy-9"},
		identity: locksteward.IdentityStrong, dated: true,
		free: `SELECT NOT locked AND lockgranted IS NULL AND lockedby IS NULL FROM databasechangeloglock`,
	},
	{
		library: "shedlock",
		create:  `CREATE TABLE shedlock (name VARCHAR(64) NOT NULL, lock_until TIMESTAMP NOT NULL, locked_at TIMESTAMP NOT NULL, locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))`,
		take: `INSERT INTO shedlock(name, lock_until, locked_at, locked_by) VALUES('nightly:report', timezone('utc', CURRENT_TIMESTAMP) + cast('3600 s' as interval),
			timezone('utc', CURRENT_TIMESTAMP), 'web-1')`,
		name: "public.shedlock:nightly:report", lifetime: locksteward.LifetimeLease, holder: locksteward.Holder{Host: "web-1"}, identity: locksteward.IdentityStrong, dated: true,
		free: `SELECT lock_until <= timezone('utc', CURRENT_TIMESTAMP) AND locked_by = 'web-1' FROM shedlock`, // never deleted
	},
	{
		library: "spring-integration-jdbc",
		create: `CREATE TABLE INT_LOCK (LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36), CREATED_DATE TIMESTAMP NOT NULL,
			EXPIRED_AFTER TIMESTAMP NOT NULL, constraint INT_LOCK_PK primary key (LOCK_KEY, REGION))`,
		take: `INSERT INTO INT_LOCK (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER) VALUES ('a:b', '6c1d3ee0-3a46-3cd3-a6a5-1e0ff5b90e91',
			'0e6d0c38-2a0e-4b0f-9a53-7a6f5a5c0a11', now() at time zone 'UTC', (now() + interval '10 min') at time zone 'UTC')`,
		name: "public.int_lock:a%3Ab:6c1d3ee0-3a46-3cd3-a6a5-1e0ff5b90e91", lifetime: locksteward.LifetimeLease,
		holder: locksteward.Holder{Session: "0e6d0c38-2a0e-4b0f-9a53-7a6f5a5c0a11"}, identity: locksteward.IdentityLineage,
		free: `SELECT count(*) = 0 FROM INT_LOCK`,
	},
	{ // before version 7.0
		library: "spring-integration-jdbc",
		create: `CREATE TABLE INT_LOCK (LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36), CREATED_DATE TIMESTAMP NOT NULL,
			constraint INT_LOCK_PK primary key (LOCK_KEY, REGION))`,
		take: `INSERT INTO INT_LOCK (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE) VALUES ('DEFAULT', '6c1d3ee0-3a46-3cd3-a6a5-1e0ff5b90e91', '0e6d0c38-2a0e-4b0f-9a53-7a6f5a5c0a11', now())`,
		name: "public.int_lock:DEFAULT:6c1d3ee0-3a46-3cd3-a6a5-1e0ff5b90e91", lifetime: locksteward.LifetimePersistent,
		holder: locksteward.Holder{Session: "0e6d0c38-2a0e-4b0f-9a53-7a6f5a5c0a11"}, identity: locksteward.IdentityLineage,
		free: `SELECT count(*) = 0 FROM INT_LOCK`,
	},
	{
		library: "quartz",
		create: `CREATE TABLE QRTZ_SCHEDULER_STATE (SCHED_NAME VARCHAR(120) NOT NULL, INSTANCE_NAME VARCHAR(200) NOT NULL, LAST_CHECKIN_TIME BIGINT NOT NULL,
			CHECKIN_INTERVAL BIGINT NOT NULL, PRIMARY KEY (SCHED_NAME,INSTANCE_NAME))`,
		take: `INSERT INTO QRTZ_SCHEDULER_STATE VALUES ('jobs', 'node1', extract(epoch from now()) * 1000, 20000)`,
		name: "public.qrtz_scheduler_state:jobs:node1", lifetime: locksteward.LifetimeLease, holder: locksteward.Holder{Session: "node1"}, identity: locksteward.IdentityLineage,
	},
	{
		library: "knex",
		create:  `CREATE TABLE knex_migrations_lock (index serial primary key, is_locked integer); INSERT INTO knex_migrations_lock (is_locked) VALUES (0)`,
		take:    `UPDATE knex_migrations_lock SET is_locked = 1 WHERE is_locked = 0`,
		name:    "public.knex_migrations_lock:1", lifetime: locksteward.LifetimePersistent, identity: locksteward.IdentityStrong,
		free: `SELECT is_locked = 0 FROM knex_migrations_lock`,
	},
	{
		library: "golang-migrate",
		create:  `CREATE TABLE schema_lock (lock_id INT NOT NULL PRIMARY KEY)`,
		take:    `INSERT INTO schema_lock (lock_id) VALUES (1486364155)`,
		name:    "public.schema_lock:1486364155", lifetime: locksteward.LifetimePersistent, identity: locksteward.IdentityStrong,
		free: `SELECT count(*) = 0 FROM schema_lock`,
	},
	{
		library: "golang-migrate",
		create:  `CREATE TABLE schema_migrations (version bigint not null primary key, dirty boolean not null)`,
		take:    `INSERT INTO schema_migrations VALUES (20240131, true)`,
		name:    "public.schema_migrations:20240131", lifetime: locksteward.LifetimePersistent, identity: locksteward.IdentityStrong,
	},
	{
		library: "river",
		create: `CREATE UNLOGGED TABLE river_leader (elected_at timestamptz NOT NULL, expires_at timestamptz NOT NULL, leader_id text NOT NULL,
			name text PRIMARY KEY DEFAULT 'default' CHECK (name = 'default'))`,
		take: `INSERT INTO river_leader (leader_id, elected_at, expires_at) VALUES ('web1_2024_01_31T10_00_00', now(), now() + interval '10 s')`,
		name: "public.river_leader:default", lifetime: locksteward.LifetimeLease, holder: locksteward.Holder{Session: "web1_2024_01_31T10_00_00"}, identity: locksteward.IdentityStrong,
		dated: true, free: `SELECT count(*) = 0 FROM river_leader`,
	},
	{
		library: "oban",
		create:  `CREATE UNLOGGED TABLE oban_peers (name text NOT NULL PRIMARY KEY, node text NOT NULL, started_at timestamp without time zone NOT NULL, expires_at timestamp without time zone NOT NULL)`,
		take:    `INSERT INTO oban_peers VALUES ('Oban', 'app@10.0.0.5', timezone('utc', now()), timezone('utc', now()) + interval '30 s')`,
		name:    "public.oban_peers:Oban", lifetime: locksteward.LifetimeLease, holder: locksteward.Holder{Session: "app@10.0.0.5"}, identity: locksteward.IdentityStrong, dated: true,
		free: `SELECT count(*) = 0 FROM oban_peers`,
	},
	{
		library: "graphile-worker",
		create: `CREATE SCHEMA graphile_worker; CREATE TABLE graphile_worker._private_jobs (id bigint PRIMARY KEY, payload json, locked_at timestamptz, locked_by text);
			INSERT INTO graphile_worker._private_jobs VALUES (7, '{}')`,
		take: `UPDATE graphile_worker._private_jobs SET locked_by = 'worker-9f', locked_at = now() WHERE id = 7`,
		name: "graphile_worker._private_jobs:7", lifetime: locksteward.LifetimeLease, holder: locksteward.Holder{Session: "worker-9f"}, identity: locksteward.IdentityStrong, dated: true,
		free: `SELECT locked_at IS NULL AND locked_by IS NULL FROM graphile_worker._private_jobs`,
	},
}

func TestLibraries(t *testing.T) {
	t.Parallel()
	for i, lib := range libraryTables {
		t.Run(fmt.Sprintf("%s-%d", lib.library, i), func(t *testing.T) {
			t.Parallel()
			dsn := testpg.Database(t)
			db, s := open(t, dsn), scan(t, dsn, sqlsource.Options{})
			must(t, db, lib.create)
			if got := sweep(t, s); len(got.Locks) != 0 {
				t.Fatalf("free, and seen %+v", got.Locks)
			}
			must(t, db, lib.take)
			got := sweep(t, s)
			l := find(got.Locks, lib.name)
			if l == nil || len(got.Locks) != 1 {
				t.Fatalf("seen %+v", got.Locks)
			}
			if l.Library != lib.library || l.Lifetime != lib.lifetime || l.Holder != lib.holder || l.Identity != lib.identity || l.Class != "all" ||
				(l.Lifetime == locksteward.LifetimeLease) != (l.TTL > 0) || l.TTL > 4*time.Hour {
				t.Errorf("seen %+v", l)
			}
			if ago := l.At.Sub(l.Acquired); lib.dated != !l.Acquired.IsZero() || lib.dated && (ago < 0 || ago > time.Minute) {
				t.Errorf("acquired %s, seen at %s", l.Acquired, l.At)
			}
			r := releaser(t, dsn, sqlsource.Options{Digest: digest})
			req := frozen("r-1", l)
			if lib.free == "" {
				if why := r.Limits(req.Evidence).Release; !isRefused(why) {
					t.Errorf("limits %v", why)
				}
				if out, err := r.Release(t.Context(), req); err != nil || out.State != locksteward.RequestFailed {
					t.Errorf("release %+v, %v", out, err)
				}
				return
			}
			if limits := r.Limits(req.Evidence); limits.Release != nil || (limits.Decision != "") != (l.Lifetime == locksteward.LifetimePersistent) {
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

// A row without any identity of its own (knex) is told apart by its version: taken again between
// evidence and release it stays.
func TestRowTakenAgain(t *testing.T) {
	t.Parallel()
	dsn := testpg.Database(t)
	db, s := open(t, dsn), scan(t, dsn, sqlsource.Options{})
	must(t, db, libraryTables[5].create)
	must(t, db, libraryTables[5].take)
	l := find(sweep(t, s).Locks, "public.knex_migrations_lock:1")
	must(t, db, "UPDATE knex_migrations_lock SET is_locked = 0")
	must(t, db, "UPDATE knex_migrations_lock SET is_locked = 1")
	must(t, db, "VACUUM (FULL, FREEZE) knex_migrations_lock")
	r := releaser(t, dsn, sqlsource.Options{Digest: digest})
	if out, err := r.Release(t.Context(), frozen("r-1", l)); err != nil || out.State != locksteward.RequestChanged || len(out.Differences) == 0 {
		t.Errorf("release %+v, %v", out, err)
	}
	next := sweep(t, s)
	if len(next.Endings) != 1 || next.Endings[0].How != locksteward.EndedReplaced {
		t.Errorf("endings %+v", next.Endings)
	}
	must(t, db, "VACUUM (FULL, FREEZE) knex_migrations_lock")
	l = find(next.Locks, l.Key)
	if out, err := r.Release(t.Context(), frozen("r-2", l)); err != nil || out.State != locksteward.RequestReleased {
		t.Errorf("after a VACUUM: %+v, %v", out, err)
	}
}

// A holder that renews keeps its hold.
func TestRenewedRow(t *testing.T) {
	t.Parallel()
	dsn := testpg.Database(t)
	db, s := open(t, dsn), scan(t, dsn, sqlsource.Options{})
	must(t, db, libraryTables[1].create)
	must(t, db, libraryTables[1].take)
	first := find(sweep(t, s).Locks, "public.shedlock:nightly:report")
	must(t, db, "UPDATE shedlock SET lock_until = lock_until + interval '1 min'")
	second := sweep(t, s)
	l := find(second.Locks, first.Key)
	if len(second.Endings) != 0 || l == nil || l.History.Renewals != 1 || l.ExpireAt-first.ExpireAt != 60_000 {
		t.Errorf("renewed: %+v, ended %+v", l, second.Endings)
	}
	r := releaser(t, dsn, sqlsource.Options{Digest: digest})
	if out, err := r.Release(t.Context(), frozen("r-1", first)); err != nil || out.State != locksteward.RequestChanged {
		t.Errorf("release of a renewed lease: %+v, %v", out, err)
	}
}

// Who holds Liquibase's row is dead once no session comes from its address, in sweep after sweep.
func TestHolderWithoutSession(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: needs an address of its own in 127.0.0.0/8")
	}
	addr := fmt.Sprintf("127.77.%d.%d", os.Getpid()>>8&0xff, os.Getpid()&0xff)
	server := testpg.Start(t, "listen_addresses="+addr)
	db := open(t, server.DSN())
	src := openSource(t, server.DSN(), sqlsource.Options{})
	src.BelieveLoopback()
	s := scanOver(t, src)
	must(t, db, libraryTables[0].create)
	must(t, db, strings.Replace(libraryTables[0].take, "10.2.3.4", "127.0.0.1", 1))
	holder := connect(t, "postgres://postgres@"+addr+":5432/postgres?sslmode=disable", "liquibase")
	var l locksteward.Lock
	look := func() *locksteward.Absence {
		l = *find(sweep(t, s).Locks, "public.databasechangeloglock:1")
		return l.Absence
	}
	for range 3 {
		if got := look(); got != nil {
			t.Errorf("with a session from there: %+v", got)
		}
	}
	holder.close()
	eventually(t, db, "SELECT count(*) = 0 FROM pg_stat_activity WHERE client_addr = '127.0.0.1'")
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
	connect(t, "postgres://postgres@"+addr+":5432/postgres?sslmode=disable", "liquibase")
	if got := look(); got != nil {
		t.Errorf("with another session from there: %+v", got)
	}
	if v := judge(t, l, time.Hour, "holder/dead"); v.Result == rules.Fires {
		t.Errorf("with another session from there: %+v", v)
	}
}

func TestTableDescriptions(t *testing.T) {
	t.Parallel()
	good := leases
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for _, shipped := range sqlsource.Shipped() {
		if err := shipped.Validate(); err != nil {
			t.Errorf("%s: %v", shipped.Table, err)
		}
	}
	for field, change := range map[string]func(*sqlsource.Table){
		`library ""`:                    func(t *sqlsource.Table) { t.Library = "" },
		`table "a.b.c"`:                 func(t *sqlsource.Table) { t.Table = "a.b.c" },
		`table ""`:                      func(t *sqlsource.Table) { t.Table = "" },
		`name ""`:                       func(t *sqlsource.Table) { t.Name = nil },
		`name "a;b"`:                    func(t *sqlsource.Table) { t.Name = []string{"a;b"} },
		`holder "lower(x)"`:             func(t *sqlsource.Table) { t.Holder = "lower(x)" },
		`for "4x"`:                      func(t *sqlsource.Table) { t.For = "4x" },
		`for "4h"`:                      func(t *sqlsource.Table) { t.For, t.Until = "4h", "" },
		`held "owner = 'me'"`:           func(t *sqlsource.Table) { t.Held = "owner = 'me'" },
		`release "drop"`:                func(t *sqlsource.Table) { t.Release = "drop" },
		`release "set owner = nobody"`:  func(t *sqlsource.Table) { t.Release = "set owner = nobody" },
		`release "set owner=null, x.y"`: func(t *sqlsource.Table) { t.Release = "set owner=null, x.y" },
	} {
		bad := leases
		change(&bad)
		err := bad.Validate()
		if !errors.Is(err, sqlsource.ErrTable) || !strings.Contains(err.Error(), field+": ") {
			t.Errorf("%s: %v", field, err)
		}
		if _, err := sqlsource.Open(source.Login{URL: "postgres://h/app"}, sqlsource.Options{Tables: []sqlsource.Table{bad}}); err == nil || !strings.Contains(err.Error(), "tables[0]: ") {
			t.Errorf("%s: opened, %v", field, err)
		}
	}
	for _, url := range []string{"postgres://h", "postgres:///app", "mongodb://h/app", "postgres://u:se cret@h/app", "h", ""} {
		if _, err := sqlsource.Open(source.Login{URL: url}, sqlsource.Options{}); err == nil || strings.Contains(err.Error(), "cret") {
			t.Errorf("%q: %v", url, err)
		}
	}
}
