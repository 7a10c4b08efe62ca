package rules

import (
	"iter"

	"github.com/locksteward/locksteward"
)

// stepLocks is how many locks are judged in one step of a sweep: a few milliseconds.
const stepLocks = 2000

// EvaluateSteps is [Engine.EvaluateSweep] in steps. Between two of them others may
// evaluate: what a watch tells meanwhile does not wait until 100,000 locks are judged.
// Each step gives its transitions in their order, and they are to be passed on before the
// next step and before those of what is evaluated meanwhile. The first step takes in what
// is beyond single locks, and the holds that are over.
//
// What is evaluated meanwhile was read later than the sweep: so the sweep has to
// yield a lock as it is known then ([locksteward.Sweep.SetLocks]). What they found stays.
func (e *Engine) EvaluateSteps(s locksteward.Sweep) iter.Seq[Transitions] {
	return func(yield func(Transitions) bool) {
		e.mu.Lock()
		locked := true
		defer func() {
			if locked {
				e.mu.Unlock()
			}
		}()
		p := e.begin(s.Target, s.At)
		step := func() bool {
			out := p.finish()
			p.transitions, p.changed, p.deadlocks = nil, nil, nil
			e.mu.Unlock()
			locked = false
			if !yield(out) {
				return false
			}
			e.mu.Lock()
			locked = true
			return true
		}
		_ = p.sweep(s, step) && step()
	}
}

// sweep judges a sweep. It asks step now and then whether to go on, and says whether it
// came to the end.
func (p *pass) sweep(s locksteward.Sweep, step func() bool) bool {
	p.e.learn(s)
	p.endings(s.Endings)
	p.hosts(s)
	p.waits(readOfSweep(s))
	if !step() || !p.locks(s.AllLocks(), step) || !step() {
		return false
	}
	p.servers(s)
	p.losses(s.Losses)
	if len(s.Masters) > 0 {
		p.orders(s)
		p.activities(s)
	}
	if s.Complete() {
		p.groups(s)
		p.resolveUnseen()
	}
	return true
}
