package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// MaxSilence is the longest silence, and the longest time for which a finding is
// accepted: what nobody looks at for longer should be another rule or class.
const MaxSilence = 90 * 24 * time.Hour

// maxReason bounds the reason of a silence, in bytes.
const maxReason = 1000

// Silences is what people want to hear nothing of for a while.
type Silences interface {
	// Silences returns those that are not over, or all that are kept; newest first.
	Silences(ctx context.Context, all bool) ([]api.Silence, error)
	// AddSilence adds one. Matchers that cannot be read, that hold for everything, or
	// a fingerprint that no finding has are locksteward.ErrInvalid.
	AddSilence(ctx context.Context, by string, in SilenceInput) (api.Silence, error)
	// EndSilence ends one now. An unknown id is locksteward.ErrNotFound, one that is
	// over locksteward.ErrConflict.
	EndSilence(ctx context.Context, by, id string) (api.Silence, error)
	// SilencedBy returns the silence that holds for a finding now. It is quick.
	SilencedBy(f locksteward.Finding) (api.Silence, bool)
}

// SilenceInput is a silence that a person wants.
type SilenceInput struct {
	// One of both is given.
	Matchers    []string
	Fingerprint string
	Until       time.Time
	Reason      string
}

// listSilences answers GET /api/v1/silences.
func (s *Server) listSilences(w http.ResponseWriter, r *http.Request, _ users.User) error {
	q := parseQuery(r, "all")
	all := q.oneOf("all", "true", "false") == "true"
	if err := q.err(); err != nil {
		return err
	}
	list, err := s.deps.Silences.Silences(r.Context(), all)
	if err != nil {
		return fmt.Errorf("list silences: %w", err)
	}
	return writeJSON(w, http.StatusOK, api.SilenceList{Silences: append([]api.Silence{}, list...)})
}

// addSilence answers POST /api/v1/silences.
func (s *Server) addSilence(w http.ResponseWriter, r *http.Request, who users.User) error {
	var in api.AddSilence
	if err := body(r, &in); err != nil {
		return err
	}
	wanted, err := silenceOf(in, time.Now())
	if err != nil {
		return err
	}
	out, err := s.silence(r, who, wanted)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, out)
}

func (s *Server) silence(r *http.Request, who users.User, in SilenceInput) (api.Silence, error) {
	ctx, cancel := changing(r)
	defer cancel()
	out, err := s.deps.Silences.AddSilence(ctx, who.Name, in)
	if err == nil {
		s.log.Info("console change", zap.String("action", "silenced"), zap.String("silence", out.ID),
			zap.Time("until", out.EndsAt), zap.String("user", who.Name))
	}
	return out, err
}

// expireSilence answers POST /api/v1/silences/{id}/expire. It takes no body.
func (s *Server) expireSilence(w http.ResponseWriter, r *http.Request, who users.User) error {
	if err := parseQuery(r).err(); err != nil {
		return err
	}
	out, err := s.unsilence(r, who)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, out)
}

func (s *Server) unsilence(r *http.Request, who users.User) (api.Silence, error) {
	ctx, cancel := changing(r)
	defer cancel()
	out, err := s.deps.Silences.EndSilence(ctx, who.Name, r.PathValue("id"))
	if err == nil {
		s.log.Info("console change", zap.String("action", "silence ended"), zap.String("silence", out.ID), zap.String("user", who.Name))
	}
	return out, err
}

// silenceOf judges all of a silence that needs no look at findings.
func silenceOf(in api.AddSilence, now time.Time) (SilenceInput, error) {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{locksteward.ErrInvalid}, args...)...)
	}
	out := SilenceInput{Matchers: in.Matchers, Fingerprint: in.Fingerprint, Until: in.Until, Reason: strings.TrimSpace(in.Reason)}
	if (len(in.Matchers) == 0) == (in.Fingerprint == "") {
		return out, bad("write one of matchers, such as [\"team=checkout\"], and fingerprint, of the one finding that is accepted")
	}
	if len(in.Matchers) > maxMatchers {
		return out, bad("matchers: at most %d, got %d", maxMatchers, len(in.Matchers))
	}
	if out.Reason == "" {
		return out, bad("reason: is missing: write the reason in a sentence, it goes into the audit trail")
	}
	if len(out.Reason) > maxReason {
		return out, bad("reason: at most %d bytes, got %d", maxReason, len(out.Reason))
	}
	if in.Until.IsZero() == (in.ForMs == 0) {
		return out, bad("write one of until (a time) and for_ms (a duration): every silence has an end")
	}
	if in.ForMs != 0 {
		if in.ForMs < 0 || in.ForMs > MaxSilence.Milliseconds() {
			return out, bad("for_ms: must be between 1 and %d, got %d", MaxSilence.Milliseconds(), in.ForMs)
		}
		out.Until = now.Add(time.Duration(in.ForMs) * time.Millisecond)
	}
	if !out.Until.After(now) || out.Until.Sub(now) > MaxSilence {
		return out, bad("until: must be in the future and at most %d days away, got %s", int(MaxSilence/(24*time.Hour)), out.Until.Format(time.RFC3339))
	}
	out.Until = out.Until.UTC().Truncate(time.Millisecond)
	return out, nil
}

// maxMatchers is how many conditions a silence can have.
const maxMatchers = 20

// listed says of findings what silences them.
func (s *Server) listed(findings []locksteward.Finding, lang string) []api.ListedFinding {
	out := make([]api.ListedFinding, 0, len(findings))
	for _, f := range findings {
		one := api.ListedFinding{Finding: api.NewFinding(f, lang)}
		if silence, ok := s.deps.Silences.SilencedBy(f); ok {
			one.SilencedBy, one.SilencedUntil = silence.ID, silence.EndsAt
			if silence.Fingerprint != "" {
				one.AcceptedUntil = silence.EndsAt
			}
		}
		out = append(out, one)
	}
	return out
}
