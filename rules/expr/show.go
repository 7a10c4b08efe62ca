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
func (p *Program) Show(f *Facts) (shown, missing []locksteward.Message) {
	for _, path := range p.facts {
		value, ok := lookup(path, f)
		switch {
		case !ok:
			missing = append(missing, locksteward.NewMessage("fact.unknown", path))
		case value == nil: // facts of facts
		case path == "lock.age" && f.Age.Minimum:
			shown = append(shown, locksteward.NewMessage("fact.age-at-least", path, value, f.Age.Basis))
		case path == "lock.age":
			shown = append(shown, locksteward.NewMessage("fact.age", path, value, f.Age.Basis))
		default:
			shown = append(shown, locksteward.NewMessage("fact", path, value))
		}
	}
	return shown, missing
}

// lookup reads one fact by its path: an argument of a message, nil for one that only has
// others.
func lookup(path string, f *Facts) (any, bool) {
	switch path {
	case "now":
		return f.Now, true
	case "target":
		return f.Lock.Target, true
	case "lock", "class":
		return nil, true
	}
	parent := path[:strings.LastIndexByte(path, '.')]
	if parent != "lock" && parent != "class" {
		if _, ok := lookup(parent, f); !ok {
			return nil, false
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
	return nil, true
}

// showValue returns a fact as an argument of a message; nil for one that only has others.
func showValue(value any) any {
	switch v := value.(type) {
	case types.String:
		return locksteward.DisplayKey(string(v))
	case types.Duration:
		return v.Duration.Round(time.Millisecond).String()
	case types.Timestamp:
		return v.Time
	case types.Bool, types.Int:
		return fmt.Sprint(v)
	case ref.Val:
		list, err := v.ConvertToNative(stringsType)
		if names, ok := list.([]string); ok && err == nil {
			return showList(names)
		}
	}
	return nil
}

// maxItems is how many elements of a list are shown.
const maxItems = 5

func showList(names []string) locksteward.Message {
	if len(names) == 0 {
		return locksteward.NewMessage("fact.empty")
	}
	var shown []any
	for _, n := range names[:min(len(names), maxItems)] {
		shown = append(shown, locksteward.DisplayKey(n))
	}
	list := locksteward.NewMessage("names", shown...)
	if more := len(names) - maxItems; more > 0 {
		return locksteward.NewMessage("fact.more", list, more)
	}
	return list
}

var stringsType = reflect.TypeFor[[]string]()
