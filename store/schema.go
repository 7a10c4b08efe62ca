package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"time"
)

// schemaVersion is the version of the schema in the folder schema. A database of any other
// version is refused.
const schemaVersion = 1

// Each database has the schema in its own SQL; a test compares the two.
//
//go:embed schema/*.sql
var schemaFiles embed.FS

// prepareSchema creates the schema in an empty database and refuses one of another version.
func (s *Store) prepareSchema(ctx context.Context) error {
	// The read has the timeout of a call; creating the schema may take longer.
	var version int
	err := s.inRead(ctx, "open store", func(ctx context.Context, q querier) (err error) {
		version, err = readSchemaVersion(ctx, q)
		return err
	})
	if err != nil || version != 0 {
		return requireVersion(version, err)
	}
	script, err := schemaFiles.ReadFile("schema/" + s.on.name + ".sql")
	if err != nil {
		return fmt.Errorf("read schema: %w", err)
	}
	if err := createSchema(ctx, s.write, string(script)); err != nil {
		return fmt.Errorf("create schema: %w", err)
	}
	return nil
}

// checkSchema fails if the schema is not of the version of this program.
func checkSchema(ctx context.Context, q querier) error {
	version, err := readSchemaVersion(ctx, q)
	return requireVersion(version, err)
}

// requireVersion returns err, or an [ErrOtherSchema] if version is not the one of this program.
func requireVersion(version int, err error) error {
	if err != nil || version == schemaVersion {
		return err
	}
	return fmt.Errorf("%w: the database has version %d and this program needs %d; run the locksteward that wrote it, or restore a backup that this one can read",
		ErrOtherSchema, version, schemaVersion)
}

// readSchemaVersion returns 0 for a database without a schema.
func readSchemaVersion(ctx context.Context, q querier) (int, error) {
	var exists int
	err := q.row(ctx, q.database().hasSchema).Scan(&exists)
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

// createSchema runs script in a transaction, unless another process created the schema
// meanwhile.
func createSchema(ctx context.Context, db *pool, script string) error {
	began, err := db.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer began.Rollback() //nolint:errcheck // fails after Commit, which is intended
	if db.on.begin != "" {
		var id string
		if err := began.QueryRowContext(ctx, db.on.begin).Scan(&id); err != nil {
			return err
		}
	}
	t := &tx{tx: began, on: db.on}
	if version, err := readSchemaVersion(ctx, t); err != nil || version != 0 {
		return requireVersion(version, err)
	}
	if _, err := began.ExecContext(ctx, script, db.on.script...); err != nil {
		return err
	}
	_, err = t.exec(ctx, `CREATE TABLE schema_version (version `+db.on.number+` PRIMARY KEY, applied_at `+db.on.number+` NOT NULL)`)
	if err != nil {
		return err
	}
	_, err = t.exec(ctx, `INSERT INTO schema_version (version, applied_at) VALUES (?, ?)`, schemaVersion, time.Now().UnixMicro())
	if err != nil {
		return err
	}
	return began.Commit()
}
