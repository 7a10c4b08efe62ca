// Package silences keeps the silences that are in force in memory, and adds and ends them for people: a silence mutes
// notifications about matching findings until its end.
package silences

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/store"
)

// The actions of the audit trail.
const (
	actionAdd    = "silence.add"
	actionAccept = "finding.accept"
	actionEnd    = "silence.end"
)

const (
	// readEvery is how often the silences are read again: another replica may have changed them.
	readEvery = 5 * time.Second
	// maxActive bounds the silences in force: every finding is matched against each of them.
	maxActive = 500
)

// Store is the part of [store.Store] that silences are kept in.
type Store interface {
	Silences(ctx context.Context, all bool) ([]store.Silence, error)
	AddSilence(ctx context.Context, s store.Silence, entries ...locksteward.Entry) error
	EndSilence(ctx context.Context, id, by string, entries ...locksteward.Entry) error
}

// Options are what a Set depends on.
type Options struct {
	Log   *zap.Logger
	Store Store
	// Findings returns the findings of all targets.
	Findings func() []locksteward.Finding
	// Changed is called after other silences came into force. Waiting is called before each periodic reading.
	Changed, Waiting func(ctx context.Context)
}

// A Set is the silences of the agent. Its methods may be called concurrently.
type Set struct {
	opts Options
	now  atomic.Pointer[snapshot]

	asked   atomic.Int64 // readings that began
	mu      sync.Mutex   // guards applied, and the replacement of now
	applied int64        // the reading that now is of
}

// snapshot is the silences as the store had them at one time.
type snapshot struct {
	stored []store.Silence
	parsed []alert.Silence
	active []string  // ids of those in force then
	next   time.Time // when that changes by itself; zero: never
}

// New returns a Set without silences. [Set.Read] reads them.
func New(opts Options) *Set { return &Set{opts: opts} }

// Current returns the silences that have not ended, as they were read last. The caller must not change them.
func (s *Set) Current() []alert.Silence {
	if now := s.now.Load(); now != nil {
		return now.parsed
	}
	return nil
}

// Run reads the silences every 5 s, and when one begins or ends, until ctx ends.
func (s *Set) Run(ctx context.Context) error {
	for {
		wait := readEvery
		if now := s.now.Load(); now != nil && !now.next.IsZero() {
			wait = max(time.Millisecond, min(wait, time.Until(now.next)))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		s.opts.Waiting(ctx)
		if err := s.Read(ctx); err != nil && ctx.Err() == nil {
			s.opts.Log.Warn("silences are not read: the last known ones stay in force", zap.Error(err))
		}
	}
}

// Read reads the silences from the store. If it fails, the last known ones stay in force until their end.
func (s *Set) Read(ctx context.Context) error {
	asked := s.asked.Add(1)
	list, err := s.opts.Store.Silences(ctx, false)
	if err != nil {
		if now := s.now.Load(); now != nil {
			list = now.stored
		}
	}
	if s.apply(asked, s.snapshot(list)) {
		s.opts.Changed(ctx)
	}
	return err
}

// apply replaces the snapshot, unless a later reading was faster, and reports whether other silences are in force.
func (s *Set) apply(asked int64, next *snapshot) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if asked < s.applied {
		return false
	}
	s.applied = asked
	before := s.now.Swap(next)
	return before != nil && !slices.Equal(before.active, next.active)
}

func (s *Set) snapshot(list []store.Silence) *snapshot {
	out := &snapshot{stored: list}
	at := time.Now()
	for _, one := range list {
		m, err := alert.ParseSilence(one.Matchers)
		if err != nil {
			// Doubt means that people are notified.
			s.opts.Log.Error("a silence is ignored: its matchers cannot be read", zap.String("silence", one.ID), zap.Error(err))
			continue
		}
		out.parsed = append(out.parsed, alert.Silence{ID: one.ID, Matchers: m, StartsAt: one.StartsAt, EndsAt: one.EndsAt})
		if !one.StartsAt.After(at) && at.Before(one.EndsAt) {
			out.active = append(out.active, one.ID)
		}
		for _, change := range []time.Time{one.StartsAt, one.EndsAt} {
			if change.After(at) && (out.next.IsZero() || change.Before(out.next)) {
				out.next = change
			}
		}
	}
	return out
}

// Silences returns those that have not ended, or all; newest first.
func (s *Set) Silences(ctx context.Context, all bool) ([]api.Silence, error) {
	list, err := s.opts.Store.Silences(ctx, all)
	if err != nil {
		return nil, unavailable(err)
	}
	findings := s.opts.Findings()
	now := time.Now()
	out := make([]api.Silence, 0, len(list))
	for _, one := range list {
		v := view(one, now)
		if v.State == api.SilenceActive {
			v.Findings = matching(one.Matchers, findings)
		}
		out = append(out, v)
	}
	return out, nil
}

// matching returns the number of findings that matchers match.
func matching(matchers []string, findings []locksteward.Finding) int {
	m, err := alert.ParseSilence(matchers)
	if err != nil {
		return 0
	}
	n := 0
	for _, f := range findings {
		if m.Match(f) {
			n++
		}
	}
	return n
}

