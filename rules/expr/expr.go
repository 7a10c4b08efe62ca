package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"
)

// Program is one compiled expression. It is immutable and safe for concurrent
// use.
type Program struct {
	source  string
	program cel.Program
	facts   []string // the paths it reads, in the order of the text
	cost    uint64
	// crossings are the comparisons that time turns.
	crossings []crossing
}

// Compile parses and checks an expression. The error joins one [*Error] for each
// problem.
func Compile(source string) (*Program, error) {
	e, err := environment()
	if err != nil {
		return nil, err
	}
	switch {
	case strings.TrimSpace(source) == "":
		return nil, &Error{Source: source, Line: 1, Column: 1, Problem: "the expression is empty", Remedy: "write one such as lock.age > duration('2h')"}
	case len(source) > MaxSource:
		return nil, &Error{Source: source, Line: 1, Column: 1, Problem: fmt.Sprintf("the expression has %d bytes, %d are the limit", len(source), MaxSource), Remedy: "split it into several rules"}
	}
	checked, issues := check(e, source)
	if err := issues.Err(); err != nil {
		return nil, explain(source, issues)
	}
	if out := checked.OutputType(); !out.IsExactType(cel.BoolType) {
		return nil, &Error{
			Source: source, Line: 1, Column: 1,
			Problem: fmt.Sprintf("is of type %s and must be bool", typeName(out)),
			Remedy:  "compare it with something, such as lock.age > duration('2h')",
		}
	}
	cost, err := e.EstimateCost(checked, sizes{})
	if err != nil {
		return nil, fmt.Errorf("estimate cost of expression: %w", err)
	}
	if cost.Max > MaxCost {
		return nil, tooDear(source, cost.Max)
	}
	p, err := e.Program(checked, cel.CostLimit(MaxCost), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, &Error{Source: source, Line: 1, Column: 1, Problem: err.Error(), Remedy: "docs/expressions.md has what there is"}
	}
	return &Program{source: source, program: p, facts: pathsOf(checked.NativeRep().Expr()), cost: cost.Max, crossings: crossings(e, checked)}, nil
}

// checking lets one goroutine at a time check an expression: in cel-go 0.33.2 the
// first undeclared name sets checker.Env.catalog while a comprehension copies it
// unguarded (checker/env.go, Catalog and cloneWithDecls).
var checking sync.Mutex

func check(e *cel.Env, source string) (*cel.Ast, *cel.Issues) {
	checking.Lock()
	defer checking.Unlock()
	return e.Compile(source)
}

// Source is the expression as it was written.
func (p *Program) Source() string { return p.source }

// Cost is the estimate of the most that one evaluation costs, in the units of
// [MaxCost].
func (p *Program) Cost() uint64 { return p.cost }

// Eval says whether the expression holds. An error says why that is unknown:
// an [*UnknownError] names the fact that is not known; what is wrong otherwise
// ([ErrTooDear], a division by zero, a text that is no number) is explained in words.
// With an error it does not hold.
func (p *Program) Eval(f *Facts) (bool, error) {
	out, _, err := p.program.Eval((*activation)(f))
	if err != nil {
		return false, reason(err)
	}
	return out == types.True, nil
}

// reason turns an evaluation's error into one that can be shown.
func reason(err error) error {
	if unknown, ok := errors.AsType[*UnknownError](err); ok {
		return unknown
	}
	if cancelled, ok := errors.AsType[interpreter.EvalCancelledError](err); ok && cancelled.Cause == interpreter.CostLimitExceeded {
		return ErrTooDear
	}
	return err
}

// pathsOf lists the facts that an expression reads, the longest path of each.
func pathsOf(root ast.Expr) []string {
	var out []string
	inner := map[int64]bool{} // selections that are part of a longer one
	ast.PreOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		if inner[e.ID()] {
			return
		}
		path := pathOf(e, inner)
		if path != "" && !slices.Contains(out, path) {
			out = append(out, path)
		}
	}))
	return out
}

// pathOf is the path of a selection from a variable, or "".
func pathOf(e ast.Expr, inner map[int64]bool) string {
	switch e.Kind() {
	case ast.IdentKind:
		switch name := e.AsIdent(); name {
		case "lock", "class", "now", "target":
			return name
		}
	case ast.SelectKind:
		s := e.AsSelect()
		inner[s.Operand().ID()] = true
		if base := pathOf(s.Operand(), inner); base != "" {
			return base + "." + s.FieldName()
		}
	}
	return ""
}
