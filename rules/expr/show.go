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
func (p *Program) Show(f *Facts) (shown, missing []locksteward.Text) {
	for _, path := range p.facts {
		value, ok := lookup(path, f)
		switch {
		case !ok:
			missing = append(missing, locksteward.Text{EN: path + " is not known", ZH: path + " 未知"})
		case value.EN == "": // facts of facts
		case path == "lock.age" && f.Age.Minimum:
			shown = append(shown, locksteward.Text{
				EN: fmt.Sprintf("%s is at least %s (%s)", path, value.EN, f.Age.Basis),
				ZH: fmt.Sprintf("%s 至少为 %s（%s）", path, value.ZH, f.Age.Basis),
			})
		case path == "lock.age":
			shown = append(shown, locksteward.Text{
				EN: fmt.Sprintf("%s is %s (%s)", path, value.EN, f.Age.Basis),
				ZH: fmt.Sprintf("%s 为 %s（%s）", path, value.ZH, f.Age.Basis),
			})
		default:
			shown = append(shown, locksteward.Text{EN: path + " is " + value.EN, ZH: path + " 为 " + value.ZH})
		}
	}
	return shown, missing
}

// lookup reads one fact by its path and shows it.
func lookup(path string, f *Facts) (locksteward.Text, bool) {
	switch path {
	case "now":
		return either(f.Now.UTC().Format(time.RFC3339)), true
	case "target":
		return either(f.Lock.Target), true
	case "lock", "class":
		return locksteward.Text{}, true
	}
	parent := path[:strings.LastIndexByte(path, '.')]
	if parent != "lock" && parent != "class" {
		if _, ok := lookup(parent, f); !ok {
			return locksteward.Text{}, false
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
	return locksteward.Text{}, true
}

// either is what is the same in both languages.
func either(s string) locksteward.Text { return locksteward.Text{EN: s, ZH: s} }

// showValue prints a fact; nothing for one that only has others.
func showValue(value any) locksteward.Text {
	switch v := value.(type) {
	case types.String:
		return either(locksteward.DisplayKey(string(v)))
	case types.Duration:
		return either(v.Duration.Round(time.Millisecond).String())
	case types.Timestamp:
		return either(v.Time.UTC().Format(time.RFC3339))
	case types.Bool, types.Int:
		return either(fmt.Sprint(v))
	case ref.Val:
		list, err := v.ConvertToNative(stringsType)
		if names, ok := list.([]string); ok && err == nil {
			return showList(names)
		}
	}
	return locksteward.Text{}
}

// maxItems is how many elements of a list are shown.
const maxItems = 5

func showList(names []string) locksteward.Text {
	if len(names) == 0 {
		return locksteward.Text{EN: "empty", ZH: "空"}
	}
	var out []string
	for _, n := range names[:min(len(names), maxItems)] {
		out = append(out, locksteward.DisplayKey(n))
	}
	shown := locksteward.Text{EN: strings.Join(out, ", "), ZH: strings.Join(out, "、")}
	if more := len(names) - maxItems; more > 0 {
		shown.EN += fmt.Sprintf(", and %d more", more)
		shown.ZH += fmt.Sprintf("，另有 %d 个", more)
	}
	return shown
}

var stringsType = reflect.TypeFor[[]string]()
