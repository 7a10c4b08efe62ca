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
	examine: func(ctx context.Context, login source.Login, release *source.Login, o ExamineOptions) []source.Check {
		opts := sqlsource.Options{Tables: o.Tables}
		s, err := sqlsource.Open(login, opts)
		if err != nil {
			return []source.Check{checkOf("database", false, err.Error(), "correct the settings")}
		}
		defer func() { _ = s.Close() }() // nothing is lost by a connection that does not close well
		var out []source.Check
		for _, c := range s.Check(ctx) {
			out = append(out, checkOf(c.Name, c.OK, c.Detail, ""))
		}
		if release == nil {
			return out
		}
		r, err := sqlsource.OpenReleaser(*release, opts)
		if err != nil {
			return append(out, checkOf("releaser", false, err.Error(), "correct the settings"))
		}
		defer func() { _ = r.Close() }()
		for _, c := range r.Check(ctx) {
			out = append(out, checkOf("releaser: "+c.Name, c.OK, c.Detail, ""))
		}
		return out
	},
	releaser: func(l source.Login, o ReleaserOptions) (source.Releaser, error) {
		return sqlsource.OpenReleaser(l, sqlsource.Options{Digest: o.Digest, Tables: o.Tables})
	},
}
