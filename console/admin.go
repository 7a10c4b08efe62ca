package console

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// reload answers POST /-/reload. It takes no body.
func (s *Server) reload(w http.ResponseWriter, r *http.Request, who users.User) error {
	ctx, cancel := changing(r)
	defer cancel()
	if err := s.deps.Reloader.Reload(ctx, who.Name); err != nil {
		s.log.Warn("reload refused", zap.String("user", who.Name), zap.Error(err))
		if !errors.Is(err, locksteward.ErrInvalid) {
			err = fmt.Errorf("%w: %w", locksteward.ErrInvalid, err)
		}
		return fmt.Errorf("reload: %w\nthe configuration before stays in use", err)
	}
	s.log.Info("console change", zap.String("action", "reloaded"), zap.String("user", who.Name))
	return writeJSON(w, http.StatusOK, api.Reloaded{Reloaded: true})
}

// MaxPause is the longest pause with an end.
const MaxPause = 7 * 24 * time.Hour

// pause answers POST /-/pause. It takes no body.
func (s *Server) pause(w http.ResponseWriter, r *http.Request, who users.User) error {
	q := parseQuery(r, "target", "for")
	p := locksteward.Pause{By: who.Name, Since: time.Now().Truncate(time.Millisecond)}
	if d := q.duration("for", time.Second, MaxPause); d > 0 {
		p.Until = p.Since.Add(d)
	}
	if err := q.err(); err != nil {
		return err
	}
	ctx, cancel := changing(r)
	defer cancel()
	names, err := s.deps.Pauser.Pause(ctx, q.values.Get("target"), p)
	if err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	s.log.Warn("console change", zap.String("action", "paused"), zap.Strings("targets", names), zap.String("user", who.Name))
	return writeJSON(w, http.StatusOK, api.Paused{Paused: names, Until: p.Until})
}

// resume answers POST /-/resume. It takes no body.
func (s *Server) resume(w http.ResponseWriter, r *http.Request, who users.User) error {
	q := parseQuery(r, "target")
	if err := q.err(); err != nil {
		return err
	}
	ctx, cancel := changing(r)
	defer cancel()
	names, err := s.deps.Pauser.Resume(ctx, q.values.Get("target"), who.Name)
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	s.log.Info("console change", zap.String("action", "resumed"), zap.Strings("targets", names), zap.String("user", who.Name))
	return writeJSON(w, http.StatusOK, api.Resumed{Resumed: names})
}
