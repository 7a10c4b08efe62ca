package store

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// OpenReader opens a store for reading, also while an agent uses it. It creates nothing,
// and methods that write fail. It also opens a file that needs repair. The caller closes
// the store.
func OpenReader(ctx context.Context, cfg Config) (_ *Store, err error) {
	where, err := parseDSN(cfg.dsn())
	if err != nil {
		return nil, fmt.Errorf("store.dsn: %w", err)
	}
	s := newStore()
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if where.path != "" {
		if _, err := os.Stat(where.path); err != nil {
			return nil, fmt.Errorf("open store: %w; is this the working directory of the agent?", err)
		}
		err = s.readSQLite(where.path, "&_pragma=query_only(1)")
	} else {
		s.timeout = callTimeout
		err = s.openPostgres(where.url, cfg.PasswordFile)
	}
	if err != nil {
		return nil, err
	}
	if s.write != nil {
		// With a server, both pools were opened.
		if err := s.write.db.Close(); err != nil {
			return nil, err
		}
	}
	s.write = s.read
	return s, s.requireSchema(ctx)
}

// requireSchema fails if the database has no schema, or one of another version.
func (s *Store) requireSchema(ctx context.Context) error {
	return s.inRead(ctx, "open store", func(ctx context.Context, q querier) error {
		version, err := readSchemaVersion(ctx, q)
		if err == nil && version == 0 {
			return fmt.Errorf("open store %q: it is empty: no agent has used it yet", s.name)
		}
		return requireVersion(version, err)
	})
}
