package agent

import (
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
)

// held says why people are not told of a firing finding now. It runs inside
// transactions of the store, which it must not use, and waits for nobody who does.
func (a *Agent) held(f locksteward.Finding) string {
	if id, _, ok := alert.SilencedBy(a.silences.Current(), f, time.Now()); ok {
		return alert.SuppressedSilence + ":" + id
	}
	if a.targetDown(f.Target) {
		return alert.SuppressedInhibit + ":target_down"
	}
	return ""
}

// targetDown says whether the last sweep of a target found it down. It holds until a
// sweep that reads the target has ended: by then it is known what is still broken.
// Before the first sweep of this run a target is not known to be down, and what the last
// run found is told at once.
func (a *Agent) targetDown(name string) bool {
	if w, err := a.watched(name); err == nil {
		if down := w.down.Load(); down != nil {
			return *down
		}
	}
	// One of which nothing was heard may be up: people are told.
	return a.remote != nil && a.remote.Down(name)
}

// patternOf is what is told in place of a key, for receivers that are not told
// names.
func (a *Agent) patternOf(class, key string) string {
	return a.current().classes.Pattern(class, key)
}
