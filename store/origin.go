package store

import (
	"context"
	"database/sql"
	"errors"
)

// settingOrigin names the database in which the store was written last.
const settingOrigin = "origin"

// Older is what is known of a store that was put back to an older state, or moved.
type Older struct {
	// Missing is by how many entries its audit trail is shorter than it was; 0 where that
	// is not known.
	Missing int64
	// Elsewhere says that the database is another one than that in which it was written:
	// it was restored from a dump, or moved with all that was in it.
	Elsewhere bool
}

// Older says whether the store is another than it was, since the last time that this was
// asked or, the first time, since it was written last; false if it is not, or nothing is
// known of that.
//
// A file tells by a mark beside it: how long the trail was. A server's database has no
// place beside it, but dumps have in them in which database they were taken: each has a
// number of its own in its server, as each table has, and each server among all servers.
func (s *Store) Older(ctx context.Context) (Older, bool, error) {
	if s.on == onSQLite {
		missing := s.memory.behind.Swap(0)
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
		if err := s.inOwn(ctx, "note the database", func(ctx context.Context, t *tx) error {
			return t.insert(ctx, "settings", "name, value", "ON CONFLICT (name) DO UPDATE SET value = excluded.value", [][]any{{settingOrigin, now}})
		}); err != nil {
			s.memory.origin.Store(nil)
			return out, out.Elsewhere, err
		}
	}
	// Also one that was put back in its own place is shorter than what we wrote.
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

// origin returns which database this is, and in which the store was written last.
func (s *Store) origin(ctx context.Context) (now, written string, err error) {
	err = s.inRead(ctx, "look which database it is", func(ctx context.Context, q querier) error {
		// Not everybody may ask for the server's number; that of the database and of the
		// table tell two of one server apart.
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
