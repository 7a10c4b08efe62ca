package exporter

import (
	"cmp"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// counted are the counters that have several sources.
type counted struct {
	acquires      float64
	failures      float64 // attempts that ended without the lock
	renewals      float64
	renewFailures float64
	lost          float64
}

// add counts what a hold's own counters grew by.
func (c *counted) add(m marks) {
	c.renewals += float64(m.renewals)
	c.renewFailures += float64(m.failures)
}

// of is where what a look tells is counted.
func (c *tally) of(l seenLock) *counted {
	if l.facts.has(hasClaim) {
		return &c.seen
	}
	return &c.foreign
}

// total is what is shown. What sweeps saw of our library and what its processes
// reported are two lower bounds of one truth, so the larger counts and not their sum.
// Both only grow, and so does the larger.
func (c *tally) total() counted {
	return counted{
		acquires:      c.foreign.acquires + max(c.seen.acquires, c.reported.acquires),
		failures:      c.foreign.failures + max(c.seen.failures, c.reported.failures),
		renewals:      c.foreign.renewals + max(c.seen.renewals, c.reported.renewals),
		renewFailures: c.foreign.renewFailures + max(c.seen.renewFailures, c.reported.renewFailures),
		lost:          c.foreign.lost + max(c.seen.lost, c.reported.lost),
	}
}

// heartbeat is what a process reported last.
type heartbeat struct {
	seen   time.Time // server time
	counts map[string]locksteward.Counts
}

// heartbeatKept is for how long a process that was not seen is remembered: its
// counts go on when it is back.
const heartbeatKept = 10 * time.Minute

// hear counts by how much the counts of each process grew. What it had done
// before this agent saw it is not counted, unless it began since.
func (e *Exporter) hear(t *target, s locksteward.Sweep) {
	for i := range s.Instances {
		p := &s.Instances[i]
		if p.Counts == nil {
			continue
		}
		last, known := t.processes[p.ID]
		for name, now := range p.Counts {
			c := e.tallyOf(t, cmp.Or(name, class.Default))
			c.claimed = true
			if known || p.Started.After(t.began) {
				c.reported.hear(now, last.counts[name])
			}
		}
		t.processes[p.ID] = heartbeat{seen: s.At, counts: p.Counts}
	}
	for id, p := range t.processes {
		if s.At.Sub(p.seen) > heartbeatKept {
			delete(t.processes, id)
		}
	}
}

// hear adds the growth of a process's counts; a count that went back is another
// process's and adds nothing.
func (c *counted) hear(now, before locksteward.Counts) {
	add := func(to *float64, now, before int64) { *to += float64(max(0, now-before)) }
	add(&c.acquires, now.Acquired, before.Acquired)
	add(&c.failures, now.Failed, before.Failed)
	add(&c.renewals, now.Renewed, before.Renewed)
	add(&c.renewFailures, now.RenewFailures, before.RenewFailures)
	add(&c.lost, now.Lost, before.Lost)
}
