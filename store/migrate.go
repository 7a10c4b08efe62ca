package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The schema stands once for each database, in steps of the same numbers and
// names; a test compares what they come to.
//
//go:embed migrations/*/*.sql
var migrationFiles embed.FS

// migration is one step of the schema; versions are 1, 2, 3, ... without gaps.
type migration struct {
	version int
	name    string
	script  string
}

// migrate brings the schema up to what this program knows.
func (s *Store) migrate(ctx context.Context) error {
	steps, err := loadMigrations(migrationFiles, "migrations/"+s.on.name)
	if err != nil {
		return err
	}
	// Whether there is a database at all is told soon; a step may take its time.
	err = s.inRead(ctx, "open store", func(ctx context.Context, q querier) error {
		_, err := schemaVersion(ctx, q)
		return err
	})
	if err != nil {
		return err
	}
	s.schema = len(steps)
	return applyMigrations(ctx, s.write, steps)
}

// sameSchema fails if a newer program has changed the schema since this one opened
// the database: what this one would write may not be what the tables mean by now.
func (s *Store) sameSchema(ctx context.Context, q querier) error {
	current, err := schemaVersion(ctx, q)
	if err == nil && current > s.schema {
		err = fmt.Errorf("%w: %w", ErrNewerSchema, tooNew(current, s.schema))
	}
	return err
}

// loadMigrations reads NNNN_name.sql from a folder of files.
func loadMigrations(files fs.FS, folder string) ([]migration, error) {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	var steps []migration
	for _, e := range entries {
		number, _, _ := strings.Cut(e.Name(), "_")
		version, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("read migration %q: the name must begin with a number", e.Name())
		}
		script, err := fs.ReadFile(files, folder+"/"+e.Name())
		if err != nil {
			return nil, fmt.Errorf("read migration %q: %w", e.Name(), err)
		}
		steps = append(steps, migration{version: version, name: e.Name(), script: string(script)})
	}
	slices.SortFunc(steps, func(a, b migration) int { return a.version - b.version })
	for i, step := range steps {
		if step.version != i+1 {
			return nil, fmt.Errorf("read migrations: %q should have number %d", step.name, i+1)
		}
	}
	return steps, nil
}

// applyMigrations brings the schema up to the last step, each step in a
// transaction of its own together with its version number. A newer schema is left
// alone.
func applyMigrations(ctx context.Context, db *pool, steps []migration) error {
	current, err := schemaVersion(ctx, db)
	if err != nil {
		return err
	}
	if current > len(steps) {
		return tooNew(current, len(steps))
	}
	for _, step := range steps[current:] {
		if err := applyMigration(ctx, db, step, len(steps)); err != nil {
			return fmt.Errorf("apply migration %q: %w", step.name, err)
		}
	}
	return nil
}

func tooNew(current, known int) error {
	return fmt.Errorf("schema version %d is newer than this program knows (%d); run the newer locksteward, or restore the backup made before it ran",
		current, known)
}

// schemaVersion returns 0 for a database without a schema, and writes nothing.
func schemaVersion(ctx context.Context, q querier) (int, error) {
	var there int
	err := q.row(ctx, q.database().known).Scan(&there)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	var version sql.NullInt64
	if err := q.row(ctx, `SELECT MAX(version) FROM schema_version`).Scan(&version); err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return int(version.Int64), nil
}

func applyMigration(ctx context.Context, db *pool, step migration, known int) error {
	began, err := db.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer began.Rollback() //nolint:errcheck // after Commit it only says so
	if db.on.begin != "" {
		var id string
		if err := began.QueryRowContext(ctx, db.on.begin).Scan(&id); err != nil {
			return err
		}
	}
	t := &tx{tx: began, on: db.on}
	// Another process may have been quicker.
	current, err := schemaVersion(ctx, t)
	if err != nil || current >= step.version {
		if current > known {
			err = tooNew(current, known)
		}
		return err
	}
	_, err = t.exec(ctx, `CREATE TABLE IF NOT EXISTS schema_version (version `+db.on.number+` PRIMARY KEY, applied_at `+db.on.number+` NOT NULL)`)
	if err != nil {
		return err
	}
	if _, err := began.ExecContext(ctx, step.script, db.on.script...); err != nil {
		return err
	}
	_, err = t.exec(ctx, `INSERT INTO schema_version (version, applied_at) VALUES (?, ?)`, step.version, time.Now().UnixMicro())
	if err != nil {
		return err
	}
	return began.Commit()
}
