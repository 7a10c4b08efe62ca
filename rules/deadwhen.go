package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/rules/expr"
)

// ruleID is what a rule's id looks like. No expression of type bool does: a/b is
// a quotient.
var ruleID = regexp.MustCompile(`^[a-z][a-z0-9-]*/[a-z][a-z0-9-]*$`)

// IsRuleID says whether an element of dead_when names a rule; else it is an
// expression.
func IsRuleID(element string) bool { return ruleID.MatchString(element) }

// ValidateDeadWhen reports all problems of the classes' dead_when: ids of rules
// that do not exist under this configuration, and expressions that do not
// compile. Each begins with its path ("classes[1].dead_when[0]: …").
func (c Config) ValidateDeadWhen(classes []class.Class) []error {
	var errs []error
	ids := Names()
	for _, rc := range c {
		if isCustom(rc.Rule) && !slices.Contains(ids, rc.Rule) {
			ids = append(ids, rc.Rule)
		}
	}
	for i, cl := range classes {
		for j, element := range cl.DeadWhen {
			path := fmt.Sprintf("classes[%d].dead_when[%d]", i, j)
			switch {
			case element == "":
				// The class reports it itself.
			case IsRuleID(element):
				if !slices.Contains(ids, element) {
					errs = append(errs, fmt.Errorf("%s: got %q, which is no rule; write one of %s, or an expression such as lock.age > duration('2h')",
						path, element, strings.Join(ids, ", ")))
				}
			default:
				if _, err := expr.Compile(element); err != nil {
					errs = append(errs, expressionProblems(path, err)...)
				}
			}
		}
	}
	return errs
}

// deadWhen are the expressions of the classes' dead_when, by class.
func deadWhen(classes *class.Set) map[string][]*expr.Program {
	out := map[string][]*expr.Program{}
	for _, c := range classes.All() {
		for _, element := range c.DeadWhen {
			if element == "" || IsRuleID(element) {
				continue
			}
			if p, err := expr.Compile(element); err == nil {
				out[c.Name] = append(out[c.Name], p)
			}
		}
	}
	return out
}

// DeadWhen returns the expressions of dead_when of the lock's class that hold for
// the lock as it is given, in their order and as they were written. Doubt means
// alive: an expression over something that is not known does not hold, none holds
// for a lock whose constant token may hide that it changed hands, and none while
// verdicts of death pause ([Engine.Paused]).
func (e *Engine) DeadWhen(l locksteward.Lock) []string {
	e.mu.Lock()
	p := e.policy
	e.mu.Unlock()
	programs := p.dead[l.Class]
	if len(programs) == 0 || l.Kind == locksteward.KindCandidate || hidesTurnover(&l) {
		return nil
	}
	return e.deadWhen(p, programs, l)
}

func (e *Engine) deadWhen(p *policy, programs []*expr.Program, l locksteward.Lock) []string {
	if _, _, paused := e.Paused(l.Target, l.At); paused {
		return nil
	}
	l = withoutWritten(l)
	f := factsOf(Input{Now: l.At, Class: p.classOf(l.Class), Lock: &l})
	var out []string
	for _, program := range programs {
		if holds, err := program.Eval(&f); err == nil && holds {
			out = append(out, program.Source())
		}
	}
	return out
}

// Firing returns the ids of the rules that fire on a lock, sorted, each once: what
// may call it dead, if its class says so. A rule that fires only because of the
// time in the lock's value is left out: no verdict of death rests on a clock that
// is not the server's.
func (e *Engine) Firing(l locksteward.Lock) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, basis, _ := l.Age()
	written := basis == locksteward.AgeClaimed && isWritten(&l)
	observed := withoutWritten(l)
	in := e.situated(l.Target, Input{Now: l.At, Class: e.policy.classOf(l.Class), Lock: &observed})
	var out []string
	for tr := range e.table.of(subject{target: l.Target, db: l.DB, key: l.Key}) {
		if tr.kind.status != locksteward.StatusFiring {
			continue
		}
		if written && tr.kind.scope == ScopeLock {
			i := slices.IndexFunc(e.policy.locks, func(r Rule) bool { return r.Doc().Name == tr.kind.rule })
			if i >= 0 && e.policy.locks[i].Evaluate(in).Finding == nil {
				continue
			}
		}
		out = append(out, tr.kind.rule)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hidesTurnover says that a release and a new acquisition between two looks
// would leave no trace: what is seen of such a lock never supports a verdict of
// death.
func hidesTurnover(l *locksteward.Lock) bool {
	return l.SharedToken && (l.Claim == nil || l.Claim.Acquired.IsZero())
}

// withoutWritten is the lock without the time in its value: no verdict of death
// rests on a clock that is not the server's.
func withoutWritten(l locksteward.Lock) locksteward.Lock {
	l.Acquired, l.Asked = time.Time{}, false
	return l
}

// deadWhen says of each expression of dead_when whether it holds for the lock
// and why not.
func (x explanation) deadWhen() []Verdict {
	l := x.lock
	var out []Verdict
	event, paused := x.e.situations[l.Target].pause(l.At)
	paused = paused && !event.After.IsZero()
	observed := withoutWritten(*l)
	f := factsOf(Input{Now: l.At, Class: x.plan.class, Lock: &observed})
	for _, program := range x.e.policy.dead[x.plan.class.Name] {
		v := Verdict{Rule: "dead_when", Result: Clear, Reason: "does not hold: " + program.Source()}
		switch holds, err := program.Eval(&f); {
		case l.Kind == locksteward.KindCandidate:
			v.Result, v.Reason = NotApplicable, "the key only looks like a lock, by its name (a candidate)"
		case hidesTurnover(l):
			v.Result, v.Reason = NotApplicable, "a constant token hides turnover: no verdict of death rests on it"
		case paused:
			v.Result, v.Reason = NotApplicable, pausedReason(event)
		case err != nil:
			v.Result, v.Reason = NotApplicable, err.Error()+": "+program.Source()
		case holds:
			v.Result, v.Reason = Fires, "holds: "+program.Source()
		}
		out = append(out, v)
	}
	return out
}
