package lockstore

import (
	"context"

	"github.com/locksteward/locksteward/source"
	sqlsource "github.com/locksteward/locksteward/source/sql"
)

// Kinds of databases: Postgres is PostgreSQL, with its lock tables and advisory locks, MySQL is MySQL and
// MariaDB, with lock tables and GET_LOCK. A target is one database.
const (
	Postgres Kind = "postgres"
	MySQL    Kind = "mysql"
)

// IsSQL reports whether stores of a kind have lock tables.
func (k Kind) IsSQL() bool { return k == Postgres || k == MySQL }

var postgres = func() scheme {
	s := database
	s.kind, s.port, s.parameters = Postgres, "5432", []string{"sslmode"}
	s.example, s.encrypted = "postgres://host:5432/database", "postgres://host:5432/database?sslmode=verify-full"
	return s
}()

var mysql = func() scheme {
	s := database
	s.kind, s.port, s.parameters = MySQL, "3306", []string{"tls", "socket"}
	s.example, s.encrypted = "mysql://host:3306/database", "mysql://host:3306/database?tls=true"
	return s
}()

// database is what the schemes of all databases have in common.
var database = scheme{
	needsName: "the database",
	open: func(l source.Login, o Options) (reader, func() error, error) {
		s, err := sqlsource.Open(l, sqlsource.Options{Digest: o.Digest, Tables: o.Tables})
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	},
	rights: func(ctx context.Context, l source.Login, o RightsOptions) (string, error) {
		return sqlsource.Rights(ctx, l, sqlsource.Options{Tables: o.Tables})
	},
	check: func(ctx context.Context, l source.Login, o ExamineOptions) []source.Check {
		s, err := sqlsource.Open(l, sqlsource.Options{Tables: o.Tables})
		if err != nil {
			return badSettings("database", err)
		}
		defer func() { _ = s.Close() }() // nothing is lost by a connection that does not close well
		return s.Check(ctx)
	},
	checkReleaser: func(ctx context.Context, l source.Login, o ExamineOptions) []source.Check {
		r, err := sqlsource.OpenReleaser(l, sqlsource.Options{Tables: o.Tables})
		if err != nil {
			return badSettings("database", err)
		}
		return r.Check(ctx)
	},
	releaser: func(l source.Login, o ReleaserOptions) (source.Releaser, error) {
		return sqlsource.OpenReleaser(l, sqlsource.Options{Digest: o.Digest, Tables: o.Tables})
	},
}
