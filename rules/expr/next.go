package expr

import (
	"math"
	"slices"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/locksteward/locksteward"
)

// crossing is a comparison of two durations or two times of which one moves with
// the clock: it turns at a moment that can be computed.
type crossing struct{ left, right cel.Program }

// moving are the facts that change while nobody writes.
var moving = []string{"now", "lock.age", "lock.ttl", "lock.idle", "lock.instance.beat_age"}

// orderings are the comparisons that stay as they turned.
var orderings = []string{"_<_", "_<=_", "_>_", "_>=_"}

// crossings finds the comparisons that time turns. One that cannot be compiled on
// its own (it is about an element of a list) is left out.
func crossings(e *cel.Env, checked *cel.Ast) []crossing {
	native := checked.NativeRep()
	var out []crossing
	ast.PreOrderVisit(native.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		if x.Kind() != ast.CallKind || !slices.Contains(orderings, x.AsCall().FunctionName()) || len(x.AsCall().Args()) != 2 {
			return
		}
		args := x.AsCall().Args()
		switch t := native.GetType(args[0].ID()); {
		case !t.IsExactType(cel.DurationType) && !t.IsExactType(cel.TimestampType):
			return
		case !moves(args[0]) && !moves(args[1]):
			return
		}
		left, okLeft := part(e, native, args[0])
		right, okRight := part(e, native, args[1])
		if okLeft && okRight {
			out = append(out, crossing{left, right})
		}
	}))
	return out
}

// moves says that an expression reads a fact that time alone changes.
func moves(x ast.Expr) bool {
	return slices.ContainsFunc(pathsOf(x), func(path string) bool { return slices.Contains(moving, path) })
}

// part is one side of a comparison as a program of its own.
func part(e *cel.Env, whole *ast.AST, x ast.Expr) (cel.Program, bool) {
	source, err := cel.ExprToString(x, whole.SourceInfo())
	if err != nil {
		return nil, false
	}
	checked, issues := check(e, source)
	if issues.Err() != nil {
		return nil, false
	}
	p, err := e.Program(checked, cel.CostLimit(MaxCost))
	return p, err == nil
}

// justAfter is added to the moment at which a comparison turns.
const justAfter = time.Millisecond

// Next returns after how long the expression says something else of the lock, if
// nobody writes to it until then and a comparison of durations or times makes the
// difference; false if none does. What else time changes (the hour of the day, an
// age as a number) is not looked at. Not to be known counts as not to hold.
func (p *Program) Next(f *Facts) (time.Duration, bool) {
	if len(p.crossings) == 0 {
		return 0, false
	}
	var turns []time.Duration
	second := shifted(f, time.Second)
	for _, c := range p.crossings {
		now, ok := c.gap(f)
		then, okThen := c.gap(&second)
		if !ok || !okThen || now == then {
			continue
		}
		after := -float64(now) / (float64(then) - float64(now)) * float64(time.Second)
		if after >= 0 && after < math.MaxInt64/2 {
			turns = append(turns, time.Duration(math.Ceil(after))+justAfter)
		}
	}
	slices.Sort(turns)
	holds, _ := p.Eval(f)
	for _, d := range turns {
		later := shifted(f, d)
		if then, _ := p.Eval(&later); then != holds {
			return d, true
		}
	}
	return 0, false
}

// shifted is what is known of the lock if it is looked at d later and nobody wrote
// to it.
func shifted(f *Facts, d time.Duration) Facts {
	out := *f
	l := *f.Lock
	out.Lock, out.Now, l.At = &l, f.Now.Add(d), l.At.Add(d)
	out.Age.Value += d
	if l.TTL != locksteward.NoExpiry {
		l.TTL -= d
	}
	if l.Idle >= 0 {
		l.Idle += d
	}
	return out
}

// gap is left less right; false where one is not known.
func (c crossing) gap(f *Facts) (time.Duration, bool) {
	left, _, err := c.left.Eval((*activation)(f))
	if err != nil {
		return 0, false
	}
	right, _, err := c.right.Eval((*activation)(f))
	if err != nil {
		return 0, false
	}
	return between(left, right)
}

func between(left, right ref.Val) (time.Duration, bool) {
	switch l := left.(type) {
	case types.Duration:
		r, ok := right.(types.Duration)
		d := l.Duration - r.Duration
		overflow := (d < l.Duration) != (r.Duration > 0)
		return d, ok && !overflow
	case types.Timestamp:
		r, ok := right.(types.Timestamp)
		if !ok {
			return 0, false
		}
		d := l.Time.Sub(r.Time) // at most the longest duration
		return d, d != math.MaxInt64 && d != math.MinInt64
	}
	return 0, false
}
