package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/locksteward/locksteward"
)

// settingDigestKey names the installation's key for token digests.
const settingDigestKey = "digest_key"

// DigestKey returns the installation's key for token digests. The first call on
// a new store makes it; from then on it stays the same, since every digest in
// the store depends on it.
func (s *Store) DigestKey(ctx context.Context) (locksteward.DigestKey, error) {
	var text string
	err := s.inWrite(ctx, "read digest key", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING`,
			settingDigestKey, locksteward.NewDigestKey().Reveal())
		if err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT value FROM settings WHERE name = ?`, settingDigestKey).Scan(&text)
	})
	if err != nil {
		return locksteward.DigestKey{}, err
	}
	key, err := locksteward.ParseDigestKey(text)
	if err != nil {
		return locksteward.DigestKey{}, fmt.Errorf("read digest key in %q: %w; restore the backup: with another key no stored digest can be compared", s.path, err)
	}
	return key, nil
}
