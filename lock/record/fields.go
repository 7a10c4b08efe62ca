package record

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Field names of the instance hash.
const (
	FieldID      = "id"
	FieldApp     = "app"
	FieldHost    = "host"
	FieldPID     = "pid"
	FieldStarted = "started"
	FieldSlot    = "slot"
)

// decoder takes fields out of a hash one by one and collects what is wrong.
type decoder struct {
	fields map[string]string
	known  []string
	errs   []error
}

func (d *decoder) take(name string) (string, bool) {
	d.known = append(d.known, name)
	value, ok := d.fields[name]
	return value, ok
}

func (d *decoder) fail(name, value string, err error) {
	if err != nil {
		d.errs = append(d.errs, fmt.Errorf("%w: field %q has %q: %w", ErrMalformed, name, clip(value, 64), err))
	}
}

// missing reports a field without which the rest means nothing, unless it was
// reported for what it has.
func (d *decoder) missing(name string) {
	if strings.Trim(d.fields[name], "0") == "" {
		d.errs = append(d.errs, fmt.Errorf("%w: field %q is missing", ErrMalformed, name))
	}
}

func (d *decoder) text(name string) string {
	value, _ := d.take(name)
	if len(value) > MaxText {
		d.fail(name, value, fmt.Errorf("longer than %d bytes", MaxText))
	}
	return clip(value, MaxText)
}

func (d *decoder) number(name string, limit int64) int64 {
	value, ok := d.take(name)
	if !ok || value == "" {
		return 0
	}
	n, err := parseNumber(value)
	if err == nil && n > limit {
		err = fmt.Errorf("above %d", limit)
	}
	if err != nil {
		d.fail(name, value, err)
		return 0
	}
	return n
}

func (d *decoder) integer(name string, limit int64) int { return int(d.number(name, limit)) }

// unknown returns the first fields by name that nobody took, within the bounds.
func (d *decoder) unknown() map[string]string {
	var names []string
	for name := range d.fields {
		if !slices.Contains(d.known, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	if len(names) > MaxUnknown {
		d.errs = append(d.errs, fmt.Errorf("%w: %d unknown fields, kept %d", ErrMalformed, len(names), MaxUnknown))
		names = names[:MaxUnknown]
	}
	kept := make(map[string]string, len(names))
	for _, name := range names {
		kept[clip(name, MaxText)] = clip(d.fields[name], MaxText)
	}
	return kept
}

// parseNumber reads a number of the format: decimal digits only, no sign.
func parseNumber(text string) (int64, error) {
	if len(text) > 19 {
		return 0, errors.New("too long for a number")
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || text[0] == '+' || text[0] == '-' {
		return 0, errors.New("not a decimal number")
	}
	return n, nil
}

func clip(s string, size int) string {
	if len(s) > size {
		return strings.Clone(s[:size])
	}
	return s
}