func view(one store.Silence, now time.Time) api.Silence {
	state := api.SilenceOver
	if one.EndedAt.IsZero() && now.Before(one.EndsAt) {
		state = api.SilenceActive
	}
	return api.Silence{
		ID: one.ID, Matchers: append([]string{}, one.Matchers...), Fingerprint: one.Fingerprint, Reason: one.Reason, State: state,
		CreatedBy: one.CreatedBy, CreatedAt: milli(one.CreatedAt), StartsAt: milli(one.StartsAt), EndsAt: milli(one.EndsAt),
		EndedBy: one.EndedBy, EndedAt: milli(one.EndedAt),
	}
}

func milli(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Millisecond)
}

// AddSilence adds a silence, or accepts a finding.
func (s *Set) AddSilence(ctx context.Context, by string, in console.SilenceInput) (api.Silence, error) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	one := store.Silence{
		ID: newID(), Matchers: in.Matchers, Reason: in.Reason, CreatedBy: by, CreatedAt: now, StartsAt: now, EndsAt: in.Until,
	}
	entry := locksteward.Entry{At: now, Actor: by, Action: actionAdd, Subject: one.ID, Reason: in.Reason, Outcome: "until " + in.Until.Format(time.RFC3339)}
	if in.Fingerprint != "" {
		findings := s.opts.Findings()
		i := slices.IndexFunc(findings, func(f locksteward.Finding) bool { return f.Fingerprint() == in.Fingerprint })
		if i < 0 {
			return api.Silence{}, fmt.Errorf("%w: no finding has the fingerprint %q now: 'locksteward findings list' shows those there are", locksteward.ErrInvalid, in.Fingerprint)
		}
		one.Matchers, one.Fingerprint = []string{"fingerprint=" + in.Fingerprint}, in.Fingerprint
		entry.Action, entry.Target, entry.Key = actionAccept, findings[i].Target, findings[i].Key
	}
	if _, err := alert.ParseSilence(one.Matchers); err != nil {
		return api.Silence{}, fmt.Errorf("%w: matchers: %w", locksteward.ErrInvalid, err)
	}
	if n := len(s.Current()); n >= maxActive {
		return api.Silence{}, fmt.Errorf("%w: there are %d silences already: end some, or add one with a regular expression in place of many", locksteward.ErrConflict, n)
	}
	var err error
	entry.Detail, err = json.Marshal(map[string]any{"matchers": one.Matchers, "fingerprint": one.Fingerprint, "ends_at": one.EndsAt})
	if err != nil {
		return api.Silence{}, err
	}
	if err := s.opts.Store.AddSilence(ctx, one, entry); err != nil {
		return api.Silence{}, unavailable(err)
	}
	s.readAgain(ctx)
	out := view(one, now)
	out.Findings = matching(one.Matchers, s.opts.Findings())
	return out, nil
}

// EndSilence ends a silence now.
func (s *Set) EndSilence(ctx context.Context, by, id string) (api.Silence, error) {
	entry := locksteward.Entry{At: time.Now(), Actor: by, Action: actionEnd, Subject: id, Outcome: "ended"}
	if err := s.opts.Store.EndSilence(ctx, id, by, entry); err != nil {
		return api.Silence{}, unavailable(err)
	}
	s.readAgain(ctx)
	list, err := s.opts.Store.Silences(ctx, true)
	if err != nil {
		return api.Silence{}, unavailable(err)
	}
	for _, one := range list {
		if one.ID == id {
			return view(one, time.Now()), nil
		}
	}
	return api.Silence{}, fmt.Errorf("silence %q: %w", id, locksteward.ErrNotFound)
}

// readAgain puts a change of our own into force.
func (s *Set) readAgain(ctx context.Context) {
	if err := s.Read(ctx); err != nil {
		s.opts.Log.Warn("silences are not read after a change; trying again", zap.Error(err))
	}
}

// SilencedBy returns the silence in force for a finding.
func (s *Set) SilencedBy(f locksteward.Finding) (api.Silence, bool) {
	now := s.now.Load()
	if now == nil {
		return api.Silence{}, false
	}
	at := time.Now()
	id, _, ok := alert.SilencedBy(now.parsed, f, at)
	if !ok {
		return api.Silence{}, false
	}
	i := slices.IndexFunc(now.stored, func(one store.Silence) bool { return one.ID == id })
	return view(now.stored[i], at), true
}

// unavailable makes an error of the store a problem that the API reports as unavailable.
func unavailable(err error) error {
	if _, ok := errors.AsType[*store.Error](err); ok && api.ProblemFor(err).Code == api.CodeInternal {
		return api.NewProblem(api.CodeUnavailable, err.Error())
	}
	return err
}

// newID returns an id that is unique and short enough to be typed.
func newID() string { return "sil_" + strings.ToLower(rand.Text()[:12]) }

var _ console.Silences = (*Set)(nil)
