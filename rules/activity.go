package rules

import (
	"time"

	"github.com/locksteward/locksteward"
)

// activityWindow is how much of the past an [Activity] reports: long enough
// that one burst of a class does not decide.
const activityWindow = 5 * time.Minute

// Activity is what the processes of a target did with the locks of one class, as
// their heartbeats reported within a window. All numbers are lower bounds.
type Activity struct {
	Since     time.Time // server time at which the window begins
	Processes int       // that reported on the class
	Acquired  int64
	Failed    int64
	Contended int64
}

// activities are what heartbeats reported, by target.
type activities map[string]*activity

// activity is that of one target.
type activity struct {
	began     time.Time // server time of the first sweep
	processes map[string]*process
	classes   map[string][]tick // by class, in the order of time
}

// process is the last heartbeat of one process.
type process struct {
	seen   time.Time
	counts map[string]locksteward.Counts
}

// tick is what one sweep added to a class.
type tick struct {
	at        time.Time
	instance  string
	acquired  int64
	failed    int64
	contended int64
}

// take adds what a sweep's heartbeats tell beyond those of the last one.
func (all activities) take(s locksteward.Sweep) *activity {
	a, ok := all[s.Target]
	if !ok {
		a = &activity{began: s.At, processes: map[string]*process{}, classes: map[string][]tick{}}
		all[s.Target] = a
	}
	for i := range s.Instances {
		in := &s.Instances[i]
		if in.Counts == nil {
			continue
		}
		last, known := a.processes[in.ID]
		if !known {
			last = &process{}
			a.processes[in.ID] = last
		}
		for class, now := range in.Counts {
			before, counted := last.counts[class]
			// What a process had done before anybody looked is of no known time. One
			// that began since tells all of itself.
			if !counted && !known && !in.Started.After(a.began) {
				continue
			}
			a.add(class, in.ID, s.At, grown(now, before))
		}
		last.seen, last.counts = s.At, in.Counts
	}
	a.forget(s.At)
	return a
}

// grown is by how much the counts grew; a count that went back is another
// process's and adds nothing.
func grown(now, before locksteward.Counts) locksteward.Counts {
	return locksteward.Counts{
		Acquired:  max(0, now.Acquired-before.Acquired),
		Failed:    max(0, now.Failed-before.Failed),
		Contended: max(0, now.Contended-before.Contended),
	}
}

func (a *activity) add(class, instance string, at time.Time, n locksteward.Counts) {
	if n.Acquired+n.Failed > 0 {
		a.classes[class] = append(a.classes[class], tick{
			at: at, instance: instance, acquired: n.Acquired, failed: n.Failed, contended: n.Contended,
		})
	}
}

// forget drops what lies before the window, and processes without a heartbeat
// within it.
func (a *activity) forget(now time.Time) {
	from := now.Add(-activityWindow)
	for id, p := range a.processes {
		if p.seen.Before(from) {
			delete(a.processes, id)
		}
	}
	for class, ticks := range a.classes {
		keep := 0
		for keep < len(ticks) && ticks[keep].at.Before(from) {
			keep++
		}
		if keep == len(ticks) {
			delete(a.classes, class)
			continue
		}
		a.classes[class] = ticks[keep:]
	}
}

// of sums up what is known of a class at now.
func (a *activity) of(class string, now time.Time) *Activity {
	if a == nil {
		return nil
	}
	ticks := a.classes[class]
	if len(ticks) == 0 {
		return nil
	}
	out := &Activity{Since: now.Add(-activityWindow)}
	if a.began.After(out.Since) {
		out.Since = a.began
	}
	processes := map[string]bool{}
	for _, t := range ticks {
		out.Acquired += t.acquired
		out.Failed += t.failed
		out.Contended += t.contended
		processes[t.instance] = true
	}
	out.Processes = len(processes)
	return out
}
