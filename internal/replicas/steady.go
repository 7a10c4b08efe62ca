package replicas

import (
	"time"

	"github.com/locksteward/locksteward/store"
)

const (
	// ripeAfter is for how many beats a new replica is there before it is given work
	// that another one does.
	ripeAfter = 4
	// steadyFor is for how long one must be there that was lost before: whoever was
	// frozen, cut off or killed may be so again, and each move of a target costs a sweep
	// of all of it. What nobody does it may take at once. So it is with one that could not
	// reach a target.
	steadyFor = time.Minute
	// lossKept is how long it is remembered that a replica was lost.
	lossKept = 10 * time.Minute
)

// attendance is who is there, since when, and who was lost before. It is not safe
// for concurrent use.
type attendance struct {
	// wait is for how long a new replica waits.
	wait  time.Duration
	there map[string]present // by id
	// lost says when replicas vanished without a word, by name: one that is started
	// again has another id.
	lost map[string]time.Time
	// blind says when a replica said last that it does not reach a target.
	blind map[way]time.Time
}

// way is that of a replica to a target.
type way struct{ id, target string }

// present is a replica that is there.
type present struct {
	name         string
	since, until time.Time // without a gap; as of its last beat
	back         bool      // it was lost before
}

func newAttendance(wait time.Duration) attendance {
	return attendance{wait: wait, there: map[string]present{}, lost: map[string]time.Time{}, blind: map[way]time.Time{}}
}

// note takes in who is there, as the database answered between asked and now.
func (a *attendance) note(replicas []store.Replica, asked, now time.Time) {
	list := make(map[string]present, len(replicas))
	for _, r := range replicas {
		p, known := a.there[r.ID]
		if !known {
			_, back := a.lost[r.Name]
			p = present{name: r.Name, since: now, back: back}
		}
		p.until = asked.Add(r.Left)
		list[r.ID] = p
		for _, target := range r.Blind {
			a.blind[way{r.ID, target}] = now
		}
	}
	for w, at := range a.blind {
		if now.Sub(at) >= steadyFor {
			delete(a.blind, w)
		}
	}
	for id, p := range a.there {
		// Whoever ends as it should takes itself out before it is due.
		if _, still := list[id]; !still && !now.Before(p.until) {
			a.lost[p.name] = now
		}
	}
	for name, at := range a.lost {
		if now.Sub(at) > lossKept {
			delete(a.lost, name)
		}
	}
	a.there = list
}

// ripe says whether a replica has been there for long enough at now to be given what
// another one does.
func (a *attendance) ripe(id string, now time.Time) bool {
	p, known := a.there[id]
	wait := a.wait
	if p.back {
		wait = max(wait, steadyFor)
	}
	return known && now.Sub(p.since) >= wait
}

// shaky says whether a replica did not reach a target less than steadyFor before now.
func (a *attendance) shaky(id, target string, now time.Time) bool {
	at, was := a.blind[way{id, target}]
	return was && now.Sub(at) < steadyFor
}
