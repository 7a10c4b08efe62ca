package recording

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// object parses one JSON line.
func object(line []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	var raw any
	if err := dec.Decode(&raw); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("more than one JSON value in a line; write each on its own")
	}
	m, ok := raw.(map[string]any)
	if !ok {
		return nil, errors.New("not an object; write {…}")
	}
	return m, nil
}

// setValue sets v from what JSON said; path names it in errors.
func setValue(v reflect.Value, raw any, path string) error {
	switch {
	case raw == nil:
		return nil
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return setValue(v.Elem(), raw, path)
	case v.Type() == timeType:
		return setTime(v, raw, path)
	case v.Type() == durationType:
		return setDuration(v, raw, path)
	}
	switch v.Kind() {
	case reflect.Struct:
		return setStruct(v, raw, path)
	case reflect.Slice:
		return setSlice(v, raw, path)
	case reflect.Map:
		return setMap(v, raw, path)
	case reflect.String:
		s, ok := raw.(string)
		if !ok {
			return wrong(path, raw, "a text")
		}
		s, err := unescape(s)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		v.SetString(s)
	case reflect.Bool:
		b, ok := raw.(bool)
		if !ok {
			return wrong(path, raw, "true or false")
		}
		v.SetBool(b)
	default:
		return setNumber(v, raw, path)
	}
	return nil
}

func setStruct(v reflect.Value, raw any, path string) error {
	m, ok := raw.(map[string]any)
	if !ok {
		return wrong(path, raw, "an object")
	}
	fields := fieldsOf(v)
	for name, value := range m {
		field, ok := fields[name]
		if !ok {
			return unknownField(join(path, name), fields)
		}
		if err := setValue(field, value, join(path, name)); err != nil {
			return err
		}
	}
	return nil
}

func unknownField(path string, fields map[string]reflect.Value) error {
	return fmt.Errorf("%s: unknown field; write one of %s", path, strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
}

// fieldsOf are the fields of a struct by their names; embedded structs lend
// theirs.
func fieldsOf(v reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case f.Anonymous:
			maps.Copy(out, fieldsOf(v.Field(i)))
		case f.IsExported():
			out[snake(f.Name)] = v.Field(i)
		}
	}
	return out
}

func setSlice(v reflect.Value, raw any, path string) error {
	list, ok := raw.([]any)
	if !ok {
		return wrong(path, raw, "a list")
	}
	out := reflect.MakeSlice(v.Type(), len(list), len(list))
	for i, item := range list {
		if err := setValue(out.Index(i), item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	v.Set(out)
	return nil
}

func setMap(v reflect.Value, raw any, path string) error {
	m, ok := raw.(map[string]any)
	if !ok {
		return wrong(path, raw, "an object")
	}
	out := reflect.MakeMap(v.Type())
	for name, value := range m {
		key, err := unescape(name)
		if err != nil {
			return fmt.Errorf("%s: %w", join(path, name), err)
		}
		item := reflect.New(v.Type().Elem()).Elem()
		if err := setValue(item, value, join(path, name)); err != nil {
			return err
		}
		out.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), item)
	}
	v.Set(out)
	return nil
}

func setTime(v reflect.Value, raw any, path string) error {
	s, _ := raw.(string)
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return wrong(path, raw, "a time such as 2026-03-01T12:00:00Z")
	}
	v.Set(reflect.ValueOf(t.UTC()))
	return nil
}

func setDuration(v reflect.Value, raw any, path string) error {
	s, _ := raw.(string)
	if s == none {
		v.SetInt(-1)
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return wrong(path, raw, "a duration such as 30s, or none")
	}
	v.SetInt(int64(d))
	return nil
}

func setNumber(v reflect.Value, raw any, path string) error {
	n, ok := raw.(json.Number)
	if !ok {
		return wrong(path, raw, "a number")
	}
	var err error
	switch {
	case v.CanInt():
		var i int64
		if i, err = strconv.ParseInt(n.String(), 10, v.Type().Bits()); err == nil {
			v.SetInt(i)
		}
	case v.CanUint():
		var u uint64
		if u, err = strconv.ParseUint(n.String(), 10, v.Type().Bits()); err == nil {
			v.SetUint(u)
		}
	case v.CanFloat():
		var f float64
		if f, err = strconv.ParseFloat(n.String(), 64); err == nil {
			v.SetFloat(f)
		}
	default:
		return fmt.Errorf("%s: cannot be recorded", path)
	}
	if err != nil {
		return wrong(path, raw, "a whole number that fits")
	}
	return nil
}

func unescape(s string) (string, error) {
	encoded, ok := strings.CutPrefix(s, base64Prefix)
	if !ok {
		return s, nil
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", fmt.Errorf("got %q, write standard base64 behind %s", s, base64Prefix)
	}
	return string(raw), nil
}

func wrong(path string, raw any, want string) error {
	text := fmt.Sprint(raw)
	if len(text) > 60 {
		text = text[:60] + "…"
	}
	return fmt.Errorf("%s: got %q, write %s", path, text, want)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
