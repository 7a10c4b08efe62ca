package store

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// OpenReader opens a store to look at it, also beside an agent that uses it:
// nothing is made, changed or brought up to date. Methods that write fail. The
// caller closes it.
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
		s.patience = patience
		err = s.openPostgres(where.url, cfg.PasswordFile)
	}
	if err != nil {
		return nil, err
	}
	if s.write != nil {
		// Of a server both pools are made: the one that writes is never used.
		if err := s.write.db.Close(); err != nil {
			return nil, err
		}
	}
	s.write = s.read
	return s, s.known(ctx)
}

// known refuses a schema that is not the one of this program.
func (s *Store) known(ctx context.Context) error {
	steps, err := loadMigrations(migrationFiles, "migrations/"+s.on.name)
	if err != nil {
		return err
	}
	var version int
	err = s.inRead(ctx, "open store", func(ctx context.Context, q querier) error {
		var err error
		version, err = schemaVersion(ctx, q)
		return err
	})
	switch {
	case err != nil:
		return err
	case version == 0:
		return fmt.Errorf("open store %q: there is no store: no agent wrote here yet", s.name)
	case version > len(steps):
		return tooNew(version, len(steps))
	case version < len(steps):
		return fmt.Errorf("open store %q: schema version %d is older than what this program reads (%d); start the agent of this version once, or use the locksteward that wrote it",
			s.name, version, len(steps))
	}
	return nil
}
