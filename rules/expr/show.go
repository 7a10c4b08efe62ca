package expr

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/locksteward/locksteward"
)

// Show gives the facts that the expression reads, as evidence: shown are those
// that are known ("lock.ttl is 30s"), missing those that are not.
func (p *Program) Show(f *Facts) (shown, missing []string) {
	for _, path := range p.facts {
		value, ok := lookup(path, f)
		switch {
		case !ok:
			missing = append(missing, path+" is not known")
		case value == "": // facts of facts
		case path == "lock.age" && f.Age.Minimum:
			shown = append(shown, fmt.Sprintf("%s is at least %s (%s)", path, value, f.Age.Basis))
		case path == "lock.age":
			shown = append(shown, fmt.Sprintf("%s is %s (%s)", path, value, f.Age.Basis))
		default:
			shown = append(shown, path+" is "+value)
		}
	}
	return shown, missing
}

// lookup reads one fact by its path and shows it.
func lookup(path string, f *Facts) (string, bool) {
	switch path {
	case "now":
		return f.Now.UTC().Format(time.RFC3339), true
	case "target":
		return f.Lock.Target, true
	case "lock", "class":
		return "", true
	}
	parent := path[:strings.LastIndexByte(path, '.')]
	if parent != "lock" && parent != "class" {
		if _, ok := lookup(parent, f); !ok {
			return "", false
		}
	}
	for _, o := range described {
		name, ok := strings.CutPrefix(path, o.path+".")
		if !ok {
			continue
		}
		for i := range o.fields {
			if o.fields[i].name == name {
				value, ok := o.fields[i].get(f)
				return showValue(value), ok
			}
		}
	}
	return "", true
}

// showValue prints a fact; "" for one that only has others.
func showValue(value any) string {
	switch v := value.(type) {
	case types.String:
		return locksteward.DisplayKey(string(v))
	case types.Duration:
		return v.Duration.Round(time.Millisecond).String()
	case types.Timestamp:
		return v.Time.UTC().Format(time.RFC3339)
	case types.Bool, types.Int:
		return fmt.Sprint(v)
	case ref.Val:
		list, err := v.ConvertToNative(stringsType)
		if names, ok := list.([]string); ok && err == nil {
			return showList(names)
		}
	}
	return ""
}

// maxItems is how many elements of a list are shown.
const maxItems = 5

func showList(names []string) string {
	if len(names) == 0 {
		return "empty"
	}
	var out []string
	for _, n := range names[:min(len(names), maxItems)] {
		out = append(out, locksteward.DisplayKey(n))
	}
	if more := len(names) - maxItems; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

var stringsType = reflect.TypeFor[[]string]()
