package alert

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	texttemplate "text/template"
	"time"
)

// Template replaces the built-in text of a receiver that people read: two Go templates
// over a [Payload], docs/templates.md. An empty one keeps the built-in text. Colour, links
// and mentions are the kind's in any case.
type Template struct {
	// Title is one line.
	Title string `yaml:"title"`
	// Text is below the title.
	Text string `yaml:"text"`
}

// maxTemplated bounds what a template writes, in bytes.
const maxTemplated = 64 << 10

var errTemplateLong = fmt.Errorf("writes more than %d bytes", maxTemplated)

// compiled are the templates of one receiver. It is safe for concurrent use.
type compiled struct{ title, text *texttemplate.Template }

// compile parses the templates and tries them on samples of all messages; nil has
// none. The error joins all problems, each with its key below the receiver.
func (t *Template) compile(lang string) (*compiled, error) {
	if t == nil || t.Title == "" && t.Text == "" {
		return nil, nil
	}
	var c compiled
	var errs []error
	for _, one := range []struct {
		key, source string
		into        **texttemplate.Template
	}{{"template.title", t.Title, &c.title}, {"template.text", t.Text, &c.text}} {
		if one.source == "" {
			continue
		}
		parsed, err := parseTemplate(one.source, lang)
		if err == nil {
			err = try(parsed)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", one.key, err))
			continue
		}
		*one.into = parsed
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &c, nil
}

// Validate reports what is wrong with t, each problem with its key. A nil one is
// right.
func (t *Template) problems() []error {
	_, err := t.compile("en")
	if err == nil {
		return nil
	}
	return prefixed("", err)
}

// apply writes title and text; "" where the template says nothing.
func (c *compiled) apply(p Payload) (title, text string, err error) {
	p = legible(p)
	if c.title != nil {
		if title, err = execute(c.title, p); err != nil {
			return "", "", fmt.Errorf("template.title: %w", err)
		}
	}
	if c.text != nil {
		if text, err = execute(c.text, p); err != nil {
			return "", "", fmt.Errorf("template.text: %w", err)
		}
	}
	return strings.TrimSpace(tidy(title)), strings.Trim(tidyLines(text), "\n "), nil
}

// try executes a template for a message of each type: a field that does not exist
// shows at load, not when something breaks.
func try(t *texttemplate.Template) error {
	for _, sample := range templateSamples() {
		if _, err := execute(t, sample); err != nil {
			return fmt.Errorf("%w (tried with a message of type %s)", err, sample.Type)
		}
	}
	return nil
}

func parseTemplate(source, lang string) (*texttemplate.Template, error) {
	t, err := texttemplate.New("template").Option("missingkey=error").Funcs(templateFuncs(lang)).Parse(source)
	if err != nil {
		return nil, readableError(err)
	}
	return t, nil
}

// boundedText stops a template that writes too much.
type boundedText struct{ strings.Builder }

func (b *boundedText) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxTemplated {
		return 0, errTemplateLong
	}
	return b.Builder.Write(p)
}

func execute(t *texttemplate.Template, p Payload) (string, error) {
	var out boundedText
	if err := t.Execute(&out, p); err != nil {
		return "", readableError(err)
	}
	return out.String(), nil
}

// templateFuncs are the functions of docs/templates.md, and those of Go less what
// could make a text without bound.
func templateFuncs(lang string) texttemplate.FuncMap {
	short := func(text string) (string, error) {
		if len(text) > maxTemplated {
			return "", errTemplateLong
		}
		return text, nil
	}
	return texttemplate.FuncMap{
		"upper": strings.ToUpper,
		"lower": strings.ToLower,
		"join":  func(sep string, list []string) (string, error) { return short(strings.Join(list, sep)) },
		"date": func(layout string, t time.Time) string {
			if t.IsZero() {
				return ""
			}
			return t.UTC().Format(layout)
		},
		"since": func(from, to time.Time) string {
			if from.IsZero() || to.Before(from) {
				return ""
			}
			return to.Sub(from).Round(time.Second).String()
		},
		"truncate": func(limit int, text string) string { return cut(text, max(limit, 1)) },
		"t":        func(word string) string { return translate(lang, word) },
		"print":    func(args ...any) (string, error) { return short(fmt.Sprint(args...)) },
		"printf":   func(format string, args ...any) (string, error) { return short(fmt.Sprintf(format, args...)) },
		"println":  func(args ...any) (string, error) { return short(fmt.Sprintln(args...)) },
	}
}

var (
	// template: template:3:5: executing "template" at <.X>: can't evaluate …
	templatePlace = regexp.MustCompile(`^template: template:(\d+)(?::\d+)?: (?:executing "[^"]*" at )?`)
	unknownField  = regexp.MustCompile(`^(<.*>): can't evaluate field (\w+) in type (\S+)$`)
)

// readableError says the line, and for a field that does not exist those that do.
func readableError(err error) error {
	text := err.Error()
	if errors.Is(err, errTemplateLong) {
		return errTemplateLong
	}
	place := templatePlace.FindStringSubmatch(text)
	if place == nil {
		return errors.New(strings.TrimPrefix(text, "template: "))
	}
	text = strings.TrimPrefix(text, place[0])
	if m := unknownField.FindStringSubmatch(text); m != nil {
		name := strings.TrimPrefix(strings.TrimLeft(m[3], "*[]"), "alert.")
		text = fmt.Sprintf("%s: %s has no field %q", m[1], name, m[2])
		if fields := templateFields()[name]; len(fields) > 0 {
			text += ", it has " + strings.Join(fields, ", ")
		}
	}
	return fmt.Errorf("line %s: %s", place[1], text)
}

// templateFields are the fields of each type that a template can reach, by the
// type's name.
func templateFields() map[string][]string {
	out := map[string][]string{}
	var visit func(reflect.Type)
	visit = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		name := typeName(t)
		if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() || out[name] != nil {
			return
		}
		var fields []string
		for _, f := range reflect.VisibleFields(t) {
			// An embedded struct is reached by its fields, but for the Key with a Key.
			if f.IsExported() && (!f.Anonymous || hasField(f.Type, f.Name)) {
				fields = append(fields, f.Name)
			}
		}
		out[name] = fields
		for _, f := range reflect.VisibleFields(t) {
			if f.IsExported() {
				visit(f.Type)
			}
		}
	}
	visit(reflect.TypeFor[Payload]())
	return out
}

// typeName is a type as the errors of text/template name it, less this package.
func typeName(t reflect.Type) string { return strings.TrimPrefix(t.String(), "alert.") }

func hasField(t reflect.Type, name string) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	_, has := t.FieldByName(name)
	return has
}
