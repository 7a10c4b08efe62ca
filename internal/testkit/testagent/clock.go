package testagent

import "time"

// SetClock makes the wall clock of the agent differ from the true one by d, in whole
// seconds, in this life from now on and in those to come; the monotonic clock runs on.
// The agent is one of [Options.Clocked]. It stands for a moment while that is done.
func (a *Agent) SetClock(d time.Duration) {
	a.t.Helper()
	if !a.opts.Clocked {
		a.t.Fatalf("%s has no clock of its own: set Options.Clocked", a.Name)
	}
	a.clock = d
	l := a.last()
	if l == nil || !l.child.Alive() {
		return
	}
	if err := l.child.Freeze(); err != nil {
		a.t.Fatalf("freeze %s: %v", a.Name, err)
	}
	if err := l.wall.set(d); err != nil {
		a.t.Fatalf("set clock of %s: %v", a.Name, err)
	}
	if err := l.child.Thaw(); err != nil {
		a.t.Fatalf("thaw %s: %v", a.Name, err)
	}
}
