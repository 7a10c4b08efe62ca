package config_test

import (
	"encoding"
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/signin"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

// key is one key of the configuration, as the documentation has it.
type key struct {
	path  string // targets[].name
	typ   reflect.Type
	value reflect.Value // its default; not valid: none
	list  bool          // in a list
	owner reflect.Type  // the struct that has it
	kinds string        // the kinds of receivers that take it; "": all
}

// parent is the path of the block that a key is in.
func (k key) parent() string { return k.path[:max(0, strings.LastIndexByte(k.path, '.'))] }

var textType = reflect.TypeFor[encoding.TextUnmarshaler]()

// name is the last part of its path.
func (k key) name() string { return k.path[strings.LastIndexByte(k.path, '.')+1:] }

// scalar says that a key has one value.
func (k key) scalar() bool {
	t := k.typ
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return reflect.PointerTo(t).Implements(textType) || t.Kind() != reflect.Struct && t.Kind() != reflect.Slice && t.Kind() != reflect.Map
}

// first is its path in the first elements of lists.
func (k key) first() string { return strings.ReplaceAll(k.path, "[]", "[0]") }

// variable is what sets it; "": the keys below it have variables.
func (k key) variable() string {
	if !k.scalar() && (k.typ.Kind() == reflect.Struct || k.typ.Kind() == reflect.Slice && blocks(k.typ.Elem())) {
		return ""
	}
	return config.Variable(k.first())
}

// blocks says that a type has keys of its own.
func blocks(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(textType)
}

// keys walks the whole type of the configuration in the order of its fields.
func keys() []key {
	c := config.Default()
	c.Targets = []config.Target{config.DefaultTarget()}
	c.Console.SignIn = signin.Config{OIDC: &signin.OIDCConfig{}, Proxy: &signin.ProxyConfig{}}.WithDefaults()
	var out []key
	var walk func(t reflect.Type, v reflect.Value, path string, list bool)
	walk = func(t reflect.Type, v reflect.Value, path string, list bool) {
		for f := range t.Fields() {
			name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if name == "-" || !f.IsExported() {
				continue
			}
			var value reflect.Value
			if v.IsValid() {
				value = v.FieldByIndex(f.Index)
			}
			if options == "inline" {
				walk(f.Type, value, path, list)
				continue
			}
			k := key{strings.TrimPrefix(path+"."+name, "."), f.Type, value, list, t, strings.ReplaceAll(f.Tag.Get("kinds"), " ", ", ")}
			out = append(out, k)
			if k.scalar() {
				continue
			}
			below, inList, at := f.Type, list, k.path
			if below.Kind() == reflect.Slice {
				below, inList, at = below.Elem(), true, at+"[]"
				if value.IsValid() && value.Len() > 0 {
					value = value.Index(0)
				} else {
					value = reflect.Value{}
				}
			}
			if below.Kind() == reflect.Pointer {
				below = below.Elem()
				if value.IsValid() {
					value = value.Elem() // not valid where there is none
				}
			}
			if below.Kind() == reflect.Struct && !reflect.PointerTo(below).Implements(textType) {
				walk(below, value, at, inList)
			}
		}
	}
	walk(reflect.TypeFor[config.Config](), reflect.ValueOf(c), "", false)
	return out
}

// valueAt returns the value of a key; not valid where it is not there.
func valueAt(c config.Config, path string) reflect.Value {
	v := reflect.ValueOf(c)
	for name := range strings.SplitSeq(path, ".") {
		for v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if !v.IsValid() {
			return v
		}
		name, first := strings.CutSuffix(name, "[0]")
		v = fieldOf(v, name)
		if first {
			if v.Len() == 0 {
				return reflect.Value{}
			}
			v = v.Index(0)
		}
	}
	return v
}

func fieldOf(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		tag, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if tag == name && tag != "" {
			return v.Field(i)
		}
		if options == "inline" {
			if found := fieldOf(v.Field(i), name); found.IsValid() {
				return found
			}
		}
	}
	return reflect.Value{}
}

