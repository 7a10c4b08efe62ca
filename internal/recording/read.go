package recording

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/locksteward/locksteward"
)

// Read gives the looks of a recording in their order. A pair is a look or an
// error, and an error is the last pair; it names the line.
//
// What people leave out of a recording that they write themselves is filled in:
// a look is of target "redis" and complete unless it says otherwise, a lock was
// seen at the time of its look, has kind "lock", type "string" and library
// "token".
func Read(r io.Reader) iter.Seq2[Look, error] {
	return func(yield func(Look, error) bool) {
		in := bufio.NewReaderSize(r, 1<<16)
		number, headed := 0, false
		fail := func(err error) { yield(Look{}, fmt.Errorf("line %d: %w", number, err)) }
		var look *Look
		for {
			raw, err := readLine(in)
			number++
			if errors.Is(err, io.EOF) && len(raw) == 0 {
				break
			}
			if err != nil && !errors.Is(err, io.EOF) {
				fail(err)
				return
			}
			if raw = bytes.TrimSpace(raw); len(raw) == 0 {
				continue
			}
			if !headed {
				headed = true
				if err := checkHeader(raw); err != nil {
					fail(err)
					return
				}
				continue
			}
			m, err := object(raw)
			if err != nil {
				fail(err)
				return
			}
			if _, begins := m["look"]; begins {
				if look != nil && !yield(*look, nil) {
					return
				}
				look, err = newLook(m)
			} else if look == nil {
				err = errors.New(`a lock without its look; write {"look": "sweep", "at": "2026-03-01T12:00:00Z"} before it`)
			} else {
				err = look.add(m)
			}
			if err != nil {
				fail(err)
				return
			}
		}
		switch {
		case !headed:
			number = 1
			fail(fmt.Errorf("empty; record one with 'locksteward scan --record FILE'"))
		case look != nil:
			yield(*look, nil)
		}
	}
}

// readLine returns the next line, at most MaxLine bytes of it.
func readLine(in *bufio.Reader) ([]byte, error) {
	var out []byte
	for {
		part, err := in.ReadSlice('\n')
		out = append(out, part...)
		if len(out) > MaxLine {
			return nil, fmt.Errorf("longer than %d bytes: is this a recording?", MaxLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return out, err
		}
	}
}

func checkHeader(raw []byte) error {
	var h header
	m, err := object(raw)
	if err == nil {
		err = setValue(reflect.ValueOf(&h).Elem(), m, "")
	}
	if err != nil || h.Format != Format {
		return fmt.Errorf(`is not a recording: the first line must be {"format": %q, "version": %d}; record one with 'locksteward scan --record FILE'`, Format, Version)
	}
	if h.Version != Version {
		return fmt.Errorf("a recording of version %d, this program reads %d; use the program that wrote it (%s)", h.Version, Version, h.Program)
	}
	return nil
}

// newLook reads the line that begins a look.
func newLook(m map[string]any) (*Look, error) {
	kind, _ := m["look"].(string)
	if kind != lookSweep && kind != lookDirect {
		return nil, wrong("look", m["look"], lookSweep+" or "+lookDirect)
	}
	look := &Look{Direct: kind == lookDirect}
	sweep := reflect.ValueOf(&look.Sweep).Elem()
	fields := fieldsOf(sweep)
	for field := range sweepType.Fields() {
		if name := snake(field.Name); isList(singular(name)) {
			delete(fields, name)
		}
	}
	for name, value := range m {
		if name == "look" {
			continue
		}
		field, ok := fields[name]
		if !ok {
			return nil, unknownField(name, fields)
		}
		if err := setValue(field, value, name); err != nil {
			return nil, err
		}
	}
	if look.Sweep.At.IsZero() {
		return nil, errors.New("at: missing, write the time of the look such as 2026-03-01T12:00:00Z")
	}
	if look.Sweep.Target == "" {
		look.Sweep.Target = "redis"
	}
	if len(look.Sweep.Masters) == 0 && !look.Direct {
		look.Sweep.Masters = []locksteward.MasterPass{{Complete: true}}
	}
	return look, nil
}

func isList(name string) bool {
	_, ok := lists[name]
	return ok
}

// add takes in one line of the look: one thing that it saw.
func (look *Look) add(m map[string]any) error {
	if len(m) != 1 {
		return fmt.Errorf("got %d things, write one of look, %s", len(m), strings.Join(slices.Sorted(maps.Keys(lists)), ", "))
	}
	for name, value := range m {
		i, ok := lists[name]
		if !ok {
			return fmt.Errorf("%s: unknown; write one of look, %s", name, strings.Join(slices.Sorted(maps.Keys(lists)), ", "))
		}
		list := reflect.ValueOf(&look.Sweep).Elem().Field(i)
		element := reflect.New(list.Type().Elem())
		if err := setValue(element.Elem(), value, name); err != nil {
			return err
		}
		switch v := element.Interface().(type) {
		case *locksteward.Lock:
			look.fill(v)
		case *locksteward.Ending:
			look.fill(&v.Lock)
		}
		list.Set(reflect.Append(list, element.Elem()))
	}
	return nil
}

// fill gives a lock what a recording written by hand leaves out.
func (look *Look) fill(l *locksteward.Lock) {
	if l.Target == "" {
		l.Target = look.Sweep.Target
	}
	if l.At.IsZero() {
		l.At = look.Sweep.At
	}
	if l.Kind == "" {
		l.Kind = locksteward.KindLock
	}
	if l.Type == "" {
		l.Type = "string"
	}
	if l.Library == "" {
		l.Library = "token"
	}
}
