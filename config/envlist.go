package config

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/suggest"
)

// environ are the variables of the environment by name.
type environ map[string]string

func processEnviron() environ {
	out := environ{}
	for _, pair := range os.Environ() {
		if name, value, ok := strings.Cut(pair, "="); ok {
			out[name] = value
		}
	}
	return out
}

// offered are the variables that mean something below one list, and those that were
// set: what begins with the name of an element and is not among them is a mistake.
type offered struct {
	names []string
	lists []string // "LOCKSTEWARD_TARGETS_" of each
	gaps  []string // "LOCKSTEWARD_TARGETS_3", of elements that cannot be: that is said
}

// numbers are those of the elements that the environment speaks of below a list, in
// their order.
func (e environ) numbers(list string) []int {
	var out []int
	for name := range e {
		rest, ok := strings.CutPrefix(name, list+"_")
		if !ok {
			continue
		}
		digits, _, _ := strings.Cut(rest, "_")
		if n, err := strconv.Atoi(digits); err == nil && strconv.Itoa(n) == digits && n >= 0 && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// firstOf is a variable of an element.
func (e environ) firstOf(element string) string {
	out := ""
	for name := range e {
		if (name == element || strings.HasPrefix(name, element+"_")) && (out == "" || name < out) {
			out = name
		}
	}
	return out
}

// below says whether a variable is one of an element of a list.
func below(name, list string) bool {
	rest, ok := strings.CutPrefix(name, list)
	return ok && rest != "" && rest[0] >= '0' && rest[0] <= '9'
}

// said is a problem with a variable.
func (d *decoder) said(name, path, format string, args ...any) {
	d.problems = append(d.problems, problem{path: path, err: fmt.Errorf("environment %s: %s: %s", name, path, fmt.Sprintf(format, args...))})
}

// overlayList sets what the environment names of a list or mapping: all of it, if its
// elements are texts, and then its elements by their numbers. The next number behind
// the last one is a new element.
func (d *decoder) overlayList(v reflect.Value, path string, env environ) bool {
	name := Variable(path)
	_, whole := env[name]
	if whole {
		d.wholeList(v, path, name, env[name])
	}
	if v.Kind() == reflect.Map {
		d.offers.names = append(d.offers.names, name)
		return whole
	}
	if shapeOf(v.Type().Elem()) == shapeScalar {
		d.offers.names = append(d.offers.names, name)
	}
	d.offers.lists = append(d.offers.lists, name+"_")
	numbers := env.numbers(name)
	if len(numbers) == 0 {
		return whole
	}
	// Defaults may be shared by configurations.
	own := reflect.MakeSlice(v.Type(), v.Len(), v.Len()+len(numbers))
	reflect.Copy(own, v)
	v.Set(own)
	for i, n := range numbers {
		if n > v.Len() {
			for _, beyond := range numbers[i:] {
				d.offers.gaps = append(d.offers.gaps, fmt.Sprintf("%s_%d", name, beyond))
			}
			d.said(env.firstOf(fmt.Sprintf("%s_%d", name, n)), path, "there is no element %d to go before it: the list has %d, number what you add from %d on", n-1, v.Len(), v.Len())
			break
		}
		if n == v.Len() {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		}
		d.overlayOne(v.Index(n), fmt.Sprintf("%s[%d]", path, n), env)
	}
	return true
}

// wholeList reads a list of texts or a mapping as it would stand in the file.
func (d *decoder) wholeList(v reflect.Value, path, name, value string) {
	want, hidden := "[one, two]", false
	if v.Kind() == reflect.Map {
		want = "{one: two}"
	} else {
		hidden = v.Type().Elem() == reflect.TypeFor[locksteward.Secret]()
		if shapeOf(v.Type().Elem()) != shapeScalar {
			d.said(name, path, "a list of blocks has no variable of its own, write one for each key: %s_0_…", name)
			return
		}
	}
	var doc yaml.Node
	err := yaml.Unmarshal([]byte(value), &doc)
	kind := map[bool]yaml.Kind{true: yaml.MappingNode, false: yaml.SequenceNode}[v.Kind() == reflect.Map]
	if err != nil || len(doc.Content) != 1 || doc.Content[0].Kind != kind {
		shown := describe(&yaml.Node{Kind: yaml.ScalarNode, Value: value})
		if hidden {
			shown = locksteward.SecretMask
		}
		d.said(name, path, "got %s, write %s, or %s_0 for the first of them", shown, want, name)
		return
	}
	d.fromVariable(name, doc.Content[0], v, path)
}

// overlayOne sets what the environment names of one value, and says whether it did.
func (d *decoder) overlayOne(v reflect.Value, path string, env environ) bool {
	name := Variable(path)
	switch shapeOf(v.Type()) {
	case shapeBlock:
		return d.overlay(v, path, env)
	case shapeOptional:
		d.offers.names = append(d.offers.names, name)
		block := reflect.New(v.Type().Elem())
		if !v.IsNil() {
			block.Elem().Set(v.Elem())
		}
		set := d.overlay(block.Elem(), path, env)
		if value, ok := env[name]; ok {
			set = true
			if strings.TrimSpace(value) != "{}" {
				d.said(name, path, "got %s, write {} for a block with nothing in it, or set a key of it: %s_…", masked(name, value), name)
			}
		}
		if set {
			v.Set(block)
		}
		return set
	case shapeList:
		return d.overlayList(v, path, env)
	default:
		d.offers.names = append(d.offers.names, name)
		value, ok := env[name]
		if !ok {
			return false
		}
		if v.Type() == reflect.TypeFor[locksteward.Secret]() && strings.TrimSpace(value) == "" {
			d.said(name, path, "is empty, set it or take it away")
			return true
		}
		d.fromVariable(name, &yaml.Node{Kind: yaml.ScalarNode, Value: value, Tag: resolveTag(value)}, v, path)
		return true
	}
}

// fromVariable decodes what a variable says.
func (d *decoder) fromVariable(name string, n *yaml.Node, v reflect.Value, path string) {
	env := newDecoder("environment "+name, nil)
	withoutLines(n)
	env.into(n, v, path)
	for at := range env.places {
		d.places[at] = place{file: env.file}
	}
	d.problems = append(d.problems, env.problems...)
}

// withoutLines forgets where a value stands: a variable has no lines.
func withoutLines(n *yaml.Node) {
	n.Line, n.Column = 0, 0
	for _, child := range n.Content {
		withoutLines(child)
	}
}

// strangers reports the variables that set nothing: of elements of lists, and of keys of an
// earlier configuration. Others that begin with the prefix and mean nothing are left alone:
// Kubernetes sets some.
func (d *decoder) strangers(env environ) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if slices.Contains(d.offers.names, name) {
			continue
		}
		if hint := formerVariable(name); hint != "" {
			d.meaningless(name, env[name], hint)
			continue
		}
		inList := slices.ContainsFunc(d.offers.lists, func(list string) bool { return below(name, list) })
		if inList && !slices.ContainsFunc(d.offers.gaps, func(gap string) bool { return name == gap || strings.HasPrefix(name, gap+"_") }) {
			d.meaningless(name, env[name], d.nearestVariable(name))
		}
	}
}

// nearestVariable names the variable that was probably meant.
func (d *decoder) nearestVariable(name string) string {
	list := ""
	for _, l := range d.offers.lists {
		if below(name, l) && len(l) > len(list) {
			list = l
		}
	}
	var known []string
	for _, n := range d.offers.names {
		if strings.HasPrefix(n, list) {
			known = append(known, n)
		}
	}
	if best := suggest.Nearest(name, known, func(n string) []string { return []string{n, strings.TrimSuffix(n, "_FILE")} }); best != "" {
		return fmt.Sprintf("did you mean %s?", best)
	}
	return "docs/configuration.md lists the variables"
}

// meaningless reports a variable that sets no key.
func (d *decoder) meaningless(name, value, hint string) {
	d.problems = append(d.problems, problem{path: "", err: fmt.Errorf("environment %s: means nothing (got %s), %s", name, masked(name, value), hint)})
}

// masked shows the value of a variable that may be misspelt, unless it may be a secret.
func masked(name, value string) string {
	if secretName(strings.TrimPrefix(name, EnvPrefix)) {
		return locksteward.SecretMask
	}
	return describe(&yaml.Node{Kind: yaml.ScalarNode, Value: value})
}
