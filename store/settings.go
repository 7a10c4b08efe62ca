package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/locksteward/locksteward"
)

// settingDigestKey is the name of the installation's key for token digests.
const settingDigestKey = "digest_key"

// DigestKey returns the installation's key for token digests. The first call on a new store
// creates it. It never changes, since every digest in the store depends on it.
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

// settingPrefix begins the names of the settings of other packages.
const settingPrefix = "own:"

// SaveSetting writes a text under a name, replacing the previous one, with its audit
// entries, in one transaction.
func (s *Store) SaveSetting(ctx context.Context, name, value string, entries ...locksteward.Entry) error {
	return s.inWrite(ctx, "save setting", func(ctx context.Context, t *tx) error {
		err := t.insert(ctx, "settings", "name, value", "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
			[][]any{{settingPrefix + name, text(value)}})
		if err != nil {
			return err
		}
		return s.written(ctx, t, Written{Entries: entries})
	})
}

// SwapSetting is [Store.SaveSetting] if the setting still has the value old, "" for none.
// Else it writes nothing and returns false.
func (s *Store) SwapSetting(ctx context.Context, name, old, value string, entries ...locksteward.Entry) (swapped bool, err error) {
	err = s.inWrite(ctx, "save setting", func(ctx context.Context, t *tx) error {
		swapped = false
		statement := `UPDATE settings SET value = ? WHERE name = ? AND value = ?`
		args := []any{text(value), settingPrefix + name, text(old)}
		if old == "" {
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

// LoadSetting returns the value of [Store.SaveSetting] or [Store.SwapSetting], "" if there
// is none.
func (s *Store) LoadSetting(ctx context.Context, name string) (string, error) {
	return s.setting(ctx, "load setting", settingPrefix+name)
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
