package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/rules/expr"
)

// CustomPrefix begins the id of every rule that the configuration itself makes.
const CustomPrefix = "custom/"

// customPage is the page of all custom rules.
const customPage = "docs/rules/custom.md"

// customName is what may stand behind the prefix: the id is a metric label and
// part of a fingerprint.
var customName = regexp.MustCompile(`^custom/[a-z][a-z0-9-]{0,47}$`)

// isCustom says whether a rule id is one of the configuration's own.
func isCustom(id string) bool { return strings.HasPrefix(id, CustomPrefix) }

// custom is a rule of the configuration: a CEL expression over the facts of one
// lock. It is immutable.
type custom struct {
	doc     Doc
	program *expr.Program
	classes []string
	summary string
}

// custom compiles one entry of the configuration.
func (rc RuleConfig) custom() (custom, error) {
	program, err := expr.Compile(rc.When)
	if err != nil {
		return custom{}, err
	}
	title := "The expression of a rule of your own holds"
	if rc.Summary != "" {
		title = rc.Summary
	}
	r := custom{program: program, classes: rc.Classes, summary: rc.Summary, doc: Doc{
		Name: rc.Rule, Title: title, Scope: ScopeLock, Severity: locksteward.SeverityWarning,
		Cause:  message("custom.cause"),
		Remedy: message("custom.remedy"),
	}}
	if rc.Remedy != "" {
		r.doc.Remedy = locksteward.Literal(rc.Remedy)
	}
	return r, nil
}

// customs are the custom rules that are whole, in the order of their names; what
// is wrong with the others [Config.problems] says.
func (c Config) customs() []Rule {
	var out []Rule
	for _, rc := range c {
		if !isCustom(rc.Rule) || rc.When == "" {
			continue
		}
		if r, err := rc.custom(); err == nil {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b Rule) int { return strings.Compare(a.Doc().Name, b.Doc().Name) })
	return out
}

// Rules returns all rules that run under this configuration: the built-in ones
// in the order of their names, then its own. A rule of its own that does not
// compile is left out; [Config.Validate] says why.
func (c Config) Rules() []Rule { return append(All(), c.customs()...) }

// Doc implements [Rule].
func (r custom) Doc() Doc { return r.doc }

// Evaluate implements [Rule].
func (r custom) Evaluate(in Input) Verdict {
	if len(r.classes) > 0 && !slices.Contains(r.classes, in.Class.Name) {
		return in.notApplicable(func() string {
			return fmt.Sprintf("the rule is for other classes than %q: %s", in.Class.Name, strings.Join(r.classes, ", "))
		})
	}
	f := factsOf(in)
	holds, err := r.program.Eval(&f)
	switch {
	case err != nil:
		return in.notApplicable(err.Error)
	case !holds:
		return in.clear(func() string { return "does not hold: " + r.program.Source() })
	}
	l := in.Lock
	key := locksteward.LockName(l.Key)
	summary := message("custom.summary", r.doc.Name, key)
	if r.summary != "" {
		summary = message("custom.summary-of-its-own", r.summary, key)
	}
	shown, missing := r.program.Show(&f)
	return in.fires(locksteward.Finding{
		Summary:  summary,
		Evidence: join(append([]locksteward.Message{message("custom.holds", r.program.Source())}, shown...)...),
		CounterEvidence: join(append(missing,
			minimumLine(l, provenAge(l)),
			aliveLine(l, in.Now),
			nameOnlyLine(l),
		)...),
	})
}

// factsOf is what an expression sees: the facts of the lock, with no more age
// than is proven.
func factsOf(in Input) expr.Facts {
	l := in.Lock
	f := expr.Facts{Now: in.Now, Lock: l, Class: in.Class, Alive: alive(l.Instance, in.Now)}
	_, _, minimum := l.Age()
	if a := provenAge(l); !a.doubted() || a.proven > 0 {
		f.Age = expr.Age{Value: a.proven, Basis: a.basis, Minimum: minimum}
	}
	return f
}

// customProblems are those of the fields that only a rule of one's own has; path
// is that of the entry.
func (rc RuleConfig) customProblems(path string) []error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s.%s: %w", path, field, fmt.Errorf(format, args...)))
	}
	if !isCustom(rc.Rule) {
		for _, f := range []struct{ key, value string }{{"when", rc.When}, {"summary", rc.Summary}, {"remedy", rc.Remedy}} {
			if f.value != "" {
				bad(f.key, "is for rules of your own, got it beside %q; write rule: custom/NAME, or leave it out", rc.Rule)
			}
		}
		return errs
	}
	if !customName.MatchString(rc.Rule) {
		bad("rule", "must be custom/ and a name of at most 48 lower-case letters, digits and dashes that begins with a letter, got %q; write one such as custom/old-batch", rc.Rule)
	}
	if rc.When == "" {
		bad("when", "must not be empty for a rule of your own; write an expression such as lock.age > duration('2h') (docs/expressions.md)")
	} else if _, err := rc.custom(); err != nil {
		errs = append(errs, expressionProblems(path+".when", err)...)
	}
	for _, f := range []struct{ key, value string }{{"summary", rc.Summary}, {"remedy", rc.Remedy}} {
		if len(f.value) > maxText {
			bad(f.key, "must be at most %d bytes, got %d; write a shorter one", maxText, len(f.value))
		}
		if strings.ContainsAny(f.value, "\n\r\t") {
			bad(f.key, "must be one line, got %q; write one sentence", f.value)
		}
	}
	return errs
}

// maxText bounds summary and remedy: they stand in every alert.
const maxText = 300

// expressionProblems puts the path before each problem of an expression. The
// errors wrap *expr.Error, which knows the place.
func expressionProblems(path string, err error) []error {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	var errs []error
	for _, e := range all {
		errs = append(errs, fmt.Errorf("%s: %w", path, e))
	}
	return errs
}
