package expr

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/common/cost"
)

// MaxCost limits one evaluation, in CEL's units of roughly one comparison each.
// At 100,000 locks a sweep an expression at the limit takes seconds; usual ones
// cost 5 to 50.
const MaxCost = 2000

// ErrTooDear says that an evaluation was stopped at [MaxCost].
var ErrTooDear = fmt.Errorf("the expression cost more than %d for this lock and was stopped; compare with == or startsWith in place of matches, or look at fewer elements", MaxCost)

func tooDear(source string, estimate uint64) *Error {
	if estimate > 1_000_000_000 {
		return &Error{
			Source: source, Line: 1, Column: 1, Problem: fmt.Sprintf("has no bound on what it costs, %d for one lock is the limit", MaxCost),
			Remedy: "compare single facts such as lock.key",
		}
	}
	return &Error{
		Source: source, Line: 1, Column: 1,
		Problem: fmt.Sprintf("may cost %d for one lock, %d is the limit", estimate, MaxCost),
		Remedy:  "compare with ==, startsWith or endsWith in place of matches, test lock.class first, or split it into several rules",
	}
}

// sizes tells the estimate how large facts usually are.
type sizes struct{}

// EstimateSize implements [cost.Estimator].
func (sizes) EstimateSize(node cost.AstNode) *cost.SizeEstimate {
	path := strings.Join(node.Path(), ".")
	if base, items := strings.CutSuffix(path, ".@items"); items && base != "" {
		return &cost.SizeEstimate{Min: 0, Max: sizeName}
	}
	for _, o := range described {
		if name, ok := strings.CutPrefix(path, o.path+"."); ok {
			for i := range o.fields {
				if f := &o.fields[i]; f.name == name && f.size > 0 {
					return &cost.SizeEstimate{Min: 0, Max: f.size}
				}
			}
		}
	}
	return nil
}

// EstimateCallCost implements [cost.Estimator]: all functions are the library's.
func (sizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}

// described are the objects, made once and read only.
var described = objects()

var _ cost.Estimator = sizes{}
