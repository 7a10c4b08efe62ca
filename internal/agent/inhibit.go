package agent

import (
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
)

// heldBy returns why notifications of a firing finding are held back: by a silence or by
// inhibition; "" if they are not. It runs inside transactions of the store, which it must
// not use, and waits for no one who does.
func (a *Agent) heldBy(f locksteward.Finding) string {
	if id, _, ok := alert.SilencedBy(a.silences.Current(), f, time.Now()); ok {
		return alert.SuppressedSilence + ":" + id
	}
	if a.targetDown(f.Target) {
		return alert.SuppressedInhibit + ":target_down"
	}
	return ""
}

// targetDown reports whether the last sweep of a target found it down. That holds until a
// sweep that reads the target has ended, when it is known what is still broken. Before
// the first sweep of this run no target is down, so that what the last run found is not
// held back.
func (a *Agent) targetDown(name string) bool {
	if w, err := a.targets.Get(name); err == nil {
		if down := w.Down(); down != nil {
			return *down
		}
	}
	// A target without news may be up: nothing is held back.
	return a.remote != nil && a.remote.Down(name)
}

// keyPattern is the pattern of a class that a key matches, for receivers that do not see
// names of locks.
func (a *Agent) keyPattern(class, key string) string {
	return a.targets.Now().Classes.Pattern(class, key)
}
