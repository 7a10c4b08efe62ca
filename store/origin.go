package store

import (
	"context"
	"database/sql"
	"errors"
)

// settingOrigin identifies the database in which the store was last written.
const settingOrigin = "origin"

// Older is what is known of a store that was restored to an older state, or moved.
type Older struct {
	// Missing is how many entries its audit trail lost; 0 if that is not known.
	Missing int64
	// Elsewhere is set if the database is not the one in which the store was last written:
	// it was restored from a dump, or moved.
	Elsewhere bool
}

// Older reports whether the store is another than at the last call or, for the first call,
// than when it was last written. It returns false if nothing is known.
//
// With a file, the length of the audit trail is recorded in the lock file beside it. A
// server's database has no place beside it, but a dump contains the identity of the
// database that was dumped: the numbers of its server, of the database and of a table.
func (s *Store) Older(ctx context.Context) (Older, bool, error) {
	if s.on == onSQLite {
		missing := s.memory.missing.Swap(0)
		return Older{Missing: missing}, missing > 0, nil
	}
	var out Older
	now, written, err := s.origin(ctx)
	if err != nil {
		return out, false, err
	}
	if was := s.memory.origin.Swap(&now); written != "" && written != now || was != nil && *was != now {
		out.Elsewhere = true
	}
	if written != now {
		if err := s.inOwn(ctx, "record database", func(ctx context.Context, t *tx) error {
			return t.insert(ctx, "settings", "name, value", "ON CONFLICT (name) DO UPDATE SET value = excluded.value", [][]any{{settingOrigin, now}})
		}); err != nil {
			s.memory.origin.Store(nil)
			return out, out.Elsewhere, err
		}
	}
	// A database that was restored in place is shorter than what was written.
	wrote := s.memory.trail.Load()
	head, err := s.Head(ctx)
	if err != nil {
		return out, out.Elsewhere, err
	}
	if out.Missing = max(0, wrote-head.Seq); out.Missing > 0 {
		s.memory.trail.CompareAndSwap(wrote, head.Seq)
	}
	return out, out.Elsewhere || out.Missing > 0, nil
}

// origin returns the identity of this database, and of the one in which the store was last
// written.
func (s *Store) origin(ctx context.Context) (now, written string, err error) {
	err = s.inRead(ctx, "identify database", func(ctx context.Context, q querier) error {
		// Not every user may read the server's number; those of database and table
		// distinguish two databases of one server.
		allowed, server := false, ""
		if err := q.row(ctx, `SELECT has_function_privilege('pg_control_system()', 'EXECUTE')`).Scan(&allowed); err != nil {
			return err
		}
		if allowed {
			if err := q.row(ctx, `SELECT system_identifier::text FROM pg_control_system()`).Scan(&server); err != nil {
				return err
			}
		}
		err := q.row(ctx, `SELECT (SELECT oid::text FROM pg_database WHERE datname = current_database()) || '/' || 'entries'::regclass::oid::text`).Scan(&now)
		if err != nil {
			return err
		}
		now = server + "/" + now
		err = q.row(ctx, `SELECT value FROM settings WHERE name = ?`, settingOrigin).Scan(&written)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return now, written, err
}
