package expr

import (
	"fmt"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

const (
	// MaxSource is the longest expression, in bytes.
	MaxSource = 2048
	// maxDepth bounds how deep an expression may nest.
	maxDepth = 50
	// maxRegex bounds the compiled size of a regular expression.
	maxRegex = 500
)

// environment is the one environment of all expressions. It is built once, does
// not change after that, and takes a few milliseconds.
var environment = sync.OnceValues(newEnvironment)

func newEnvironment() (*cel.Env, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, fmt.Errorf("build expression types: %w", err)
	}
	facts := newProvider(registry)
	subset := &env.LibrarySubset{}
	for _, f := range Functions() {
		if f.Macro {
			subset.IncludeMacros = append(subset.IncludeMacros, f.Name)
		} else {
			subset.IncludeFunctions = append(subset.IncludeFunctions, &env.Function{Name: f.id})
		}
	}
	// The macros over lists are written with this one inside.
	subset.IncludeFunctions = append(subset.IncludeFunctions, &env.Function{Name: "@not_strictly_false"})
	e, err := cel.NewCustomEnv(
		cel.StdLib(cel.StdLibSubset(subset)),
		cel.CustomTypeAdapter(registry),
		cel.CustomTypeProvider(facts),
		cel.Variable("lock", cel.ObjectType(lockType)),
		cel.Variable("class", cel.ObjectType(classType)),
		cel.Variable("now", cel.TimestampType),
		cel.Variable("target", cel.StringType),
		cel.ParserExpressionSizeLimit(MaxSource),
		cel.ParserRecursionLimit(maxDepth),
		cel.RegexProgramSizeLimit(maxRegex),
		cel.ASTValidators(
			cel.ValidateDurationLiterals(),
			cel.ValidateTimestampLiterals(),
			cel.ValidateRegexLiterals(),
			cel.ValidateHomogeneousAggregateLiterals(),
			cel.ValidateComprehensionNestingLimit(1),
		),
	)
	if err != nil {
		return nil, fmt.Errorf("build expression environment: %w", err)
	}
	return e, nil
}

// provider knows the fields of the facts; all else is the registry's. It is
// immutable.
type provider struct {
	*types.Registry
	fields map[string]map[string]*types.FieldType
	names  map[string][]string
}

func newProvider(r *types.Registry) *provider {
	p := &provider{Registry: r, fields: map[string]map[string]*types.FieldType{}, names: map[string][]string{}}
	for _, o := range objects() {
		p.fields[o.typ] = map[string]*types.FieldType{}
		for _, f := range o.fields {
			p.fields[o.typ][f.name] = fieldType(o.path+"."+f.name, f)
			p.names[o.typ] = append(p.names[o.typ], f.name)
		}
	}
	return p
}

// fieldType makes a fact readable. Its error for a fact that is not known is
// made once: a sweep meets it for each of 100,000 locks.
func fieldType(path string, f field) *types.FieldType {
	unknown := &UnknownError{Fact: path}
	return &types.FieldType{
		Type: f.typ,
		IsSet: func(target any) bool {
			facts, ok := target.(*Facts)
			if !ok {
				return false
			}
			_, ok = f.get(facts)
			return ok
		},
		GetFrom: func(target any) (any, error) {
			facts, ok := target.(*Facts)
			if !ok {
				return nil, unknown
			}
			value, ok := f.get(facts)
			if !ok {
				return nil, unknown
			}
			return value, nil
		},
	}
}

// FindStructType implements [types.Provider].
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if _, ours := p.fields[name]; ours {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return nil, false
}

// FindStructFieldNames implements [types.Provider].
func (p *provider) FindStructFieldNames(name string) ([]string, bool) {
	names, ok := p.names[name]
	return names, ok
}

// FindStructFieldType implements [types.Provider].
func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	f, ok := p.fields[name][field]
	return f, ok
}

// NewValue implements [types.Provider]: nobody makes facts.
func (p *provider) NewValue(name string, _ map[string]ref.Val) ref.Val {
	return types.NewErr("%s cannot be made in an expression", name)
}

// FindIdent implements [types.Provider]: type names are no values here.
func (p *provider) FindIdent(string) (ref.Val, bool) { return nil, false }

var _ types.Provider = (*provider)(nil)