// other is a valid value of a scalar that is not its default, and one that it
// cannot have ("": it can have any text).
func (k key) other() (good, bad string, want any) {
	t := k.typ
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case k.typ.Kind() == reflect.Pointer && blocks(t):
		return "{}", "{a: b}", nil
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Slice:
		return "{some: [text]}", "[some]", "map[some:[text]]"
	case t.Kind() == reflect.Map:
		return "{some: text}", "[some]", "map[some:text]"
	case t.Kind() == reflect.Slice:
		return "[some, text]", "{some: text}", "[some text]"
	case t == reflect.TypeFor[time.Duration]():
		return "77s", "soon", 77 * time.Second
	case t.Kind() == reflect.String:
		return "some text", "", "some text"
	}
	switch t.Kind() {
	case reflect.Bool:
		was := k.value.IsValid() && k.value.Bool()
		return fmt.Sprint(!was), "perhaps", !was
	case reflect.Int, reflect.Int64:
		return "77", "many", int64(77)
	case reflect.Float64:
		return "0.77", "many", 0.77
	default:
		return "", "", nil
	}
}

// TestEveryKeyHasItsVariable walks the type of the configuration: each key, in lists
// too, is set by its variable, over the file, and what it cannot take is a problem that
// names the variable and the key.
func TestEveryKeyHasItsVariable(t *testing.T) {
	seen, inLists := map[string]string{}, 0
	for _, k := range keys() {
		name := k.variable()
		if name == "" {
			continue
		}
		if first, twice := seen[name]; twice {
			t.Errorf("%s sets both %s and %s", name, first, k.path)
		}
		seen[name] = k.path
		if k.list {
			inLists++
		}
		good, bad, want := k.other()
		if good == "" {
			t.Errorf("%s: no value to try for a %s: add one here", k.path, k.typ)
			continue
		}
		t.Run(k.path, func(t *testing.T) {
			t.Setenv(name, good)
			c, said := config.Overlaid()
			got := valueAt(c, k.first())
			if k.typ.Kind() == reflect.Slice {
				// The first element by its number too, over all of it.
				t.Setenv(name+"_0", "other")
				c, more := config.Overlaid()
				said = append(said, more...)
				if is := fmt.Sprint(shownOf(valueAt(c, k.first()))); is != "[other text]" {
					t.Errorf("%s_0=other gives %v", name, is)
				}
			}
			if len(said) > 0 {
				t.Errorf("%s=%s: %v", name, good, said)
			}
			for got.Kind() == reflect.Pointer && !got.IsNil() {
				got = got.Elem()
			}
			if !got.IsValid() || got.Kind() == reflect.Pointer {
				t.Fatalf("%s=%s sets nothing", name, good)
			}
			if is := shownOf(got); want != nil && is != want {
				t.Errorf("%s=%s gives %v, want %v", name, good, is, want)
			}
			if bad == "" {
				return
			}
			t.Setenv(name, bad)
			_, said = config.Overlaid()
			if len(said) == 0 || !strings.HasPrefix(said[0].Error(), "environment "+name+": "+k.first()+": ") {
				t.Errorf("%s=%s: the problem names not both, the variable and the key:\n%v", name, bad, said)
			}
		})
	}
	if len(seen) == 0 || inLists == 0 {
		t.Errorf("%d variables, %d of them in lists: the walk finds none", len(seen), inLists)
	}
}

// shownOf is a value of which secrets are shown, to be compared.
func shownOf(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Int64, reflect.Int:
		if v.Type() == reflect.TypeFor[time.Duration]() {
			return time.Duration(v.Int())
		}
		return v.Int()
	case reflect.Float64:
		return v.Float()
	case reflect.String:
		return v.String()
	case reflect.Slice:
		var out []string
		for i := range v.Len() {
			out = append(out, v.Index(i).String())
		}
		return fmt.Sprint(out)
	case reflect.Map:
		return fmt.Sprint(v.Interface())
	default:
		return v.Interface()
	}
}

