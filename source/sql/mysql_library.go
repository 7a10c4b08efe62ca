package sqlsource

import (
	"hash/crc32"
	"regexp"
	"strconv"
	"strings"

	"github.com/locksteward/locksteward"
)

// unknownUserLock is the library of a user lock whose name no library is known to use.
const unknownUserLock = "get-lock"

// prismaLock is Prisma's name (prisma/prisma-engines, sql-schema-connector, flavour/mysql.rs).
const prismaLock = "prisma_migrate"

// flywayLock is Flyway's name (flyway/flyway, MySQLNamedLockTemplate.java): with the hash of its table.
var flywayLock = regexp.MustCompile(`^(?i)Flyway--?\d+$`)

// userLocksOf are the names that libraries compute from the name of the database; the sources are those of
// the keys of advisory locks, and for MySQL:
// rails/rails, abstract_mysql_adapter.rb; golang-migrate/migrate, database/mysql/mysql.go; launchbadge/sqlx, sqlx-mysql/src/migrate.rs.
func userLocksOf(database string) map[string]string {
	sum := int64(crc32.ChecksumIEEE([]byte(database)))
	migrate := crc32.ChecksumIEEE([]byte(database+":schema_migrations")) * migrateSalt
	return map[string]string{
		prismaLock:                              "prisma",
		strconv.FormatInt(railsSalt*sum, 10):    "rails",
		strconv.FormatUint(uint64(migrate), 10): "golang-migrate",
		strconv.FormatInt(sqlxSalt*sum, 16):     "sqlx",
	}
}

// userLockNames are the names that libraries use for a database.
func userLockNames(database string) []string {
	var out []string
	for name := range userLocksOf(database) {
		out = append(out, name)
	}
	return out
}

// userLockLibrary returns the library that takes user locks of a name, as far as the name says it.
func userLockLibrary(name, database string) (string, locksteward.Confidence) {
	switch library := userLocksOf(database)[strings.ToLower(name)]; {
	case library != "":
		return library, locksteward.ConfidenceHigh
	case flywayLock.MatchString(name):
		return "flyway", locksteward.ConfidenceHigh
	}
	return unknownUserLock, locksteward.ConfidenceMedium
}
