package sqlsource

import (
	"context"
	"database/sql"
	"testing"

	"github.com/locksteward/locksteward/source"
)

// KeepConnections has the releaser of a DSN keep its connections between calls, so that races are fast.
func (r *Releaser) KeepConnections(t testing.TB, dsn string) {
	db, _, err := r.dialect.open(source.Login{URL: dsn}, r.opts.Timeout, true)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(maxConnections)
	db.SetMaxIdleConns(maxConnections)
	t.Cleanup(func() { _ = db.Close() })
	r.connect = func(ctx context.Context) (*sql.Conn, func(), error) {
		conn, err := db.Conn(ctx)
		return conn, func() { _ = conn.Close() }, err
	}
}

// AdvisoryLibrary is advisoryLibrary of a bigint.
func AdvisoryLibrary(key int64, database, user string) string {
	library, _ := advisoryLibrary(advisoryKey{bigint: key}, database, user, "")
	return library
}

// MigrateKey is golang-migrate's key.
func MigrateKey(database, prefix string) int64 { return migrateSum(prefix + database) }

// BelieveLoopback has a source believe that an address of this machine alone is that of a holder.
func (s *Source) BelieveLoopback() { s.loopback = true }

// Lose has a releaser believe that the answer to the commit of a request's transaction was lost.
func (r *Releaser) Lose(request, transaction string) {
	rec, _ := r.record(request)
	rec.transaction, rec.sent = transaction, true
}

// UserLockLibrary is userLockLibrary of a name.
func UserLockLibrary(name, database string) string {
	library, _ := userLockLibrary(name, database)
	return library
}

// RequestName is the name of the user lock of a request's connection.
func RequestName(id string) string { return requestName(id) }
