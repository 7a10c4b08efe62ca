package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// AppendEntries appends entries to the audit trail in one transaction. Seq,
// PrevHash and Hash are set by the store; At is kept to the microsecond.
func (s *Store) AppendEntries(ctx context.Context, entries ...locksteward.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	return s.inWrite(ctx, "append audit entry", func(tx *sql.Tx) error {
		return appendEntries(ctx, tx, entries)
	})
}

// EntryQuery selects audit entries; zero fields select all.
type EntryQuery struct {
	Subject string // request id, or what else an action was about
	Target  string
	Key     string // exact bytes of a lock's key
	Actor   string
	Before  int64 // only entries with a smaller Seq, for the next page
	Limit   int   // 0: 100
}

// defaultLimit is how many rows a list returns when nobody said.
const defaultLimit = 100

// Entries returns audit entries, newest first.
func (s *Store) Entries(ctx context.Context, q EntryQuery) ([]locksteward.Entry, error) {
	var where []string
	var args []any
	add := func(clause string, arg any) {
		where = append(where, clause)
		args = append(args, arg)
	}
	if q.Subject != "" {
		add("subject = ?", q.Subject)
	}
	if q.Target != "" {
		add("target = ?", q.Target)
	}
	if q.Key != "" {
		add("lock_key = ?", []byte(q.Key))
	}
	if q.Actor != "" {
		add("actor = ?", q.Actor)
	}
	if q.Before > 0 {
		add("seq < ?", q.Before)
	}
	query := "SELECT " + entryColumns + " FROM entries"
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	limit := q.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	rows, err := s.read.QueryContext(ctx, query+" ORDER BY seq DESC LIMIT ?", append(args, limit)...)
	if err != nil {
		return nil, s.explain("list audit entries", err)
	}
	defer rows.Close()
	var out []locksteward.Entry
	for rows.Next() {
		e, err := scanEntry(rows)
		if err != nil {
			return nil, s.explain("list audit entries", err)
		}
		out = append(out, e)
	}
	return out, s.explain("list audit entries", rows.Err())
}

// HashEntry returns the hash of e: SHA-256 in hex over its other fields and
// PrevHash, each preceded by its length in bytes.
func HashEntry(e locksteward.Entry) string {
	b := []byte("locksteward-entry-1 ")
	for _, part := range []string{
		strconv.FormatInt(e.Seq, 10), strconv.FormatInt(micros(e.At), 10),
		e.Actor, e.Action, e.Target, e.Key, e.Subject, e.Reason, e.Outcome, string(e.Detail), e.PrevHash,
	} {
		b = strconv.AppendInt(b, int64(len(part)), 10)
		b = append(b, ':')
		b = append(b, part...)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

const entryColumns = "seq, at, actor, action, target, lock_key, subject, reason, outcome, detail, prev_hash, hash"

// appendEntries continues the chain inside a write transaction, which is what
// makes an entry and the change it tells of one.
func appendEntries(ctx context.Context, tx *sql.Tx, entries []locksteward.Entry) error {
	var seq int64
	var hash string
	if err := tx.QueryRowContext(ctx, `SELECT seq, hash FROM entries_head WHERE id = 1`).Scan(&seq, &hash); err != nil {
		return fmt.Errorf("read head of audit chain: %w", err)
	}
	for _, e := range entries {
		seq++
		e.Seq, e.PrevHash = seq, hash
		e.At = e.At.Truncate(time.Microsecond)
		e.Hash = HashEntry(e)
		hash = e.Hash
		_, err := tx.ExecContext(ctx,
			`INSERT INTO entries (`+entryColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			e.Seq, micros(e.At), e.Actor, e.Action, e.Target, bytesOf(e.Key), e.Subject, e.Reason, e.Outcome,
			bytesOf(string(e.Detail)), e.PrevHash, e.Hash)
		if err != nil {
			return fmt.Errorf("append audit entry: %w", err)
		}
	}
	_, err := tx.ExecContext(ctx, `UPDATE entries_head SET seq = ?, hash = ? WHERE id = 1`, seq, hash)
	return err
}

// rowScanner is what sql.Row and sql.Rows have in common.
type rowScanner interface{ Scan(dest ...any) error }

func scanEntry(row rowScanner) (locksteward.Entry, error) {
	var e locksteward.Entry
	var at int64
	var key, detail []byte
	err := row.Scan(&e.Seq, &at, &e.Actor, &e.Action, &e.Target, &key, &e.Subject, &e.Reason, &e.Outcome,
		&detail, &e.PrevHash, &e.Hash)
	e.At, e.Key = fromMicros(at), string(key)
	if len(detail) > 0 {
		e.Detail = json.RawMessage(detail)
	}
	return e, err
}
