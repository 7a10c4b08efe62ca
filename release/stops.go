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

// Stops is what admins stopped while the agent runs, besides what the
// configuration says.
type Stops struct {
	// Killed refuses everything but denying and undoing, until it is taken back.
	Killed   bool      `json:"killed,omitempty"`
	KilledBy string    `json:"killed_by,omitempty"`
	KilledAt time.Time `json:"killed_at,omitzero"`
	// KilledWhy and FrozenWhy are the reasons that were given.
	KilledWhy string `json:"killed_why,omitempty"`
	// FrozenUntil is until when nothing is released without a person.
	FrozenUntil time.Time `json:"frozen_until,omitzero"`
	FrozenBy    string    `json:"frozen_by,omitempty"`
	FrozenWhy   string    `json:"frozen_why,omitempty"`
}

// StopStore keeps a text under a name, with the entries that tell of a change of
// it in one transaction. A name that it does not have is "".
type StopStore interface {
	LoadSetting(ctx context.Context, name string) (string, error)
	// SwapSetting writes nothing and returns false if the text is not was any more.
	SwapSetting(ctx context.Context, name, was, value string, entries ...locksteward.Entry) (swapped bool, err error)
}

// settingStops is the name that [Stops] are kept under.
const settingStops = "release_stops"

// stops holds what is stopped now.
type stops struct {
	store StopStore
	// now is what is known; nil: nothing is known yet. Readers never wait: what changes
	// it waits for the store, which may ask for it meanwhile.
	now atomic.Pointer[Stops]
	// turn holds one token while somebody reads what is stopped from the store or
	// changes it there, so that what was read earlier does not replace what was written
	// later.
	turn chan struct{}
}

func newStops(store StopStore) *stops {
	s := &stops{store: store, turn: make(chan struct{}, 1)}
	if store == nil {
		s.now.Store(&Stops{})
	}
	return s
}

// take waits for the turn until ctx ends; done gives it back.
func (s *stops) take(ctx context.Context) (done func(), err error) {
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for what is stopped: %w", context.Cause(ctx))
	}
}

// load reads what was stopped before a restart. Until that succeeds everything
// counts as stopped: an emergency stop must outlive a crash.
func (s *stops) load(ctx context.Context) error {
	if s.now.Load() != nil {
		return nil
	}
	return s.read(ctx)
}

// read takes in what is stopped now: another replica may have been told.
func (s *stops) read(ctx context.Context) error {
	done, err := s.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	_, err = s.readInTurn(ctx)
	return err
}

// readInTurn is read by a caller who has the turn; raw is the text that was read.
func (s *stops) readInTurn(ctx context.Context) (raw string, err error) {
	if s.store == nil {
		return "", nil
	}
	if raw, err = s.store.LoadSetting(ctx, settingStops); err != nil {
		return "", err
	}
	var now Stops
	if raw != "" {
		if err := json.Unmarshal([]byte(raw), &now); err != nil {
			return "", fmt.Errorf("read what is stopped: %w", err)
		}
	}
	s.now.Store(&now)
	return raw, nil
}

func (s *stops) get() (now Stops, known bool) {
	if p := s.now.Load(); p != nil {
		return *p, true
	}
	return Stops{}, false
}

func (s *stops) killed() error {
	now, known := s.get()
	switch {
	case !known:
		return refused("it is not known yet whether an admin stopped all releases: the store could not be read since the start; see the log")
	case now.Killed:
		return refused("the kill switch is on: %s stopped all releases at %s; an admin can turn it off (locksteward release kill-switch off)",
			now.KilledBy, now.KilledAt.UTC().Format(time.RFC3339))
	default:
		return nil
	}
}

// frozenUntil is the end of an admin's freeze that holds at a time; zero for
// none.
func (s *stops) frozenUntil(at time.Time) time.Time {
	if now, _ := s.get(); at.Before(now.FrozenUntil) {
		return now.FrozenUntil
	}
	return time.Time{}
}

// Stops returns what admins stopped.
func (s *Service) Stops() Stops {
	now, _ := s.stops.get()
	return now
}

// SetKillSwitch stops all releases or lets them go on; what the configuration
// says holds besides. It outlives a restart. An admin may; the reason goes into
// the audit trail.
func (s *Service) SetKillSwitch(ctx context.Context, actor Actor, on bool, reason string) error {
	return s.stop(ctx, actor, ActionKillSwitch, reason, onOff(on), func(now *Stops, at time.Time, why string) string {
		now.Killed, now.KilledBy, now.KilledAt, now.KilledWhy = on, "", time.Time{}, ""
		if !on {
			return actor.Name + " turned the kill switch off: releases go on."
		}
		now.KilledBy, now.KilledAt, now.KilledWhy = actor.Name, at, why
		return actor.Name + " turned the kill switch on: nothing is released."
	})
}

// SetFreeze keeps the agent from releasing anything without a person until a
// time; the zero time ends that. An admin may.
func (s *Service) SetFreeze(ctx context.Context, actor Actor, until time.Time, reason string) error {
	return s.stop(ctx, actor, ActionFreeze, reason, onOff(!until.IsZero()), func(now *Stops, _ time.Time, why string) string {
		now.FrozenUntil, now.FrozenBy, now.FrozenWhy = until.UTC(), actor.Name, why
		if until.IsZero() {
			now.FrozenBy, now.FrozenWhy = "", ""
			return actor.Name + " ended the freeze of releases."
		}
		return actor.Name + " froze releases without a person until " + until.UTC().Format(time.RFC3339) + "."
	})
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func (s *Service) stop(ctx context.Context, actor Actor, action, reason, outcome string, alter func(now *Stops, at time.Time, why string) string) error {
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
	at := s.now().UTC()
	var e locksteward.Entry
	said, err := s.stops.change(ctx, func(now *Stops) string { return alter(now, at, reason) }, func(was string, next Stops, said string) (bool, error) {
		e = locksteward.Entry{
			At: at, Actor: actor.Name, Action: action, Reason: reason, Outcome: outcome, Detail: detail{Sentence: said}.json(),
			Event: &locksteward.Event{
				ID: action + "/" + at.Format(time.RFC3339Nano), Kind: locksteward.EventStopped, At: at, Actor: actor.Name, Text: said,
			},
		}
		if s.stops.store == nil {
			return true, s.store.AppendEntries(ctx, e)
		}
		raw, err := json.Marshal(next)
		if err != nil {
			return false, err
		}
		return s.stops.store.SwapSetting(ctx, settingStops, was, string(raw), e)
	})
	if err != nil {
		return err
	}
	s.log.Warn("releases were stopped or let go on", zap.String("what", said))
	return nil
}

// change alters what is stopped, as the store has it, once save has kept it; save
// returns false if the store has something else by now: another replica was faster.
func (s *stops) change(ctx context.Context, alter func(*Stops) string, save func(was string, next Stops, said string) (bool, error)) (said string, err error) {
	done, err := s.take(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	for {
		was, err := s.readInTurn(ctx)
		if err != nil {
			return "", err
		}
		next, _ := s.get()
		said = alter(&next)
		switch kept, err := save(was, next, said); {
		case err != nil:
			return "", err
		case kept:
			s.now.Store(&next)
			return said, nil
		}
	}
}
