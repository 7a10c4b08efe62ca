package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// body decodes one JSON object strictly: what encoding/json would pass over or
// guess is an error, since a change must be the one that was meant.
func body(r *http.Request, into any) error {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/json" {
		return api.NewProblem(api.CodeMediaType, "the body must be JSON: send `Content-Type: application/json`")
	}
	raw, err := io.ReadAll(r.Body)
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return api.NewProblem(api.CodeTooLarge, fmt.Sprintf("the body is larger than %d bytes", maxBody))
	}
	if err == nil {
		err = strict(raw, reflect.TypeOf(into).Elem())
	}
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("%s: must be a JSON %s, got %s", wrong.Field, jsonType(wrong.Type), wrong.Value)
	}
	if wrong, ok := errors.AsType[*time.ParseError](err); ok {
		err = fmt.Errorf("%s is not a time: write it like 2026-03-01T12:00:00Z", strings.Trim(wrong.Value, `"`))
	}
	if err != nil {
		return fmt.Errorf("read body: %w: %w", locksteward.ErrInvalid, err)
	}
	return nil
}

// maxDepth is how deep a body may be nested; none that is of use is deeper than
// 3.
const maxDepth = 8

// strict says what is wrong with a body that is to become a t, beyond what
// json.Unmarshal says.
func strict(raw []byte, t reflect.Type) error {
	if !utf8.Valid(raw) {
		return errors.New("it is not valid UTF-8: give the bytes of such a key as key_b64, in base64")
	}
	if loneSurrogate(raw) {
		return errors.New(`it has an escape (\ud800 to \udfff) that is no character: give the bytes of such a key as key_b64, in base64`)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if first := bytes.TrimLeft(raw, " \t\r\n"); len(first) > 0 && first[0] != '{' {
		return errors.New("it must be one JSON object, in braces")
	}
	if err := strictValue(dec, t, "", 0); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("it is empty or ends too early: send one JSON object")
		}
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("unexpected data after the object")
	}
	return nil
}

func strictValue(dec *json.Decoder, t reflect.Type, path string, depth int) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	open, nested := token.(json.Delim)
	if !nested {
		return nil
	}
	if depth++; depth > maxDepth {
		return fmt.Errorf("%sit is nested deeper than %d", path, maxDepth)
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var inner reflect.Type
	if t != nil && t.Kind() == reflect.Slice {
		inner = t.Elem()
	}
	if open == '[' {
		for i := 0; dec.More(); i++ {
			if err := strictValue(dec, inner, path+"["+strconv.Itoa(i)+"]: ", depth); err != nil {
				return err
			}
		}
	} else if err := strictFields(dec, t, path, depth); err != nil {
		return err
	}
	_, err = dec.Token()
	return err
}

func strictFields(dec *json.Decoder, t reflect.Type, path string, depth int) error {
	fields := fieldsOf(t)
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if seen[strings.ToLower(name)] {
			return fmt.Errorf("%s%q is given twice", path, shortName(name))
		}
		seen[strings.ToLower(name)] = true
		next, known := fields[name]
		if fields != nil && !known {
			return fmt.Errorf("%sunknown field %q: use %s", path, shortName(name), strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		}
		if err := strictValue(dec, next, path+name+": ", depth); err != nil {
			return err
		}
	}
	return nil
}

// fieldsOf returns the types of a struct's fields by their names in JSON; nil for
// any other type, which json.Unmarshal judges.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if t == nil || t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	out := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "": // its fields stand among the others
			maps.Copy(out, fieldsOf(f.Type))
		case name != "" && name != "-":
			out[name] = f.Type
		}
	}
	return out
}

// jsonType is how JSON calls a type.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		return "integer that fits"
	case reflect.Slice:
		return "array"
	default:
		return "object"
	}
}

// shortName is a name as an answer may repeat it.
func shortName(name string) string {
	const most = 60
	if len(name) > most {
		return strings.ToValidUTF8(name[:most], "") + "…"
	}
	return name
}

// loneSurrogate says whether an escape is half a character, which
// encoding/json silently turns into another one: the name of another lock.
func loneSurrogate(raw []byte) bool {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		r := unit(raw, i+1)
		if !utf16.IsSurrogate(r) {
			continue
		}
		if i+6 >= len(raw) || raw[i+5] != '\\' || raw[i+6] != 'u' || utf16.DecodeRune(r, unit(raw, i+7)) == utf8.RuneError {
			return true
		}
		i += 10
	}
	return false
}

// unit reads four hexadecimal digits.
func unit(raw []byte, at int) rune {
	if at+4 > len(raw) {
		return 0
	}
	n, err := strconv.ParseUint(string(raw[at:at+4]), 16, 32)
	if err != nil {
		return 0
	}
	return rune(n)
}
