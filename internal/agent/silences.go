package agent

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

// What the audit trail calls what people do with silences.
const (
	actionSilence    = "silence.add"
	actionAccept     = "finding.accept"
	actionEndSilence = "silence.end"
)

// silencesEvery is how often the silences are read again: another process may have
// changed them.
const silencesEvery = 5 * time.Second

// maxSilences bounds how many hold at once: every finding is looked at with each.
const maxSilences = 500

// silencer keeps the silences that are not over in memory.
type silencer struct {
	reading sync.Mutex // one at a time, so that an older reading never comes last
	now     atomic.Pointer[silenced]
}

// silenced is the silences as the store had them at one time.
type silenced struct {
	kept   []store.Silence
	parsed []alert.Silence
	active []string  // ids of those that held then
	next   time.Time // when that changes by itself; zero: not
}

// silences are those that are not over, as they were read last.
func (a *Agent) silences() []alert.Silence {
	if now := a.silencer.now.Load(); now != nil {
		return now.parsed
	}
	return nil
}

// keepSilences reads the silences again and again until ctx ends, and when one
// ends.
func (a *Agent) keepSilences(ctx context.Context) error {
	for {
		wait := silencesEvery
		if now := a.silencer.now.Load(); now != nil && !now.next.IsZero() {
			wait = max(time.Millisecond, min(wait, time.Until(now.next)))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		a.alerts.retryWakeHeld(ctx)
		if err := a.readSilences(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("silences are not read: those known before hold", zap.Error(err))
		}
	}
}

// readSilences takes the silences as the store has them. If they are others than
// before, what was held back is looked at again: with those of before it may have
// been held back for longer.
func (a *Agent) readSilences(ctx context.Context) error {
	a.silencer.reading.Lock()
	defer a.silencer.reading.Unlock()
	list, err := a.store.Silences(ctx, false)
	if err != nil {
		// One that ended meanwhile is over all the same.
		return errors.Join(err, a.takeSilences(ctx, a.known()))
	}
	return a.takeSilences(ctx, list)
}

// known are the silences as they were read last.
func (a *Agent) known() []store.Silence {
	if now := a.silencer.now.Load(); now != nil {
		return now.kept
	}
	return nil
}

func (a *Agent) takeSilences(ctx context.Context, list []store.Silence) error {
	next := &silenced{kept: list}
	at := time.Now()
	for _, one := range list {
		m, err := alert.ParseSilence(one.Matchers)
		if err != nil {
			// Written by another version: people are told rather too much.
			a.log.Error("a silence does not hold: its matchers cannot be read", zap.String("silence", one.ID), zap.Error(err))
			continue
		}
		next.parsed = append(next.parsed, alert.Silence{ID: one.ID, Matchers: m, StartsAt: one.StartsAt, EndsAt: one.EndsAt})
		if !one.StartsAt.After(at) && at.Before(one.EndsAt) {
			next.active = append(next.active, one.ID)
		}
		for _, change := range []time.Time{one.StartsAt, one.EndsAt} {
			if change.After(at) && (next.next.IsZero() || change.Before(next.next)) {
				next.next = change
			}
		}
	}
	before := a.silencer.now.Swap(next)
	if before == nil || slices.Equal(before.active, next.active) {
		return nil
	}
	a.alerts.wakeHeld(ctx)
	return nil
}

// silencing is the silences as the console knows them.
type silencing struct{ agent *Agent }

// Silences returns those that are not over, or all; newest first.
func (s silencing) Silences(ctx context.Context, all bool) ([]api.Silence, error) {
	list, err := s.agent.store.Silences(ctx, all)
	if err != nil {
		return nil, stored(err)
	}
	findings := s.agent.findings()
	now := time.Now()
	out := make([]api.Silence, 0, len(list))
	for _, one := range list {
		v := silenceView(one, now)
		if v.State == api.SilenceActive {
			v.Findings = count(one.Matchers, findings)
		}
		out = append(out, v)
	}
	return out, nil
}

func count(matchers []string, findings []locksteward.Finding) int {
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

func silenceView(one store.Silence, now time.Time) api.Silence {
	state := api.SilenceOver
	if one.EndedAt.IsZero() && now.Before(one.EndsAt) {
		state = api.SilenceActive
	}
	return api.Silence{
		ID: one.ID, Matchers: append([]string{}, one.Matchers...), Fingerprint: one.Fingerprint, Comment: one.Comment, State: state,
		CreatedBy: one.CreatedBy, CreatedAt: shown(one.CreatedAt), StartsAt: shown(one.StartsAt), EndsAt: shown(one.EndsAt),
		EndedBy: one.EndedBy, EndedAt: shown(one.EndedAt),
	}
}

// AddSilence adds a silence, or accepts a finding.
func (s silencing) AddSilence(ctx context.Context, by string, in console.SilenceInput) (api.Silence, error) {
	a := s.agent
	now := time.Now().UTC().Truncate(time.Millisecond)
	one := store.Silence{
		ID: newSilenceID(), Matchers: in.Matchers, Comment: in.Comment, CreatedBy: by, CreatedAt: now, StartsAt: now, EndsAt: in.Until,
	}
	entry := locksteward.Entry{At: now, Actor: by, Action: actionSilence, Subject: one.ID, Reason: in.Comment, Outcome: "until " + in.Until.Format(time.RFC3339)}
	if in.Fingerprint != "" {
		f, ok := s.current(in.Fingerprint)
		if !ok {
			return api.Silence{}, fmt.Errorf("%w: no finding has the fingerprint %q now: 'locksteward findings list' shows those there are", locksteward.ErrInvalid, in.Fingerprint)
		}
		one.Matchers, one.Fingerprint = []string{"fingerprint=" + in.Fingerprint}, in.Fingerprint
		entry.Action, entry.Target, entry.Key = actionAccept, f.Target, f.Key
	}
	if _, err := alert.ParseSilence(one.Matchers); err != nil {
		return api.Silence{}, fmt.Errorf("%w: matchers: %w", locksteward.ErrInvalid, err)
	}
	if n := len(a.silences()); n >= maxSilences {
		return api.Silence{}, fmt.Errorf("%w: %d silences hold already: end some, or write one with a regular expression in place of many", locksteward.ErrConflict, n)
	}
	var err error
	entry.Detail, err = json.Marshal(map[string]any{"matchers": one.Matchers, "fingerprint": one.Fingerprint, "ends_at": one.EndsAt})
	if err != nil {
		return api.Silence{}, err
	}
	if err := a.store.AddSilence(ctx, one, entry); err != nil {
		return api.Silence{}, stored(err)
	}
	s.reread(ctx)
	out := silenceView(one, now)
	out.Findings = count(one.Matchers, a.findings())
	return out, nil
}

// current is a finding as it is now.
func (s silencing) current(fingerprint string) (locksteward.Finding, bool) {
	for _, f := range s.agent.findings() {
		if f.Fingerprint() == fingerprint {
			return f, true
		}
	}
	return locksteward.Finding{}, false
}

// EndSilence ends a silence now.
func (s silencing) EndSilence(ctx context.Context, by, id string) (api.Silence, error) {
	entry := locksteward.Entry{At: time.Now(), Actor: by, Action: actionEndSilence, Subject: id, Outcome: "ended"}
	if err := s.agent.store.EndSilence(ctx, id, by, entry); err != nil {
		return api.Silence{}, stored(err)
	}
	s.reread(ctx)
	list, err := s.agent.store.Silences(ctx, true)
	if err != nil {
		return api.Silence{}, stored(err)
	}
	for _, one := range list {
		if one.ID == id {
			return silenceView(one, time.Now()), nil
		}
	}
	return api.Silence{}, fmt.Errorf("silence %q: %w", id, locksteward.ErrNotFound)
}

// reread takes in a change of our own at once.
func (s silencing) reread(ctx context.Context) {
	if err := s.agent.readSilences(ctx); err != nil {
		s.agent.log.Warn("silences are not read after a change: they are in a while", zap.Error(err))
	}
}

// SilencedBy returns the silence that holds for a finding now.
func (s silencing) SilencedBy(f locksteward.Finding) (api.Silence, bool) {
	now := s.agent.silencer.now.Load()
	if now == nil {
		return api.Silence{}, false
	}
	at := time.Now()
	id, _, ok := alert.SilencedBy(now.parsed, f, at)
	if !ok {
		return api.Silence{}, false
	}
	i := slices.IndexFunc(now.kept, func(one store.Silence) bool { return one.ID == id })
	return silenceView(now.kept[i], at), true
}

// newSilenceID is unique and short enough to be typed.
func newSilenceID() string { return "sil_" + strings.ToLower(rand.Text()[:12]) }

var _ console.Silences = silencing{}