// A value from the environment that is of the right type and not allowed is reported
// with its variable too.
func TestWhatVariablesCannotHaveIsReported(t *testing.T) {
	t.Setenv("LOCKSTEWARD_LOG_LEVEL", "loud")
	t.Setenv("LOCKSTEWARD_CONSOLE_OIDC_ISSUER", "http://id.example.org")
	got := strings.Join(problems(t, minimal), "\n")
	for _, want := range []string{
		`environment LOCKSTEWARD_LOG_LEVEL: log.level: got "loud"`,
		`environment LOCKSTEWARD_CONSOLE_OIDC_ISSUER: console.oidc.issuer: `,
		`console.oidc.client_id: is missing`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no problem says %q:\n%s", want, got)
		}
	}
}

const (
	keysBegin = "<!-- generated by go test ./config -run TestConfigurationPage -update; do not edit below -->\n"
	keysEnd   = "<!-- end of the keys -->\n"
	page      = "../docs/configuration.md"
)

// TestConfigurationPage keeps docs/configuration.md equal to the type of the
// configuration, its defaults, and the words of config.example.yaml.
func TestConfigurationPage(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), keysBegin)
	_, after, ok2 := strings.Cut(rest, keysEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no generated part between %q and %q", page, keysBegin, keysEnd)
	}
	want := before + keysBegin + tables(t) + keysEnd + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(raw) != want {
		t.Errorf("%s is not what the configuration is; run: go test ./config -run TestConfigurationPage -update", page)
	}
}

// tables has a table for each block at the top. A block that repeats the keys of one before refers to it, and a key without
// a comment stands in the row of the key before it, if it takes the same.
func tables(t *testing.T) string {
	t.Helper()
	said := words(t)
	first := map[reflect.Type]string{} // where a struct is described
	refers := map[string][]key{}       // by path of a block, its keys that are described elsewhere
	size := map[string]int{}           // by path of a block, how many keys it has
	var described []key
	for _, k := range keys() {
		if first[k.owner] == "" {
			first[k.owner] = k.parent()
		}
		size[k.parent()]++
		if first[k.owner] != k.parent() && said[k.path] == "" {
			refers[k.parent()] = append(refers[k.parent()], k)
			continue
		}
		described = append(described, k)
	}
	var b strings.Builder
	top := ""
	for i := 0; i < len(described); i++ {
		k := described[i]
		if name, _, _ := strings.Cut(strings.ReplaceAll(k.path, "[]", ""), "."); name != top {
			top = name
			fmt.Fprintf(&b, "\n### %s\n\n", top)
			if said[top] != "" {
				fmt.Fprintf(&b, "%s\n\n", said[top])
			}
			b.WriteString("| key | value, default | meaning |\n| --- | --- | --- |\n")
		}
		if k.path == top {
			continue
		}
		names, meaning := "`"+k.path+"`", said[k.path]
		for ; i+1 < len(described) && k.scalar() && described[i+1].scalar(); i++ {
			next := described[i+1]
			isOther := k.kind() == "text" && meaning != ""
			if isOther || said[next.path] != "" || next.parent() != k.parent() || next.takes() != k.takes() || next.kinds != k.kinds {
				break
			}
			names += ", `" + next.name() + "`"
		}
		if repeated := refers[k.path]; len(repeated) > 0 {
			of, at := "Keys", first[repeated[0].owner]
			if len(repeated) < size[k.path] || size[k.path] < size[at] {
				var list []string
				for _, r := range repeated {
					list = append(list, "`"+r.name()+"`")
				}
				of = strings.Join(list, ", ")
			}
			meaning = strings.TrimSpace(meaning + " " + of + " as in `" + at + "`.")
		}
		if k.kinds != "" {
			meaning = strings.TrimSpace(meaning + " Kinds: " + shortKinds(k.kinds) + ".")
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", names, k.takes(), strings.ReplaceAll(meaning, "|", `\|`))
	}
	return b.String() + "\n"
}

// shortKinds names the kinds that take a key, or those few that do not.
func shortKinds(list string) string {
	var others []string
	for _, k := range keys() {
		for kind := range strings.SplitSeq(k.kinds, ", ") {
			if kind != "" && !slices.Contains(strings.Split(list, ", "), kind) && !slices.Contains(others, kind) {
				others = append(others, kind)
			}
		}
	}
	if len(others) < 3 {
		return "all but " + strings.Join(others, ", ")
	}
	return list
}

// takes is what a key takes and its default, if it has one.
func (k key) takes() string {
	if is := k.shown(); strings.HasPrefix(is, "`") {
		return k.kind() + ", " + is
	}
	return k.kind()
}

// kind is what a key takes, with its unit.
func (k key) kind() string {
	t := k.typ
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	last := k.path[strings.LastIndexByte(k.path, '.')+1:]
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case reflect.PointerTo(t).Implements(textType) && t.Kind() != reflect.String:
		return "word"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return "list"
	case strings.HasSuffix(last, "_files"):
		return "files"
	case t.Kind() == reflect.Slice:
		return "texts"
	case t.Kind() == reflect.Map:
		return "mapping"
	case t.Kind() == reflect.Struct:
		return "block"
	case strings.HasSuffix(last, "_file"):
		return "file"
	case t.Kind() == reflect.Bool:
		return "boolean"
	case t.Kind() == reflect.Float64:
		return "number"
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int64:
		return "integer"
	default:
		return "text"
	}
}

