package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// Change is what is written with a change of state in its transaction: audit entries and
// messages about it.
type Change struct {
	Entries  []locksteward.Entry
	Messages []Message
}

// Append writes audit entries and messages about an event that changes nothing else in the
// store, in one transaction. The store sets Seq, PrevHash and Hash of entries, truncates At
// to the microsecond, and replaces bytes that are not UTF-8.
func (s *Store) Append(ctx context.Context, c Change) error {
	if len(c.Entries) == 0 && len(c.Messages) == 0 {
		return nil
	}
	return s.inWrite(ctx, "append audit entry", func(ctx context.Context, t *tx) error {
		return s.written(ctx, t, Written{Entries: c.Entries}, c.Messages...)
	})
}

// AppendEntries is [Store.Append] without messages.
func (s *Store) AppendEntries(ctx context.Context, entries ...locksteward.Entry) error {
	return s.Append(ctx, Change{Entries: entries})
}

// EntryQuery selects audit entries; zero fields select all.
type EntryQuery struct {
	Subject string // ID of a request, or another subject of an action
	Target  string
	Key     string // exact bytes of a lock's key
	Actor   string
	Action  string
	// Search is a substring of actor, action, key, reason or subject. Case is ignored for
	// ASCII letters, except in keys.
	Search       string
	Since, Until time.Time // Until is not included
	Before       int64     // only entries with a smaller Seq, for the next page
	After        int64     // only entries with a larger Seq
	Ascending    bool      // the oldest first
	Limit        int       // 0: 100
}

// defaultLimit is how many rows a list returns if the query sets no limit.
const defaultLimit = 100

// escapeLike escapes a text for LIKE.
var escapeLike = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")

// lowerASCII converts ASCII letters to lower case, as backend.lower does.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// Entries returns audit entries, newest first unless q.Ascending is set.
func (s *Store) Entries(ctx context.Context, q EntryQuery) ([]locksteward.Entry, error) {
	var f filter
	if q.Subject != "" {
		f.add("subject = ?", q.Subject)
	}
	if q.Target != "" {
		f.add("target = ?", q.Target)
	}
	if q.Key != "" {
		f.add("lock_key = ?", []byte(q.Key))
	}
	if q.Actor != "" {
		f.add("actor = ?", q.Actor)
	}
	if q.Action != "" {
		f.add("action = ?", q.Action)
	}
	if q.Search != "" {
		like := "%" + escapeLike.Replace(lowerASCII(text(q.Search))) + "%"
		var places []string
		for _, column := range []string{"actor", "action", "reason", "subject"} {
			places = append(places, fmt.Sprintf(s.on.lower, column)+` LIKE ? ESCAPE '!'`)
		}
		f.add("("+strings.Join(places, " OR ")+" OR "+s.on.within+")", like, like, like, like, []byte(q.Search))
	}
	if !q.Since.IsZero() {
		f.add("at >= ?", micros(q.Since))
	}
	if !q.Until.IsZero() {
		f.add("at < ?", micros(q.Until))
	}
	if q.Before > 0 {
		f.add("seq < ?", q.Before)
	}
	if q.After > 0 {
		f.add("seq > ?", q.After)
	}
	order := " ORDER BY seq DESC LIMIT ?"
	if q.Ascending {
		order = " ORDER BY seq LIMIT ?"
	}
	limit := q.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	var out []locksteward.Entry
	err := s.inRead(ctx, "list audit entries", func(ctx context.Context, r querier) error {
		rows, err := r.query(ctx, "SELECT "+entryColumns+" FROM entries"+f.where()+order, append(f.args, limit)...)
		return each(rows, err, func(row rowScanner) error {
			e, err := scanEntry(row)
			out = append(out, e)
			return err
		})
	})
	return out, err
}

// filter is the condition of a query.
type filter struct {
	clauses []string
	args    []any
}

func (f *filter) add(clause string, args ...any) {
	f.clauses = append(f.clauses, clause)
	f.args = append(f.args, args...)
}

func (f *filter) where() string {
	if len(f.clauses) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(f.clauses, " AND ")
}

const entryColumns = "seq, at, actor, action, target, lock_key, subject, reason, outcome, detail, prev_hash, hash"

// written writes audit entries and the messages about them in the transaction of the change
// that they report.
func (s *Store) written(ctx context.Context, t *tx, w Written, messages ...Message) error {
	if err := appendEntries(ctx, t, w.Entries); err != nil {
		return err
	}
	if compose := s.compose.Load(); compose != nil && len(w.Entries) > 0 {
		messages = append(messages, (*compose)(w)...)
	}
	return enqueue(ctx, t, messages)
}

// appendEntries continues the chain.
func appendEntries(ctx context.Context, t *tx, entries []locksteward.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	head, _, err := ends(ctx, t)
	if err != nil {
		return fmt.Errorf("read head of audit chain: %w", err)
	}
	var rows [][]any
	for _, e := range entries {
		e.Seq, e.PrevHash = head.Seq+1, head.Hash
		e.At = e.At.Truncate(time.Microsecond)
		for _, f := range []*string{&e.Actor, &e.Action, &e.Target, &e.Subject, &e.Reason, &e.Outcome} {
			*f = text(*f)
		}
		e.Hash = HashEntry(e)
		head = Checkpoint{Seq: e.Seq, Hash: e.Hash}
		rows = append(rows, []any{
			e.Seq, micros(e.At), e.Actor, e.Action, e.Target, bytesOf(e.Key), e.Subject, e.Reason, e.Outcome,
			bytesOf(string(e.Detail)), e.PrevHash, e.Hash,
		})
	}
	if err := t.insert(ctx, "entries", entryColumns, "", rows); err != nil {
		return fmt.Errorf("append audit entry: %w", err)
	}
	t.trail = head.Seq
	_, err = t.exec(ctx, `UPDATE entries_head SET seq = ?, hash = ? WHERE id = 1`, head.Seq, head.Hash)
	return err
}

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
