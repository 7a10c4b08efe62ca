package release

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// Look returns what a request about the lock at key would freeze now, as far as
// it is compared; false if there is none.
func (e *RedisExecutor) Look(ctx context.Context, key string) (locksteward.Evidence, bool, error) {
	var out look
	was := locksteward.Evidence{Key: key}
	err := e.with(ctx, was, func(cn *redis.Conn) error {
		var err error
		out, err = e.look(ctx, cn, was)
		return err
	})
	return out.evidence, out.found, err
}

// Differences is differences.
func Differences(was, is locksteward.Evidence) []string { return differences(was, is) }

// Next is the table of states.
func Next() map[locksteward.RequestState][]locksteward.RequestState { return next }

// SelfApproval is selfApproval.
func SelfApproval(r locksteward.Request, c class.Class) error { return selfApproval(r, c) }

// Intact is intact.
func Intact(r locksteward.Request) bool { return intact(r) }

// Covers says whether a pause window covers a time.
func Covers(w PauseWindow, at time.Time) bool { return w.covers(at) }

// Reload prepares another configuration and puts it into effect.
func (s *Service) Reload(cfg Config, classes *class.Set, executors map[string]Executor) error {
	prepared, err := s.Prepare(cfg, classes, executors)
	if err == nil {
		prepared.Commit()
	}
	return err
}
