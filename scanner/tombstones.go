package scanner

import "time"

// maxGone bounds how many keys are remembered as gone during one sweep.
const maxGone = 100_000

// tombstones are the keys that single reads found gone while a sweep runs, with the server
// time of the read (µs): older readings of the sweep do not count. Otherwise a short lock
// would come back to life when the sweep ends. The table's mutex guards them.
type tombstones struct {
	sweeping bool
	began    time.Time // of the sweep, our clock
	at       map[string]int64
	// before is the time up to which some were forgotten for want of room.
	before int64
}

// addTombstone records that key was gone at at. t.mu is held.
func (t *Table) addTombstone(key string, at int64) {
	d := &t.tombstones
	if !d.sweeping {
		return
	}
	if len(d.at) >= maxGone {
		clear(d.at)
		d.before = max(d.before, at)
	}
	d.at[key] = max(d.at[key], at)
}

// hasTombstone says whether a look at an unknown key is older than what is known
// of it. t.mu is held.
func (t *Table) hasTombstone(l *lockState) bool {
	d := &t.tombstones
	if !d.sweeping {
		return false
	}
	return l.at < d.at[l.key] || l.at < d.before
}

// beginSweep and endSweep are the time in which departures matter.
func (t *Table) beginSweep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tombstones = tombstones{sweeping: true, began: time.Now(), at: map[string]int64{}}
}

func (t *Table) endSweep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tombstones = tombstones{}
	t.dropUnwanted(time.Now())
}

// late returns the locks of the keys of a complete pass (owns) that it did not see and that
// are known all the same: taken while it ran, and read directly since it began at
// began, server time.
func (t *Table) late(owns func(key string) bool, turn uint32, began time.Time) []*entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*entry
	for _, e := range t.entries {
		if e.turn != turn && e.at >= micros(began) && owns(e.key) {
			e.turn = turn
			out = append(out, e)
		}
	}
	return out
}
