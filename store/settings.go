package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/locksteward/locksteward"
)

// settingDigestKey names the installation's key for token digests.
const settingDigestKey = "digest_key"

// DigestKey returns the installation's key for token digests. The first call on
// a new store makes it; from then on it stays the same, since every digest in
// the store depends on it.
func (s *Store) DigestKey(ctx context.Context) (locksteward.DigestKey, error) {
	var written string
	err := s.inWrite(ctx, "read digest key", func(ctx context.Context, t *tx) error {
		err := t.insert(ctx, "settings", "name, value", "ON CONFLICT (name) DO NOTHING",
			[][]any{{settingDigestKey, locksteward.NewDigestKey().Reveal()}})
		if err != nil {
			return err
		}
		return t.row(ctx, `SELECT value FROM settings WHERE name = ?`, settingDigestKey).Scan(&written)
	})
	if err != nil {
		return locksteward.DigestKey{}, err
	}
	key, err := locksteward.ParseDigestKey(written)
	if err != nil {
		return locksteward.DigestKey{}, fmt.Errorf("read digest key in %q: %w; restore the backup: with another key no stored digest can be compared", s.name, err)
	}
	return key, nil
}

// settingOwn begins the names of the settings of other packages.
const settingOwn = "own:"

// SaveSetting keeps a text under a name, in place of what was kept before, with
// the entries that tell of it, in one transaction.
func (s *Store) SaveSetting(ctx context.Context, name, value string, entries ...locksteward.Entry) error {
	return s.inWrite(ctx, "save setting", func(ctx context.Context, t *tx) error {
		err := t.insert(ctx, "settings", "name, value", "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
			[][]any{{settingOwn + name, text(value)}})
		if err != nil {
			return err
		}
		return s.written(ctx, t, Written{Entries: entries})
	})
}

// SwapSetting is [Store.SaveSetting] if what is kept is was still, "" for nothing. Else
// it writes nothing and returns false: somebody else has changed it.
func (s *Store) SwapSetting(ctx context.Context, name, was, value string, entries ...locksteward.Entry) (swapped bool, err error) {
	err = s.inWrite(ctx, "save setting", func(ctx context.Context, t *tx) error {
		swapped = false
		statement := `UPDATE settings SET value = ? WHERE name = ? AND value = ?`
		args := []any{text(value), settingOwn + name, text(was)}
		if was == "" {
			statement = `INSERT INTO settings (value, name) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE settings.value = ''`
			args = args[:2]
		}
		n, err := t.exec(ctx, statement, args...)
		if err != nil || n == 0 {
			return err
		}
		swapped = true
		return s.written(ctx, t, Written{Entries: entries})
	})
	return swapped && err == nil, err
}

// LoadSetting returns what [Store.SaveSetting] or [Store.SwapSetting] kept last, "" if nothing.
func (s *Store) LoadSetting(ctx context.Context, name string) (string, error) {
	return s.setting(ctx, "load setting", settingOwn+name)
}

func (s *Store) setting(ctx context.Context, op, name string) (string, error) {
	var value string
	err := s.inRead(ctx, op, func(ctx context.Context, q querier) error {
		err := q.row(ctx, `SELECT value FROM settings WHERE name = ?`, name).Scan(&value)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return value, err
}
