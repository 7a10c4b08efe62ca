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

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one step of the schema; versions are 1, 2, 3, ... without gaps.
type migration struct {
	version int
	name    string
	script  string
}

// migrate brings the schema up to what this program knows.
func (s *Store) migrate(ctx context.Context) error {
	steps, err := loadMigrations(migrationFiles)
	if err != nil {
		return err
	}
	return applyMigrations(ctx, s.write, steps)
}

// loadMigrations reads NNNN_name.sql from the folder migrations of files.
func loadMigrations(files fs.FS) ([]migration, error) {
	entries, err := fs.ReadDir(files, "migrations")
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
		script, err := fs.ReadFile(files, "migrations/"+e.Name())
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

// applyMigrations brings the schema up to the last step, each step in a transaction of
// its own together with its version number. A newer schema is left alone.
func applyMigrations(ctx context.Context, db *sql.DB, steps []migration) error {
	current, err := schemaVersion(ctx, db)
	if err != nil {
		return err
	}
	if current > len(steps) {
		return fmt.Errorf("schema version %d is newer than this program knows (%d); run the newer locksteward, or restore the backup made before it ran",
			current, len(steps))
	}
	for _, step := range steps[current:] {
		if err := applyMigration(ctx, db, step); err != nil {
			return fmt.Errorf("apply migration %q: %w", step.name, err)
		}
	}
	return nil
}

// schemaVersion returns 0 for a file without a schema, and writes nothing.
func schemaVersion(ctx context.Context, db *sql.DB) (int, error) {
	var name string
	err := db.QueryRowContext(ctx, `SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'`).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	var version sql.NullInt64
	if err := db.QueryRowContext(ctx, `SELECT MAX(version) FROM schema_version`).Scan(&version); err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return int(version.Int64), nil
}

func applyMigration(ctx context.Context, db *sql.DB, step migration) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it only says so
	_, err = tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL)`)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, step.script); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO schema_version (version, applied_at) VALUES (?, ?)`, step.version, time.Now().UnixMicro())
	if err != nil {
		return err
	}
	return tx.Commit()
}
