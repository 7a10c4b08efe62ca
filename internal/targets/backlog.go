package targets

import (
	"slices"
	"sync"
	"time"

	"github.com/locksteward/locksteward"
)

// maxUnsaved bounds the events on one target that wait for a failing store.
const maxUnsaved = 20_000

// backlog is what the store did not take.
type backlog struct {
	mu      sync.Mutex                 // guards all fields
	changes int                        // how many changes of findings; 0: the store has all
	events  []locksteward.FindingEvent // those that the store does not have
	again   time.Time                  // not before it does the store get them
	fenced  bool                       // the store said that another replica has the lease
}

// begin notes the first change that the store does not take.
func (b *backlog) begin(again time.Time, fenced bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changes, b.again, b.fenced = 1, again, fenced
}

// addIfAny counts one change more if the store lacks some already, and says whether it does.
func (b *backlog) addIfAny() (behind, fenced bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changes == 0 {
		return false, false
	}
	b.changes++
	return true, b.fenced
}

// addEvents keeps events, and returns how many there was no room for.
func (b *backlog) addEvents(events []locksteward.FindingEvent) (lost int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	room := min(maxUnsaved-len(b.events), len(events))
	b.events = append(b.events, events[:room]...)
	return len(events) - room
}

// size is how many changes the store does not have.
func (b *backlog) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changes
}

// now returns the size, and the events.
func (b *backlog) now() (changes int, events []locksteward.FindingEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changes, slices.Clone(b.events)
}

// take returns the events, which are nobody's to write any more.
func (b *backlog) take() []locksteward.FindingEvent {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.events
	b.events = nil
	return out
}

// isPatient reports whether the store failed just now. Nothing is sent from memory while it
// is being written, and a store that another program locks lets a writer wait for
// seconds: the time between two attempts is at least as long as one.
func (b *backlog) isPatient(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changes > 0 && now.Before(b.again)
}

// postpone sets when the store is asked again, after an attempt that began then.
func (b *backlog) postpone(began time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.again = time.Now().Add(max(keepEvery, time.Since(began)))
}

// fail is postpone of an attempt to write.
func (b *backlog) fail(began time.Time, fenced bool) {
	b.postpone(began)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fenced = fenced
}

// saved notes that the store has what now returned, and reports whether that is all.
func (b *backlog) saved(changes, events int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = b.events[events:]
	if b.changes > changes {
		return false
	}
	b.changes = 0
	return true
}
