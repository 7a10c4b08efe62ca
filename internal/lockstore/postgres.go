package lockstore

import (
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
	releaser: func(l source.Login, o ReleaserOptions) (source.Releaser, error) {
		return sqlsource.OpenReleaser(l, sqlsource.Options{Digest: o.Digest, Tables: o.Tables})
	},
}
