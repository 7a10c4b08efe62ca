package console

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// lockParams are the parameters of [query.lockFilter].
var lockParams = []string{"target", "class", "library", "state", "holder", "match", "q", "sort", "limit", "cursor"}

// lockFilter reads which locks are asked for, and in which order; preset is how
// many where nobody says.
func (q *query) lockFilter(preset int) LockFilter {
	f := LockFilter{
		Target: q.text("target"), Class: q.text("class"), Library: q.text("library"),
		State:  q.oneOf("state", "firing", "pending", "clear", "no-ttl"),
		Holder: q.text("holder"), Match: q.text("match"), Text: q.text("q"),
		Sort:  cmp.Or(q.oneOf("sort", "key", "age", "ttl"), "key"),
		Limit: q.number("limit", preset, 1, maxLimit),
	}
	f.After = q.lockPosition(f.Sort)
	return f
}

// listLocks answers GET /api/v1/locks.
func (s *Server) listLocks(w http.ResponseWriter, r *http.Request, _ users.User) error {
	q := parseQuery(r, lockParams...)
	filter := q.lockFilter(defaultLimit)
	if err := q.err(); err != nil {
		return err
	}
	page, err := s.deps.Locks.ListLocks(filter)
	if err != nil {
		return err
	}
	out := api.LockList{Total: page.Total, Locks: make([]api.Lock, 0, len(page.Rows)), Next: lockCursorOf(filter.Sort, page.Next)}
	for _, row := range page.Rows {
		out.Locks = append(out.Locks, api.NewLock(row.Lock, row.Rules, row.Now))
	}
	out.Unseen = api.UnseenOf(s.deps.Targets.Targets(), filter.Target, time.Now())
	linkNext(w, r, out.Next)
	return writeJSON(w, http.StatusOK, out)
}

// lockEvents answers GET /api/v1/locks/events: what happened to one lock.
func (s *Server) lockEvents(w http.ResponseWriter, r *http.Request, _ users.User) error {
	q := parseQuery(r, "target", "db", "key", "key_b64", "limit")
	limit := q.number("limit", 100, 1, 1000)
	target, db, key, err := s.lockNamed(q)
	if err != nil {
		return err
	}
	events, err := s.deps.History.LockEvents(r.Context(), target, db, key, limit)
	if err != nil {
		return fmt.Errorf("list events of a lock: %w", err)
	}
	return writeJSON(w, http.StatusOK, api.LockEventList{Events: append([]api.LockEvent{}, events...)})
}

// lockNamed reads the lock that a query names, and reports what else is wrong with
// the query.
func (s *Server) lockNamed(q *query) (target string, db int, key string, err error) {
	if target = q.text("target"); target == "" {
		q.bad("target: is missing: use the name of a target")
	}
	if key, err = (api.Key{Key: q.text("key"), KeyB64: q.text("key_b64")}).Bytes(); err != nil {
		q.bad("%w", err)
	}
	if !q.values.Has("key") && !q.values.Has("key_b64") {
		q.bad("key: is missing: give key or key_b64")
	}
	var said *int
	if q.text("db") != "" {
		said = new(q.number("db", 0, 0, 1<<31-1))
	}
	if err := q.err(); err != nil {
		return "", 0, "", err
	}
	db, err = s.database(target, said)
	return target, db, key, err
}

// oneLock answers GET /api/v1/locks/one: the lock as it is now, and what the
// rules say of it.
func (s *Server) oneLock(w http.ResponseWriter, r *http.Request, _ users.User) error {
	q := parseQuery(r, "target", "db", "key", "key_b64", "lang")
	lang := q.lang()
	target, n, key, err := s.lockNamed(q)
	if err != nil {
		return err
	}
	lock, err := s.deps.Locks.Lock(r.Context(), target, n, key)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, api.NewLockDetail(lock, s.deps.Locks.Explain(lock, lang)))
}

// database returns the database that a person means: the target's own unless
// they say another.
func (s *Server) database(target string, db *int) (int, error) {
	for _, t := range s.deps.Targets.Targets() {
		if t.Name == target {
			if db != nil {
				return *db, nil
			}
			return t.DB, nil
		}
	}
	return 0, fmt.Errorf("target %q: %w: `locksteward config check` lists the targets", target, locksteward.ErrNotFound)
}

// differs says that a filter is given and v is not what it asks for.
func differs(filter, v string) bool { return filter != "" && filter != v }

func keyOf(l locksteward.Lock) api.LockKey {
	return api.LockKey{Target: l.Target, DB: l.DB, Key: l.Key}
}
