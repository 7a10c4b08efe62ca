package console

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// listLocks answers GET /api/v1/locks.
func (s *Server) listLocks(w http.ResponseWriter, r *http.Request, _ users.User) error {
	q := parseQuery(r, "target", "class", "dialect", "state", "sort", "limit")
	state := q.oneOf("state", "firing", "pending", "clear", "no-ttl")
	order := q.oneOf("sort", "key", "age")
	limit := q.limit()
	if err := q.err(); err != nil {
		return err
	}
	findings := s.deps.Findings.Findings()
	states := lockStates(findings)
	locks := slices.DeleteFunc(s.deps.Locks.Locks(), func(l locksteward.Lock) bool {
		return differs(q.text("target"), l.Target) || differs(q.text("class"), l.Class) ||
			differs(q.text("dialect"), l.Dialect) || !inState(l, state, states)
	})
	sortLocks(locks, order)
	rules := api.RulesByLock(findings)
	out := api.LockList{Total: len(locks), Locks: []api.Lock{}}
	for _, l := range locks[:min(limit, len(locks))] {
		out.Locks = append(out.Locks, api.NewLock(l, rules[keyOf(l)]))
	}
	return writeJSON(w, http.StatusOK, out)
}

// oneLock answers GET /api/v1/locks/one: the lock as it is now, and what the
// rules say of it.
func (s *Server) oneLock(w http.ResponseWriter, r *http.Request, _ users.User) error {
	q := parseQuery(r, "target", "db", "key", "key_b64", "lang")
	lang := q.lang()
	target := q.text("target")
	if target == "" {
		q.bad("target: is missing: use the name of a target")
	}
	key, err := api.Key{Key: q.text("key"), KeyB64: q.text("key_b64")}.Bytes()
	if err != nil {
		q.bad("%w", err)
	}
	if !q.values.Has("key") && !q.values.Has("key_b64") {
		q.bad("key: is missing: give key or key_b64")
	}
	var db *int
	if q.text("db") != "" {
		db = new(q.number("db", 0, 0, 1<<31-1))
	}
	if err := q.err(); err != nil {
		return err
	}
	n, err := s.database(target, db)
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

// lockStates returns for each lock with findings whether one fires.
func lockStates(findings []locksteward.Finding) map[api.LockKey]locksteward.Status {
	out := make(map[api.LockKey]locksteward.Status)
	for _, f := range findings {
		k := api.LockKey{Target: f.Target, DB: f.DB, Key: f.Key}
		if f.Key != "" && f.Status != locksteward.StatusResolved && out[k] != locksteward.StatusFiring {
			out[k] = f.Status
		}
	}
	return out
}

func inState(l locksteward.Lock, state string, states map[api.LockKey]locksteward.Status) bool {
	switch state {
	case "":
		return true
	case "no-ttl":
		return l.TTL == locksteward.NoExpiry
	case "clear":
		return states[keyOf(l)] == ""
	default:
		return string(states[keyOf(l)]) == state
	}
}

func keyOf(l locksteward.Lock) api.LockKey {
	return api.LockKey{Target: l.Target, DB: l.DB, Key: l.Key}
}

// sortLocks orders by name, or by age with the longest held first and those of
// unknown age last.
func sortLocks(locks []locksteward.Lock, order string) {
	byKey := func(a, b locksteward.Lock) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.DB, b.DB), cmp.Compare(a.Key, b.Key))
	}
	if order != "age" {
		slices.SortFunc(locks, byKey)
		return
	}
	slices.SortFunc(locks, func(a, b locksteward.Lock) int {
		return cmp.Or(cmp.Compare(knownAge(b), knownAge(a)), byKey(a, b))
	})
}

func knownAge(l locksteward.Lock) time.Duration {
	age, basis, _ := l.Age()
	if basis == locksteward.AgeNone {
		return -1
	}
	return age
}
