package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/locksteward/locksteward/scanner"
)

// settingFacts begins the names of the settings that hold what scanners know of
// their targets.
const settingFacts = "facts:"

// SaveFacts keeps what the scanner of a target knows beyond its locks, in place
// of what was kept before.
func (s *Store) SaveFacts(ctx context.Context, target, facts string) error {
	return s.inWrite(ctx, "save facts", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx,
			`INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
			settingFacts+target, facts)
		return err
	})
}

// LoadFacts returns what [Store.SaveFacts] kept last, "" if nothing.
func (s *Store) LoadFacts(ctx context.Context, target string) (string, error) {
	var facts string
	err := s.read.QueryRowContext(ctx, `SELECT value FROM settings WHERE name = ?`, settingFacts+target).Scan(&facts)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return facts, s.explain("load facts", err)
}

var _ scanner.FactStore = (*Store)(nil)
