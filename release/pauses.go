package release

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
)

// PauseScope is what a pause of releases covers.
type PauseScope string

const (
	// PauseAll refuses requests and approvals and executes nothing. Denying and undoing
	// still work.
	PauseAll PauseScope = "all"
	// PauseAutomatic keeps the agent from releasing without a person; people are warned
	// before they approve.
	PauseAutomatic PauseScope = "automatic"
)

// Pause is a pause that an admin set.
type Pause struct {
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until,omitzero"` // zero: until somebody resumes
}

// Pauses are the pauses that admins set, by scope; nil where there is none.
type Pauses struct {
	All       *Pause `json:"all,omitempty"`
	Automatic *Pause `json:"automatic,omitempty"`
}

// of returns the place of a scope's pause; nil for an unknown scope.
func (p *Pauses) of(scope PauseScope) **Pause {
	switch scope {
	case PauseAll:
		return &p.All
	case PauseAutomatic:
		return &p.Automatic
	default:
		return nil
	}
}

// activeAt drops the pauses that ended before at.
func (p Pauses) activeAt(at time.Time) Pauses {
	for _, slot := range []**Pause{&p.All, &p.Automatic} {
		if *slot != nil && !(*slot).Until.IsZero() && !at.Before((*slot).Until) {
			*slot = nil
		}
	}
	return p
}

// words is when a pause ends, for a sentence: " until 2026-03-01T13:00:00Z", or "".
func (p Pause) words() string {
	if p.Until.IsZero() {
		return ""
	}
	return " until " + p.Until.UTC().Format(time.RFC3339)
}

// SettingStore keeps a text under a name, with the audit entries of its change in
// one transaction. A name that it does not have is "".
type SettingStore interface {
	LoadSetting(ctx context.Context, name string) (string, error)
	// SwapSetting writes nothing and returns false if the text is not was any more.
	SwapSetting(ctx context.Context, name, was, value string, entries ...locksteward.Entry) (swapped bool, err error)
}

// settingPauses is the name under which the store keeps [Pauses].
const settingPauses = "release_pauses"

// pauseState holds the pauses that admins set, as read from the store.
type pauseState struct {
	store SettingStore
	// current is nil until the store was read once. Readers never wait: a change waits
	// for the store, which may ask for current meanwhile.
	current atomic.Pointer[Pauses]
	// turn holds one token while somebody reads or changes the pauses in the store, so
	// that an earlier read does not replace a later write.
	turn chan struct{}
}

func newPauseState(store SettingStore) *pauseState {
	s := &pauseState{store: store, turn: make(chan struct{}, 1)}
	if store == nil {
		s.current.Store(&Pauses{})
	}
	return s
}

// acquire waits for the turn until ctx ends; done gives it back.
func (s *pauseState) acquire(ctx context.Context) (done func(), err error) {
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the pauses of releases: %w", context.Cause(ctx))
	}
}

// load reads the pauses once after a start. Until that succeeds all releases count
// as paused: a pause must outlive a crash.
func (s *pauseState) load(ctx context.Context) error {
	if s.current.Load() != nil {
		return nil
	}
	return s.read(ctx)
}

// read reads the pauses from the store: another replica may have changed them.
func (s *pauseState) read(ctx context.Context) error {
	done, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer done()
	_, err = s.readInTurn(ctx)
	return err
}

// readInTurn is read by a caller who has the turn; raw is the text that was read.
func (s *pauseState) readInTurn(ctx context.Context) (raw string, err error) {
	if s.store == nil {
		return "", nil
	}
	if raw, err = s.store.LoadSetting(ctx, settingPauses); err != nil {
		return "", err
	}
	var now Pauses
	if raw != "" {
		if err := json.Unmarshal([]byte(raw), &now); err != nil {
			return "", fmt.Errorf("read the pauses of releases: %w", err)
		}
	}
	s.current.Store(&now)
	return raw, nil
}

// get returns the pauses that are active at a time.
func (s *pauseState) get(at time.Time) (active Pauses, known bool) {
	if p := s.current.Load(); p != nil {
		return p.activeAt(at), true
	}
	return Pauses{}, false
}

