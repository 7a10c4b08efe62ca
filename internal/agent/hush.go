package agent

import (
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
)

// held says why people are not told of a firing finding now. It runs inside
// transactions of the store, which it must not use, and waits for nobody who does.
func (a *Agent) held(f locksteward.Finding) string {
	if id, _, ok := alert.SilencedBy(a.silences(), f, time.Now()); ok {
		return alert.SuppressedSilence + ":" + id
	}
	// Before the first look of this run it is not known to be down, and what the last
	// run found is told at once.
	if w, err := a.watched(f.Target); err == nil {
		if w.looked.Load() && !w.scanner.State().Up {
			return alert.SuppressedInhibit + ":target_down"
		}
	} else if a.fleet != nil {
		// One of which nothing was heard may be up: people are told.
		if t, ok := a.fleet.target(f.Target); ok && !t.Up && t.LastSweep != nil {
			return alert.SuppressedInhibit + ":target_down"
		}
	}
	return ""
}

// patternOf is what is told in place of a key, for receivers that are not told
// names.
func (a *Agent) patternOf(class, key string) string {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.classes.Pattern(class, key)
}
