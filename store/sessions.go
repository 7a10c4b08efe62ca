package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// Session is the session of a browser, as package internal/signin creates it.
type Session struct {
	// Digest is the SHA-256, in hex, of the ID, which only the browser has.
	Digest string
	User   string
	Source string
	// Stamp identifies the password or token that the session began with.
	Stamp string
	// Roles and Teams are those of an OIDC provider.
	Roles, Teams           []string
	Created, Seen, Expires time.Time
}

// givenRow is the stored form of roles and teams.
type givenRow struct {
	Roles []string `json:"roles,omitempty"`
	Teams []string `json:"teams,omitempty"`
}

// SaveSession writes a new session with its audit entries, in one transaction.
func (s *Store) SaveSession(ctx context.Context, n Session, entries ...locksteward.Entry) error {
	given, err := json.Marshal(givenRow{n.Roles, n.Teams})
	if err != nil {
		return fmt.Errorf("encode session of %q: %w", n.User, err)
	}
	return s.inWrite(ctx, "save session", func(ctx context.Context, t *tx) error {
		err := t.insert(ctx, "sessions", "digest, user_name, source, stamp, given, created_at, seen_at, expires_at", "", [][]any{{
			n.Digest, text(n.User), n.Source, n.Stamp, text(string(given)), micros(n.Created), micros(n.Seen), micros(n.Expires),
		}})
		if err != nil {
			return err
		}
		return s.written(ctx, t, Written{Entries: entries})
	})
}

// LoadSession returns a session by its digest, also one that expired. An unknown digest is
// locksteward.ErrNotFound.
func (s *Store) LoadSession(ctx context.Context, digest string) (Session, error) {
	out := Session{Digest: digest}
	err := s.inRead(ctx, "load session", func(ctx context.Context, q querier) error {
		var given string
		var created, seen, expires int64
		err := q.row(ctx, `SELECT user_name, source, stamp, given, created_at, seen_at, expires_at FROM sessions WHERE digest = ?`, digest).
			Scan(&out.User, &out.Source, &out.Stamp, &given, &created, &seen, &expires)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w: there is no such session", locksteward.ErrNotFound)
		}
		if err != nil {
			return err
		}
		var row givenRow
		if err := json.Unmarshal([]byte(given), &row); err != nil {
			return fmt.Errorf("decode session of %q: %w", out.User, err)
		}
		out.Roles, out.Teams = row.Roles, row.Teams
		out.Created, out.Seen, out.Expires = fromMicros(created), fromMicros(seen), fromMicros(expires)
		return nil
	})
	if err != nil {
		return Session{}, err
	}
	return out, nil
}

// TouchSession records when a session was last seen; an earlier time changes nothing. An
// unknown session is no error.
func (s *Store) TouchSession(ctx context.Context, digest string, seen time.Time) error {
	return s.inOwn(ctx, "touch session", func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, `UPDATE sessions SET seen_at = ? WHERE digest = ? AND seen_at < ?`, micros(seen), digest, micros(seen))
		return err
	})
}

// EndSession deletes a session and writes its audit entries, in one transaction. For an
// unknown session it writes nothing and returns nil.
func (s *Store) EndSession(ctx context.Context, digest string, entries ...locksteward.Entry) error {
	write := s.inOwn
	if len(entries) > 0 {
		write = s.inWrite
	}
	return write(ctx, "end session", func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, `DELETE FROM sessions WHERE digest = ?`, digest)
		if err != nil || n == 0 {
			return err
		}
		return s.written(ctx, t, Written{Entries: entries})
	})
}

// PruneSessions deletes sessions that expired before now or were last seen before idle, and
// returns their number.
func (s *Store) PruneSessions(ctx context.Context, now, idle time.Time) (int64, error) {
	return s.prune(ctx, "prune sessions",
		`DELETE FROM sessions WHERE digest IN (SELECT digest FROM sessions WHERE expires_at < ? OR seen_at < ? LIMIT ?)`, micros(now), micros(idle))
}