// refuseAll returns an error while all releases are paused.
func (s *pauseState) refuseAll(at time.Time) error {
	now, known := s.get(at)
	switch {
	case !known:
		return refused("it is not known yet whether an admin paused all releases: the store could not be read since the start; see the log")
	case now.All != nil:
		return refused("all releases are paused: by %s at %s%s (%s); an admin can resume them (locksteward release resume --scope all)",
			now.All.By, now.All.Since.UTC().Format(time.RFC3339), now.All.words(), now.All.Reason)
	default:
		return nil
	}
}

// Pauses returns the active pauses that admins set.
func (s *Service) Pauses() Pauses {
	now, _ := s.pauses.get(s.now())
	return now
}

// pausedIDs and resumedIDs are the messages about changes of a pause.
var (
	pausedIDs  = map[PauseScope]string{PauseAll: "release.paused-all", PauseAutomatic: "release.paused-automatic"}
	resumedIDs = map[PauseScope]string{PauseAll: "release.resumed-all", PauseAutomatic: "release.resumed-automatic"}
)

// Pause pauses releases until a time, or with the zero time until [Service.Resume].
// The pauses of the configuration hold besides. It outlives a restart. It needs
// [RoleAdmin]; the reason goes into the audit trail.
func (s *Service) Pause(ctx context.Context, actor Actor, scope PauseScope, until time.Time, reason string) error {
	return s.changePauses(ctx, actor, ActionPause, scope, reason, func(at time.Time, reason string) (*Pause, locksteward.Message) {
		p := &Pause{By: actor.Name, Reason: reason, Since: at, Until: until.UTC()}
		var end locksteward.Message
		if !p.Until.IsZero() {
			end = locksteward.NewMessage("release.paused-until", p.Until)
		}
		return p, locksteward.NewMessage(pausedIDs[scope], actor.Name, end)
	})
}

// Resume ends a pause. It needs [RoleAdmin].
func (s *Service) Resume(ctx context.Context, actor Actor, scope PauseScope, reason string) error {
	return s.changePauses(ctx, actor, ActionResume, scope, reason, func(time.Time, string) (*Pause, locksteward.Message) {
		return nil, locksteward.NewMessage(resumedIDs[scope], actor.Name)
	})
}

// changePauses replaces the pause of a scope by what next returns, with its entry
// and its event.
func (s *Service) changePauses(ctx context.Context, actor Actor, action string, scope PauseScope, reason string,
	next func(at time.Time, reason string) (*Pause, locksteward.Message),
) error {
	if err := actor.checkName(); err != nil {
		return err
	}
	if err := actor.may(RoleAdmin); err != nil {
		return s.refuse(ctx, actor, action, "", "", "", reason, err)
	}
	reason, err := cleanReason(reason)
	if err != nil {
		return err
	}
	if new(Pauses).of(scope) == nil {
		return invalid("scope: must be %s or %s, got %q", PauseAll, PauseAutomatic, scope)
	}
	at := s.now().UTC()
	pause, m := next(at, reason)
	entry := locksteward.Entry{
		At: at, Actor: actor.Name, Action: action, Reason: reason, Outcome: string(scope), Detail: detail{Sentence: english(m)}.json(),
		Event: &locksteward.Event{
			ID: action + "/" + at.Format(time.RFC3339Nano), Kind: locksteward.EventPaused, At: at, Actor: actor.Name, Message: m,
		},
	}
	if err := s.pauses.change(ctx, scope, pause, func(was string, now Pauses) (bool, error) {
		if s.pauses.store == nil {
			return true, s.store.AppendEntries(ctx, entry)
		}
		raw, err := json.Marshal(now)
		if err != nil {
			return false, err
		}
		return s.pauses.store.SwapSetting(ctx, settingPauses, was, string(raw), entry)
	}); err != nil {
		return err
	}
	s.log.Warn("releases were paused or resumed", zap.String("change", english(m)))
	return nil
}

// change replaces the pause of a scope in what the store has, once save has kept
// it; save returns false if the store has something else by now: another replica was
// faster.
func (s *pauseState) change(ctx context.Context, scope PauseScope, pause *Pause, save func(was string, now Pauses) (bool, error)) error {
	done, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer done()
	for {
		was, err := s.readInTurn(ctx)
		if err != nil {
			return err
		}
		now := *s.current.Load()
		*now.of(scope) = pause
		switch saved, err := save(was, now); {
		case err != nil:
			return err
		case saved:
			s.current.Store(&now)
			return nil
		}
	}
}
