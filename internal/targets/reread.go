package targets

import (
	"context"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/rules"
)

// rereadEvery is how often a lock with an open finding is read, at least: a sweep may take much longer.
const rereadEvery = time.Minute

// rereading reads locks with open findings again until ctx ends.
func (w *Watched) rereading(ctx context.Context) {
	tick := time.NewTicker(rereadEvery / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if isDown := w.down.Load(); w.scanner.Paused() != nil || isDown != nil && *isDown {
			continue
		}
		for part := range slices.Chunk(w.unread(time.Now()), atOnce) {
			w.lookAt(ctx, w.scanner.RecheckPaced, part, w.tellChanges)
		}
	}
}

// unread returns the known locks with open findings that nothing has read for most of [rereadEvery] before now.
func (w *Watched) unread(now time.Time) []locksteward.Lock {
	table := w.scanner.Table()
	var out []locksteward.Lock
	done := map[rules.LockKey]bool{}
	for f := range w.deps.Engine.FindingsOn(w.target.Name).Outlines() {
		at := rules.LockKey{DB: f.DB, Key: f.Key}
		if f.Key == "" || done[at] {
			continue
		}
		done[at] = true
		l, ok := table.Get(f.DB, f.Key)
		if !ok {
			continue // a loss, or what the next sweep reads
		}
		offset, _ := table.ClockOffset(l.Node)
		if now.Add(offset).Sub(l.At) >= rereadEvery*3/4 {
			out = append(out, l)
		}
	}
	return out
}
