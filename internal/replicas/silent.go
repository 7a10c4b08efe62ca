package replicas

import (
	"errors"

	"github.com/locksteward/locksteward/api"
)

// silent is a call that was not answered: the replica died, hangs, or cannot be
// reached. It wraps the problem that tells people.
type silent struct {
	problem *api.Problem
	sent    bool // it may have arrived
}

// Error is the problem's.
func (s *silent) Error() string { return s.problem.Error() }

// Unwrap is the problem.
func (s *silent) Unwrap() error { return s.problem }

// Silent says of the error of a [Call] that no answer came.
func Silent(err error) bool {
	_, ok := errors.AsType[*silent](err)
	return ok
}

// NotSent says of the error of a [Call] that nothing arrived: it may be made again,
// whatever it asks for.
func NotSent(err error) bool {
	s, ok := errors.AsType[*silent](err)
	return ok && !s.sent
}