// shown is the default.
func (k key) shown() string {
	switch v := k.value; {
	case !k.scalar() && k.typ.Kind() == reflect.Pointer:
		return "none"
	case !v.IsValid(), v.Kind() == reflect.Struct:
		return ""
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Map:
		if v.Len() == 0 || v.Type().Elem().Kind() == reflect.Struct {
			return "empty"
		}
		return "`" + strings.ReplaceAll(fmt.Sprint(v.Interface()), " ", ", ") + "`"
	case v.Kind() == reflect.Pointer:
		return "none"
	case v.Type() == reflect.TypeFor[time.Duration]():
		return "`" + brief(time.Duration(v.Int())) + "`"
	case v.Kind() == reflect.String && v.Len() == 0:
		return "empty"
	default:
		return "`" + fmt.Sprint(v.Interface()) + "`"
	}
}

var zeroUnits = regexp.MustCompile(`([a-z])0[ms](0s)?$`)

// brief drops the zeros that a duration ends with.
func brief(d time.Duration) string {
	for {
		text := zeroUnits.ReplaceAllString(d.String(), "$1")
		return text
	}
}

// words are the comments of the example above each key. A key without one belongs
// to the comment of the key before.
func words(t *testing.T) map[string]string {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(uncommented()), &doc); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	var walk func(n *yaml.Node, path string)
	walk = func(n *yaml.Node, path string) {
		switch n.Kind {
		case yaml.SequenceNode:
			for _, item := range n.Content {
				walk(item, path+"[]")
			}
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				at := strings.TrimPrefix(path+"."+n.Content[i].Value, ".")
				text := n.Content[i].HeadComment
				if i == 0 && text == "" {
					text = n.HeadComment
				}
				if out[at] == "" {
					out[at] = prose(text)
				}
				walk(n.Content[i+1], at)
			}
		}
	}
	walk(doc.Content[0], "")
	return out
}

// prose joins the lines of a comment; of several paragraphs the last counts.
func prose(comment string) string {
	paragraphs := strings.Split(comment, "\n\n")
	var lines []string
	for line := range strings.SplitSeq(paragraphs[len(paragraphs)-1], "\n") {
		line = strings.TrimSpace(strings.TrimLeft(line, "#"))
		lines = append(lines, line)
	}
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return l == "" }), " ")
}
