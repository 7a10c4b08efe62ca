package sqlsource

import (
	"cmp"
	"hash/crc32"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/locksteward/locksteward"
)

// advisoryKey is the key of an advisory lock: one bigint, or two int4.
type advisoryKey struct {
	bigint   int64
	a, b     int32
	isDouble bool
}

// String returns the key as a function call has it, with a colon between two numbers.
func (k advisoryKey) String() string {
	if k.isDouble {
		return strconv.Itoa(int(k.a)) + ":" + strconv.Itoa(int(k.b))
	}
	return strconv.FormatInt(k.bigint, 10)
}

// advisoryConstants are keys that a library always uses.
var advisoryConstants = map[int64]string{
	72707369:             "prisma",              // prisma/prisma-engines, sql-schema-connector, flavour/postgres.rs
	4097083626:           "goose",               // pressly/goose, lock/session_locker_options.go
	5887940537704921958:  "goose",               // older versions of it
	9628173550095224:     "tern",                // jackc/tern, migrate/migrate.go
	7241865325823964:     "node-pg-migrate",     // salsita/node-pg-migrate, src/runner.ts
	-8525285245963000605: "postgres-migrations", // thomwright/postgres-migrations, src/with-lock.ts
	7813573191660762980:  "locksteward",         // store/postgres.go
}

// Salts of keys that are computed from the database's name.
const (
	railsSalt    = 2053462845 // rails/rails, activerecord/lib/active_record/migration.rb, MIGRATOR_SALT
	sqlxSalt     = 0x3d32ad9e // launchbadge/sqlx, sqlx-postgres/src/migrate.rs
	migrateSalt  = 1486364155 // golang-migrate/migrate, database/util.go
	flywayMagic  = 0x46<<40 + 0x6C<<32 + 0x79<<24 + 0x77<<16 + 0x61<<8 + 0x79
	authentikKey = 1000 // goauthentik/authentik, lifecycle/migrate.py
)

// withAdvisoryLock is a statement of ClosureTree/with_advisory_lock (postgresql_advisory.rb),
// which has the lock's name as a comment.
var withAdvisoryLock = regexp.MustCompile(`pg_(?:try_)?advisory_(?:xact_)?lock(?:_shared)?\((-?\d+), ?(-?\d+)\) AS \w+ /\*`)

// advisoryLibrary returns the library that takes advisory locks with a key, as far as the number
// says it; statement is the session's last one.
func advisoryLibrary(k advisoryKey, database, user, statement string) (string, locksteward.Confidence) {
	if k.isDouble {
		m := withAdvisoryLock.FindStringSubmatch(statement)
		if m != nil && m[1] == strconv.Itoa(int(k.a)) && m[2] == strconv.Itoa(int(k.b)) {
			return "with_advisory_lock", locksteward.ConfidenceHigh
		}
		return unknownAdvisory, locksteward.ConfidenceMedium
	}
	sum := crc32.ChecksumIEEE([]byte(database))
	switch key := k.bigint; {
	case advisoryConstants[key] != "":
		return advisoryConstants[key], locksteward.ConfidenceHigh
	case key == railsSalt*int64(sum):
		return "rails", locksteward.ConfidenceHigh
	case key == sqlxSalt*int64(sum):
		return "sqlx", locksteward.ConfidenceHigh
	case key == migrateKey(database):
		return "golang-migrate", locksteward.ConfidenceHigh
	case key >= flywayMagic+math.MinInt32 && key <= flywayMagic+math.MaxInt32: // plus the hash of its table's name
		return "flyway", locksteward.ConfidenceHigh // flyway/flyway, PostgreSQLAdvisoryLockTemplate.java
	case key == authentikKey && strings.Contains(cmp.Or(database, user)+" "+user, "authentik"):
		return "authentik", locksteward.ConfidenceMedium
	}
	return unknownAdvisory, locksteward.ConfidenceMedium
}

// unknownAdvisory is the library of a key that no library is known to use.
const unknownAdvisory = "postgres-advisory"

// migrateKey is golang-migrate's key for its usual table in the schema public.
func migrateKey(database string) int64 {
	return migrateSum("public\x00schema_migrations\x00" + database)
}

func migrateSum(names string) int64 { return int64(crc32.ChecksumIEEE([]byte(names)) * migrateSalt) }
