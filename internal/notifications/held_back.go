package notifications

import (
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
)

// heldBy returns why notifications of a firing finding are held back: by a silence or by
// inhibition; "" if they are not. It runs inside transactions of the store, which it must
// not use, and waits for no one who does.
func (s *Sender) heldBy(f locksteward.Finding) string {
	if id, _, ok := alert.SilencedBy(s.deps.Silences(), f, time.Now()); ok {
		return alert.SuppressedSilence + ":" + id
	}
	if s.targetDown(f.Target) {
		return alert.SuppressedInhibit + ":target_down"
	}
	return ""
}

// targetDown reports whether the last sweep of a target found it down. That holds until a
// sweep that reads the target has ended, when it is known what is still broken. Before
// the first sweep of this run no target is down, so that what the last run found is not
// held back.
func (s *Sender) targetDown(name string) bool {
	if w, err := s.deps.Targets.Get(name); err == nil {
		if down := w.Down(); down != nil {
			return *down
		}
	}
	// A target without news may be up: nothing is held back.
	return s.deps.DownElsewhere(name)
}

// keyPattern is the pattern of a class that a key matches, for receivers that do not see
// names of locks.
func (s *Sender) keyPattern(class, key string) string {
	return s.deps.Targets.Now().Classes.Pattern(class, key)
}
