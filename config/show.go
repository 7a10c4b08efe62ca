package config

import (
	"encoding"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
)

// Setting is one key of a configuration with the value that is used.
type Setting struct {
	// Path is such as targets[0].url.
	Path string `json:"path"`
	// Value is as YAML has it in one line; a secret is masked.
	Value string `json:"value"`
	// From is where the value comes from: FILE:LINE, the name of an environment variable, or
	// "default".
	From string `json:"from"`
}

// Settings returns every key of a configuration file in the order of docs/configuration.md,
// with the value that the agent would use. Blocks that are not there have no keys. Errors are
// those of [Load].
func Settings(file string) ([]Setting, error) {
	c, d, err := read(file)
	if err != nil {
		return nil, err
	}
	if _, err := d.finish(c, Config.Validate); err != nil {
		return nil, err
	}
	var out []Setting
	err = d.settings(reflect.ValueOf(&c).Elem(), "", &out)
	return out, err
}

var secretType = reflect.TypeFor[locksteward.Secret]()

// settings appends what is at path and below it.
func (d *decoder) settings(v reflect.Value, path string, out *[]Setting) error {
	switch shape := shapeOf(v.Type()); {
	case shape == shapeOptional && v.IsNil():
		return nil
	case shape == shapeOptional:
		return d.settings(v.Elem(), path, out)
	case shape == shapeBlock:
		fields := yamlFields(v)
		receiver, isReceiver := v.Interface().(alert.Receiver)
		for _, name := range yamlNames(v.Type()) {
			if isReceiver && !receiver.Takes(name) {
				continue
			}
			if err := d.settings(fields[name], join(path, name), out); err != nil {
				return err
			}
		}
		return nil
	case v.Kind() == reflect.Slice && shape == shapeList && shapeOf(v.Type().Elem()) == shapeBlock:
		for i := range v.Len() {
			if err := d.settings(v.Index(i), fmt.Sprintf("%s[%d]", path, i), out); err != nil {
				return err
			}
		}
		return nil
	}
	text, err := settingText(v)
	if err != nil {
		return fmt.Errorf("show %s: %w", path, err)
	}
	*out = append(*out, Setting{Path: path, Value: text, From: d.from(path)})
	return nil
}

// yamlNames are the keys of [yamlFields] in the order of the fields.
func yamlNames(t reflect.Type) (out []string) {
	for f := range t.Fields() {
		switch name, options, _ := strings.Cut(f.Tag.Get("yaml"), ","); {
		case name == "-" || !f.IsExported():
		case options == "inline":
			out = append(out, yamlNames(f.Type)...)
		case name != "":
			out = append(out, name)
		}
	}
	return out
}

// from names the place of a value.
func (d *decoder) from(path string) string {
	at, ok := d.places[path]
	switch {
	case !ok:
		return "default"
	case at.node == nil:
		return at.file
	}
	return fmt.Sprintf("%s:%d", filepath.Base(at.file), at.node.Line)
}

// settingText is a value in one line.
func settingText(v reflect.Value) (string, error) {
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil():
		return "", nil
	case v.Type() == secretType:
		return fmt.Sprint(v.Interface()), nil
	case v.Kind() == reflect.Slice && v.Type().Elem() == secretType:
		return fmt.Sprint(v.Interface()), nil
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		return string(text), err
	}
	if s, ok := v.Interface().(fmt.Stringer); ok {
		return s.String(), nil
	}
	var n yaml.Node
	if err := n.Encode(v.Interface()); err != nil {
		return "", err
	}
	flow(&n)
	text, err := yaml.Marshal(&n)
	return strings.TrimSuffix(string(text), "\n"), err
}

// flow puts a value into one line.
func flow(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode {
		n.Style = yaml.FlowStyle
	}
	for _, child := range n.Content {
		flow(child)
	}
}
