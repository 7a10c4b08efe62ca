package recording

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The codec goes over the nouns by reflection, so that a fact added to them is
// recorded without a line here.

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
)

// none stands for a duration of -1 ns, which the nouns use for "never" and "not
// known".
const none = "none"

// base64Prefix marks a text that is not UTF-8, or that begins with the mark
// itself.
const base64Prefix = "base64:"

// appendValue appends v as JSON.
func appendValue(b []byte, v reflect.Value) []byte {
	switch {
	case v.Type() == timeType:
		return appendText(b, v.Interface().(time.Time).UTC().Format(time.RFC3339Nano))
	case v.Type() == durationType:
		if v.Int() == -1 {
			return appendText(b, none)
		}
		return appendText(b, time.Duration(v.Int()).String())
	}
	switch v.Kind() {
	case reflect.Struct:
		b = append(b, '{')
		b, _ = appendFields(b, v, true)
		return append(b, '}')
	case reflect.Pointer:
		return appendValue(b, v.Elem())
	case reflect.Slice:
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, v.Index(i))
		}
		return append(b, ']')
	case reflect.Map:
		return appendMap(b, v)
	case reflect.String:
		return appendText(b, v.String())
	case reflect.Bool:
		return fmt.Appendf(b, "%t", v.Bool())
	default:
		// Numbers: the nouns have no others, which a test holds.
		return fmt.Appendf(b, "%v", v.Interface())
	}
}

// appendFields appends the fields that are not zero; those of embedded structs
// stand among them.
func appendFields(b []byte, v reflect.Value, first bool) ([]byte, bool) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		value := v.Field(i)
		switch {
		case value.IsZero():
		case f.Anonymous:
			b, first = appendFields(b, value, first)
		case f.IsExported():
			if !first {
				b = append(b, ',')
			}
			first = false
			b = appendText(b, snake(f.Name))
			b = append(b, ':')
			b = appendValue(b, value)
		}
	}
	return b, first
}

func appendMap(b []byte, v reflect.Value) []byte {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	b = append(b, '{')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, k.String())
		b = append(b, ':')
		b = appendValue(b, v.MapIndex(k))
	}
	return append(b, '}')
}

func appendText(b []byte, s string) []byte {
	if !utf8.ValidString(s) || strings.HasPrefix(s, base64Prefix) {
		s = base64Prefix + base64.StdEncoding.EncodeToString([]byte(s))
	}
	quoted, err := json.Marshal(s)
	if err != nil { // cannot be: a valid string
		return append(b, `""`...)
	}
	return append(b, quoted...)
}

// snake is a field's name as it is written: ExpireAt is expire_at, LastSaveOK is
// last_save_ok.
func snake(name string) string {
	var out []rune
	runes := []rune(name)
	for i, r := range runes {
		if unicode.IsUpper(r) {
			next := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if i > 0 && (!unicode.IsUpper(runes[i-1]) || next) {
				out = append(out, '_')
			}
			r = unicode.ToLower(r)
		}
		out = append(out, r)
	}
	return string(out)
}
