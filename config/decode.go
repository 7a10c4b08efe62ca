package config

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/suggest"
)

// decoder fills Go values from YAML nodes and collects every problem it meets
// with the path of the key, instead of stopping at the first as the library
// does.
type decoder struct {
	file     string
	problems []problem
	// raw is the file, places where each value of it stands.
	raw    []byte
	places places
	// variables are the values that were ${NAME} as a whole, by name.
	variables map[*yaml.Node]string
	offers    offered
}

func newDecoder(file string, raw []byte) *decoder {
	return &decoder{file: file, raw: raw, places: places{}, variables: map[*yaml.Node]string{}}
}

// problem is one thing that is wrong, with the path of its key; "" is all of the
// file. instead is the path of the key that is written instead of one of an earlier
// configuration: that it is missing is a consequence.
type problem struct {
	path    string
	err     error
	instead string
}

var (
	durationType        = reflect.TypeFor[time.Duration]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (d *decoder) problem(n *yaml.Node, path, format string, args ...any) {
	shown := path
	if path == "" {
		shown = "(top)"
	}
	where := d.file
	if n.Line > 0 { // the environment has no lines
		where = fmt.Sprintf("%s:%d", d.file, n.Line)
	}
	d.problems = append(d.problems, problem{path: path, err: fmt.Errorf("%s: %s: %s", where, shown, fmt.Sprintf(format, args...))})
}

// into decodes n into v, which must be settable. A null leaves the default.
func (d *decoder) into(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	d.places[path] = place{file: d.file, node: n, raw: d.raw}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	switch {
	case v.Kind() == reflect.Pointer:
		fresh := reflect.New(v.Type().Elem())
		d.into(n, fresh.Elem(), path)
		v.Set(fresh)
	case v.Type() == durationType:
		d.duration(n, v, path)
	case reflect.PointerTo(v.Type()).Implements(textUnmarshalerType):
		d.text(n, v, path)
	case v.Kind() == reflect.Struct:
		d.mapping(n, v, path)
	case v.Kind() == reflect.Slice:
		d.sequence(n, v, path)
	case v.Kind() == reflect.Map:
		d.table(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.problem(n, path, "got %s, write a mapping of keys", describe(n))
		return
	}
	fields, hidden := yamlFields(v), variableKeys(v.Type())
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		if seen[key.Value] {
			d.problem(key, at, "the key stands twice, keep one")
			continue
		}
		seen[key.Value] = true
		field, ok := fields[key.Value]
		if !ok {
			shown := describe(value)
			if secretName(key.Value) {
				shown = locksteward.SecretMask
			}
			was, known := formerKey(at)
			if !known {
				was.hint = nearestKey(key.Value, fields)
			}
			d.problem(key, at, "unknown key (got %s), %s", shown, was.hint)
			if was.key != "" {
				d.problems[len(d.problems)-1].instead = join(path, was.key)
			}
			continue
		}
		if hidden[key.Value] {
			d.secret(value, field, at, key.Value)
			continue
		}
		d.into(value, field, at)
	}
}

func (d *decoder) sequence(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.problem(n, path, "got %s, write a list", describe(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.into(item, out.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(out)
}

// table decodes a mapping with keys of the user's own.
func (d *decoder) table(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.problem(n, path, "got %s, write a mapping", describe(n))
		return
	}
	if len(n.Content) == 0 {
		return
	}
	out := reflect.MakeMap(v.Type())
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		item := reflect.New(v.Type().Elem()).Elem()
		d.into(value, item, join(path, key.Value))
		out.SetMapIndex(reflect.ValueOf(key.Value).Convert(v.Type().Key()), item)
	}
	v.Set(out)
}

func (d *decoder) duration(n *yaml.Node, v reflect.Value, path string) {
	parsed, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		d.problem(n, path, "got %s, write a duration such as 30s, 5m or 1h30m", describe(n))
		return
	}
	v.SetInt(int64(parsed))
}

func (d *decoder) text(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode {
		d.problem(n, path, "got %s, write one value", describe(n))
		return
	}
	if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Value)); err != nil {
		d.problem(n, path, "%v", err)
	}
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string) {
	want := ""
	if n.Kind == yaml.ScalarNode {
		switch v.Kind() {
		case reflect.String:
			// A bare number or boolean where text is asked for is taken as written.
			v.SetString(n.Value)
			return
		case reflect.Bool:
			if b, err := strconv.ParseBool(n.Value); err == nil && n.Tag == "!!bool" {
				v.SetBool(b)
				return
			}
			want = "true or false"
		case reflect.Int, reflect.Int64:
			if i, err := strconv.ParseInt(n.Value, 10, v.Type().Bits()); err == nil {
				v.SetInt(i)
				return
			}
			want = "a whole number"
		case reflect.Float64:
			if f, err := strconv.ParseFloat(n.Value, 64); err == nil {
				v.SetFloat(f)
				return
			}
			want = "a number"
		}
	}
	if want == "" {
		want = "one value (" + v.Kind().String() + ")"
	}
	d.problem(n, path, "got %s, write %s", describe(n), want)
}

// yamlFields maps the keys of a struct to its fields; inlined structs lend
// theirs.
func yamlFields(v reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case options == "inline":
			maps.Copy(out, yamlFields(v.Field(i)))
		case name != "":
			out[name] = v.Field(i)
		}
	}
	return out
}

// variableKeys are the keys of a struct that take a secret from the environment alone:
// those with the tag `from:"env"`.
func variableKeys(t reflect.Type) map[string]bool {
	out := map[string]bool{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if options == "inline" {
			maps.Copy(out, variableKeys(f.Type))
		} else if f.Tag.Get("from") == "env" {
			out[name] = true
		}
	}
	return out
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// describe shows a value as the user wrote it, cut to a line's worth.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if secretLike(n.Value) {
			return locksteward.SecretMask
		}
		if len(n.Value) > 60 {
			return strconv.Quote(n.Value[:60] + "…")
		}
		return strconv.Quote(n.Value)
	default:
		return "nothing"
	}
}

// secretLike says that a value may hold a secret: a URL with a password in it, or one of
// the web with anything behind its host, into which many services put their token.
func secretLike(value string) bool {
	scheme, behind, ok := strings.Cut(value, "://")
	if !ok {
		return false
	}
	web := strings.HasSuffix(strings.ToLower(scheme), "http") || strings.HasSuffix(strings.ToLower(scheme), "https")
	at := strings.IndexAny(behind, "/?#")
	return strings.Contains(behind, "@") || web && at >= 0 && at < len(behind)-1
}

// secretName says that a key, though unknown, may be a misspelt name for a
// secret.
func secretName(key string) bool {
	key = strings.ToLower(key)
	for _, word := range []string{"pass", "pw", "secret", "token", "cred", "key", "auth"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

// nearestKey names the key that was probably meant, or all there are.
func nearestKey(got string, fields map[string]reflect.Value) string {
	known := slices.Sorted(maps.Keys(fields))
	if best := suggest.Nearest(got, known, nil); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "known keys here: " + strings.Join(known, ", ")
}
