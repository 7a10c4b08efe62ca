package release

import (
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/source"
)

// Next is the table of states.
func Next() map[locksteward.RequestState][]locksteward.RequestState { return next }

// SelfApproval is selfApproval.
func (s *Service) SelfApproval(r locksteward.Request, c class.Class) error {
	return s.selfApproval(r, c)
}

// Intact is intact.
func Intact(r locksteward.Request) bool { return intact(r) }

// Covers says whether a pause window covers a time.
func Covers(w PauseWindow, at time.Time) bool { return w.covers(at) }

// Reload prepares another configuration and puts it into effect.
func (s *Service) Reload(cfg Config, classes *class.Set, releasers map[string]source.Releaser) error {
	prepared, err := s.Prepare(cfg, classes, releasers)
	if err == nil {
		prepared.Commit()
	}
	return err
}
