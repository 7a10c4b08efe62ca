package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward"
)

// EnvPrefix starts the name of every environment variable that Locksteward
// reads. A key is set by its path in capitals, joined by "_", elements of lists by
// their numbers: LOCKSTEWARD_METRICS_LISTEN is metrics.listen.
const EnvPrefix = "LOCKSTEWARD_"

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces ${VAR} in every scalar value below n. A variable that is not
// set is a problem: an empty password would be tried in silence. Values that are one
// variable as a whole are noted for [decoder.secret].
func (d *decoder) expand(n *yaml.Node, path string, lookup func(string) (string, bool)) {
	switch n.Kind {
	case yaml.ScalarNode:
		if whole := variable.FindStringSubmatch(n.Value); whole != nil && whole[0] == n.Value {
			d.variables[n] = whole[1]
		}
		n.Value = variable.ReplaceAllStringFunc(n.Value, func(match string) string {
			name := match[2 : len(match)-1]
			value, ok := lookup(name)
			if !ok {
				d.problem(n, path, "environment variable %s is not set, set it or take ${%s} out", name, name)
			}
			return value
		})
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			d.expand(n.Content[i+1], join(path, n.Content[i].Value), lookup)
		}
	case yaml.SequenceNode:
		for i, child := range n.Content {
			d.expand(child, fmt.Sprintf("%s[%d]", path, i), lookup)
		}
	default:
		for _, child := range n.Content {
			d.expand(child, path, lookup)
		}
	}
}

// secret decodes n, which is as a whole ${NAME} in the file, into a secret or a list
// of them. One that is written out is refused: a configuration is copied and committed
// by people who do not think of what is in it.
func (d *decoder) secret(n *yaml.Node, v reflect.Value, path, key string) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind == yaml.SequenceNode && v.Kind() == reflect.Slice {
		d.places[path] = place{file: d.file, node: n, raw: d.raw}
		out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
		for i, item := range n.Content {
			d.secret(item, out.Index(i), fmt.Sprintf("%s[%d]", path, i), key)
		}
		v.Set(out)
		return
	}
	name, whole := d.variables[n]
	switch {
	case n.Kind != yaml.ScalarNode || v.Kind() == reflect.Slice && n.Tag != "!!null":
		want := "${NAME}"
		if v.Kind() == reflect.Slice {
			want = "a list of ${NAME}"
		}
		d.problem(n, path, "got %s, write %s with the name of an environment variable", locksteward.SecretMask, want)
	case !whole && n.Value != "" && n.Tag != "!!null":
		d.problem(n, path, "got %s, write ${NAME} with the name of an environment variable, or put the secret into a file and name it as %s", locksteward.SecretMask, secretFileKey(key))
	case whole && strings.TrimSpace(n.Value) == "":
		if !d.has(path) { // else it is not set
			d.problem(n, path, "environment variable %s is empty, set it or take ${%s} out", name, name)
		}
	default:
		d.into(n, v, path)
	}
}

// secretFileKey is the key beside that of a secret for the file of one.
func secretFileKey(key string) string {
	if one, several := strings.CutSuffix(key, "s"); several {
		return one + "_files"
	}
	return key + "_file"
}

// has says that there is a problem at a path already.
func (d *decoder) has(path string) bool {
	return slices.ContainsFunc(d.problems, func(p problem) bool { return p.path == path })
}

// overlay sets the keys of v that the environment names, those of blocks and elements
// that are not there by default among them, and says whether it set any. It runs after
// the file, so the environment wins.
func (d *decoder) overlay(v reflect.Value, path string, env environ) bool {
	set := false
	for name, field := range yamlFields(v) {
		set = d.overlayOne(field, join(path, name), env) || set
	}
	return set
}

var notInNames = strings.NewReplacer(".", "_", "[", "_", "]", "")

// Variable returns the environment variable that sets a key by its path: metrics.listen
// is LOCKSTEWARD_METRICS_LISTEN, targets[0].url is LOCKSTEWARD_TARGETS_0_URL.
func Variable(path string) string { return EnvPrefix + strings.ToUpper(notInNames.Replace(path)) }

// shape is what the type of a key means to the environment.
type shape int

const (
	shapeScalar   shape = iota
	shapeBlock          // keys below it
	shapeOptional       // the same, where nothing is by default
	shapeList           // a list, or a mapping with keys of the user's own
)

func shapeOf(t reflect.Type) shape {
	text := reflect.PointerTo(t).Implements(textUnmarshalerType)
	switch {
	case t.Kind() == reflect.Struct && !text:
		return shapeBlock
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && !t.Implements(textUnmarshalerType):
		return shapeOptional
	case t.Kind() == reflect.Slice && !text, t.Kind() == reflect.Map:
		return shapeList
	default:
		return shapeScalar
	}
}

// resolveTag types a value from the environment as YAML would.
func resolveTag(value string) string {
	if value == "true" || value == "false" {
		return "!!bool"
	}
	return "!!str"
}
