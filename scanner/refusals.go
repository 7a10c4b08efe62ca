package scanner

import (
	"slices"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// refusedFor is how long a refusal is reported after the last one that was counted: nobody
// may have tried since.
const refusedFor = eventsFor

// refusals are the reasons for which the server of now takes no writes, as far as server
// proves them: errors that it counted since the look before, or that no replica is in
// step where some must be. How many must be is in its configuration, which nobody
// needs to let us read.
func refusals(was, now serverSeen, server *source.Server) []locksteward.Refusal {
	var out []locksteward.Refusal
	inStep := server.InStep
	for _, reason := range locksteward.RefusalReasons {
		r := locksteward.Refusal{Reason: reason}
		if was.runID == now.runID {
			if k := slices.IndexFunc(was.refusals, func(o locksteward.Refusal) bool { return o.Reason == reason }); k >= 0 {
				r = was.refusals[k]
			}
			if more := now.refused[reason] - was.refused[reason]; was.refused != nil && more > 0 {
				if r.Count == 0 {
					r.After = was.at
				}
				r.Count, r.At, r.Replicas = r.Count+more, now.at, max(0, inStep)
			}
		}
		stands := r.Count > 0 && now.at.Sub(r.At) < refusedFor
		switch reason {
		case locksteward.RefusalSavingFails:
			stands = stands && !server.State.LastSaveOK
			r.Replicas = 0
		case locksteward.RefusalTooFewReplicas:
			// With more in step than it was too few of, it may take writes again.
			stands = stands && inStep >= 0 && inStep <= r.Replicas
			if inStep == 0 {
				stands, r.Replicas = true, 0
				if r.Count == 0 {
					r.At = now.at
				}
			}
		}
		if stands {
			out = append(out, r)
		}
	}
	return out
}

// refusalsOf are those of the server at addr, as a look at at found them.
func (v *servers) refusalsOf(addr string, at time.Time) []locksteward.Refusal {
	if seen, ok := v.nodes[addr]; ok && seen.at.Equal(at) {
		return seen.refusals
	}
	return nil
}
