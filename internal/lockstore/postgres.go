package lockstore

import (
	"context"

	"github.com/locksteward/locksteward/source"
	sqlsource "github.com/locksteward/locksteward/source/sql"
)

// Postgres is the kind of PostgreSQL: lock tables and advisory locks of one database.
const Postgres Kind = "postgres"

var postgres = scheme{
	kind: Postgres, port: "5432", example: "postgres://host:5432/database", encrypted: "postgres://host:5432/database?sslmode=verify-full",
	needsName: "the database", parameters: []string{"sslmode"},
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
