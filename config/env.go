package config

import (
	"reflect"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// EnvPrefix starts the name of every environment variable that Locksteward
// reads. A scalar key outside lists is set by its path in capitals, joined by
// "_": LOCKSTEWARD_METRICS_LISTEN is metrics.listen.
const EnvPrefix = "LOCKSTEWARD_"

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces ${VAR} in every scalar value below n. A variable that is not
// set is a problem: an empty password would be tried in silence.
func (d *decoder) expand(n *yaml.Node, path string, lookup func(string) (string, bool)) {
	switch n.Kind {
	case yaml.ScalarNode:
		n.Value = variable.ReplaceAllStringFunc(n.Value, func(match string) string {
			name := match[2 : len(match)-1]
			value, ok := lookup(name)
			if !ok {
				d.problem(n, path, "environment variable %s is not set, set it or write the value", name)
			}
			return value
		})
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			d.expand(n.Content[i+1], join(path, n.Content[i].Value), lookup)
		}
	default:
		for _, child := range n.Content {
			d.expand(child, path, lookup)
		}
	}
}

// overlay sets the scalar keys of v that the environment names. It runs after
// the file, so the environment wins.
func (d *decoder) overlay(v reflect.Value, path string, lookup func(string) (string, bool)) {
	for name, field := range yamlFields(v) {
		at := join(path, name)
		text := reflect.PointerTo(field.Type()).Implements(textUnmarshalerType)
		switch {
		case field.Kind() == reflect.Struct && !text:
			d.overlay(field, at, lookup)
		case field.Kind() == reflect.Slice || field.Kind() == reflect.Pointer || field.Kind() == reflect.Map:
			// Lists are set in the file alone.
		default:
			variable := EnvPrefix + strings.ToUpper(strings.ReplaceAll(at, ".", "_"))
			value, ok := lookup(variable)
			if !ok {
				continue
			}
			node := &yaml.Node{Kind: yaml.ScalarNode, Value: value, Tag: resolveTag(value)}
			env := decoder{file: "environment " + variable, places: places{}}
			env.into(node, field, at)
			d.places[at] = place{file: env.file}
			d.problems = append(d.problems, env.problems...)
		}
	}
}

// resolveTag types a value from the environment as YAML would.
func resolveTag(value string) string {
	if value == "true" || value == "false" {
		return "!!bool"
	}
	return "!!str"
}
