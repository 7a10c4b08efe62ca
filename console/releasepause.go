package console

import (
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// MaxFreeze is the longest freeze of releases.
const MaxFreeze = 90 * 24 * time.Hour

// showStops answers GET /api/v1/stops.
func (s *Server) showStops(w http.ResponseWriter, r *http.Request, _ users.User) error {
	if err := parseQuery(r).err(); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, s.deps.Stops.Stops())
}

// killSwitch answers POST /api/v1/stops/kill-switch.
func (s *Server) killSwitch(w http.ResponseWriter, r *http.Request, who users.User) error {
	var in api.SetKillSwitch
	if err := body(r, &in); err != nil {
		return err
	}
	if in.On == nil {
		return fmt.Errorf("%w: on is missing: write true to stop all releases, false to let them go on", locksteward.ErrInvalid)
	}
	ctx, cancel := changing(r)
	defer cancel()
	if err := s.deps.Stops.SetKillSwitch(ctx, actorOf(who), *in.On, in.Reason); err != nil {
		return err
	}
	s.log.Warn("console change", zap.String("action", "kill switch"), zap.Bool("on", *in.On), zap.String("user", who.Name))
	return writeJSON(w, http.StatusOK, s.deps.Stops.Stops())
}

// freeze answers POST /api/v1/stops/freeze.
func (s *Server) freeze(w http.ResponseWriter, r *http.Request, who users.User) error {
	var in api.SetFreeze
	if err := body(r, &in); err != nil {
		return err
	}
	until, err := freezeEnd(in, time.Now())
	if err != nil {
		return err
	}
	ctx, cancel := changing(r)
	defer cancel()
	if err := s.deps.Stops.SetFreeze(ctx, actorOf(who), until, in.Reason); err != nil {
		return err
	}
	s.log.Warn("console change", zap.String("action", "freeze"), zap.Time("until", until), zap.String("user", who.Name))
	return writeJSON(w, http.StatusOK, s.deps.Stops.Stops())
}

// freezeEnd is until when a freeze is to last; the zero time ends the one there is.
func freezeEnd(in api.SetFreeze, now time.Time) (time.Time, error) {
	said := 0
	for _, given := range []bool{!in.Until.IsZero(), in.ForMs != 0, in.End} {
		if given {
			said++
		}
	}
	if said != 1 {
		return time.Time{}, fmt.Errorf("%w: write one of until (a time), for_ms (a duration) and end (true)", locksteward.ErrInvalid)
	}
	if in.End {
		return time.Time{}, nil
	}
	until := in.Until
	if in.ForMs != 0 {
		if in.ForMs < 0 || in.ForMs > MaxFreeze.Milliseconds() {
			return time.Time{}, fmt.Errorf("%w: for_ms: must be between 1 and %d, got %d", locksteward.ErrInvalid, MaxFreeze.Milliseconds(), in.ForMs)
		}
		until = now.Add(time.Duration(in.ForMs) * time.Millisecond)
	}
	if !until.After(now) || until.Sub(now) > MaxFreeze {
		return time.Time{}, fmt.Errorf("%w: until: must be in the future and at most %d days away, got %s", locksteward.ErrInvalid, int(MaxFreeze/(24*time.Hour)), until.Format(time.RFC3339))
	}
	return until.UTC().Truncate(time.Millisecond), nil
}
