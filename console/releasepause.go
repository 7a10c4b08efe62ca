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

// MaxReleasePause is the longest pause of releases that has an end.
const MaxReleasePause = 90 * 24 * time.Hour

// showReleasePause answers GET /api/v1/release/pause.
func (s *Server) showReleasePause(w http.ResponseWriter, r *http.Request, _ users.User) error {
	if err := parseQuery(r).err(); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, s.deps.ReleasePause.ReleasePause())
}

// pauseReleases answers POST /api/v1/release/pause.
func (s *Server) pauseReleases(w http.ResponseWriter, r *http.Request, who users.User) error {
	var in api.PauseReleases
	if err := body(r, &in); err != nil {
		return err
	}
	if err := checkScope(in.Scope); err != nil {
		return err
	}
	until, err := pauseEnd(in, time.Now())
	if err != nil {
		return err
	}
	ctx, cancel := changing(r)
	defer cancel()
	if err := s.deps.ReleasePause.PauseReleases(ctx, actorOf(who), in.Scope, until, in.Reason); err != nil {
		return err
	}
	s.log.Warn("console change", zap.String("action", "pause releases"), zap.String("scope", in.Scope), zap.Time("until", until), zap.String("user", who.Name))
	return writeJSON(w, http.StatusOK, s.deps.ReleasePause.ReleasePause())
}

// resumeReleases answers POST /api/v1/release/resume.
func (s *Server) resumeReleases(w http.ResponseWriter, r *http.Request, who users.User) error {
	var in api.ResumeReleases
	if err := body(r, &in); err != nil {
		return err
	}
	if err := checkScope(in.Scope); err != nil {
		return err
	}
	ctx, cancel := changing(r)
	defer cancel()
	if err := s.deps.ReleasePause.ResumeReleases(ctx, actorOf(who), in.Scope, in.Reason); err != nil {
		return err
	}
	s.log.Warn("console change", zap.String("action", "resume releases"), zap.String("scope", in.Scope), zap.String("user", who.Name))
	return writeJSON(w, http.StatusOK, s.deps.ReleasePause.ReleasePause())
}

func checkScope(scope string) error {
	switch scope {
	case api.PauseAll, api.PauseAutomatic:
		return nil
	default:
		return fmt.Errorf("%w: scope: must be %s or %s, got %q", locksteward.ErrInvalid, api.PauseAll, api.PauseAutomatic, scope)
	}
}

// pauseEnd is when a pause ends; the zero time: when somebody resumes.
func pauseEnd(in api.PauseReleases, now time.Time) (time.Time, error) {
	until := in.Until
	switch {
	case in.ForMs == 0 && until.IsZero():
		return time.Time{}, nil
	case in.ForMs != 0 && !until.IsZero():
		return time.Time{}, fmt.Errorf("%w: write until (a time) or for_ms (a duration), not both", locksteward.ErrInvalid)
	case in.ForMs != 0:
		if in.ForMs < 0 || in.ForMs > MaxReleasePause.Milliseconds() {
			return time.Time{}, fmt.Errorf("%w: for_ms: must be between 1 and %d, got %d", locksteward.ErrInvalid, MaxReleasePause.Milliseconds(), in.ForMs)
		}
		until = now.Add(time.Duration(in.ForMs) * time.Millisecond)
	}
	if !until.After(now) || until.Sub(now) > MaxReleasePause {
		return time.Time{}, fmt.Errorf("%w: until: must be in the future and at most %d days away, got %s", locksteward.ErrInvalid, int(MaxReleasePause/(24*time.Hour)), until.Format(time.RFC3339))
	}
	return until.UTC().Truncate(time.Millisecond), nil
}
