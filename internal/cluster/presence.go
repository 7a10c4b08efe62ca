package cluster

import (
	"time"

	"github.com/locksteward/locksteward/store"
)

const (
	// stableAfter is after how many heartbeats a new replica is given duties that another one works on.
	stableAfter = 4
	// unreliableFor is for how long a replica that was lost must be present before it is given duties that another one
	// works on: it may freeze, be cut off or be killed again, and each move of a target costs a sweep of all of it. Duties
	// without an owner it may acquire at once. The same holds for a replica that could not reach a target.
	unreliableFor = time.Minute
	// lossKept is for how long it is remembered that a replica was lost.
	lossKept = 10 * time.Minute
)

// presence is which replicas are present, since when, and which of them were lost before. It is not safe for concurrent
// use.
type presence struct {
	wait    time.Duration // until a new replica is stable
	present map[string]presentReplica
	lost    map[string]time.Time // when replicas vanished without leaving, by name: a restarted one has another id
	// unreachable is when a replica reported last that it cannot reach a target.
	unreachable map[replicaTarget]time.Time
}

// replicaTarget is a replica and a target that it may or may not reach.
type replicaTarget struct{ replica, target string }

type presentReplica struct {
	name         string
	since, until time.Time // present without a gap; until as of its last heartbeat
	returned     bool      // it was lost before
}

func newPresence(wait time.Duration) presence {
	return presence{wait: wait, present: map[string]presentReplica{}, lost: map[string]time.Time{}, unreachable: map[replicaTarget]time.Time{}}
}

// update applies the replicas that the database returned between asked and now.
func (p *presence) update(replicas []store.Replica, asked, now time.Time) {
	present := make(map[string]presentReplica, len(replicas))
	for _, r := range replicas {
		one, known := p.present[r.ID]
		if !known {
			_, returned := p.lost[r.Name]
			one = presentReplica{name: r.Name, since: now, returned: returned}
		}
		one.until = asked.Add(r.Left)
		present[r.ID] = one
		for _, target := range r.Unreachable {
			p.unreachable[replicaTarget{r.ID, target}] = now
		}
	}
	for key, at := range p.unreachable {
		if now.Sub(at) >= unreliableFor {
			delete(p.unreachable, key)
		}
	}
	for id, one := range p.present {
		// A replica that leaves in order removes itself before it expires.
		if _, still := present[id]; !still && !now.Before(one.until) {
			p.lost[one.name] = now
		}
	}
	for name, at := range p.lost {
		if now.Sub(at) > lossKept {
			delete(p.lost, name)
		}
	}
	p.present = present
}

// stable reports whether a replica has been present for long enough at now to be given duties that another one works on.
func (p *presence) stable(id string, now time.Time) bool {
	one, present := p.present[id]
	wait := p.wait
	if one.returned {
		wait = max(wait, unreliableFor)
	}
	return present && now.Sub(one.since) >= wait
}

// unreliable reports whether a replica could not reach a target less than unreliableFor before now.
func (p *presence) unreliable(id, target string, now time.Time) bool {
	at, was := p.unreachable[replicaTarget{id, target}]
	return was && now.Sub(at) < unreliableFor
}
