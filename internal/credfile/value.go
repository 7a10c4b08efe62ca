package credfile

import (
	"bytes"
	"fmt"
)

// Value is what one file holds, in a form of its own: a URL, a signing key.
type Value[T any] struct{ f file[T] }

// OpenValue reads a file. parse makes the value of its text, and its errors must not
// show a byte of it. An empty file is refused, at first as well.
func OpenValue[T any](path string, parse func(text []byte) (T, error)) (*Value[T], error) {
	v := &Value[T]{f: file[T]{paths: []string{path}}}
	v.f.read = func(raw [][]byte) (T, error) {
		if len(bytes.TrimSpace(raw[0])) == 0 {
			var none T
			return none, fmt.Errorf("%q is empty", path)
		}
		return parse(raw[0])
	}
	if err := v.f.open(); err != nil {
		return nil, err
	}
	return v, nil
}

// Get returns the value in use, after a look if the last one is older than
// [LookEvery]. It must not be changed.
func (v *Value[T]) Get() T { return v.f.get() }

// State looks at the file, at once if force is set.
func (v *Value[T]) State(force bool) State { return v.f.state(force) }
