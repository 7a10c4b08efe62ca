package record

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// What [Decode] keeps at most of a hash, whoever wrote it.
const (
	// MaxText is the longest text field, in bytes; what is longer is cut.
	MaxText = 4096
	// MaxUnknown is how many fields of other versions are kept.
	MaxUnknown = 32
	// MaxHolding is how many keys of a session are kept.
	MaxHolding = 256
)

// ErrMalformed is "a field does not have the form that the format gives it".
var ErrMalformed = errors.New("malformed metadata")

// Field names of the metadata hash.
const (
	FieldV             = "v"
	FieldID            = "id"
	FieldSession       = "session"
	FieldInstance      = "instance"
	FieldApp           = "app"
	FieldHost          = "host"
	FieldPID           = "pid"
	FieldClass         = "class"
	FieldPurpose       = "purpose"
	FieldAcquired      = "acquired"
	FieldTTL           = "ttl"
	FieldRenewEvery    = "renew_every"
	FieldExpect        = "expect"
	FieldMaxHold       = "max_hold"
	FieldEndsWithBeat  = "ends_with_heartbeat"
	FieldRenewed       = "renewed"
	FieldRenewals      = "renewals"
	FieldRenewFailures = "renew_failures"
	FieldProgress      = "progress"
	FieldFence         = "fence"
	FieldHolds         = "holds"
	FieldContended     = "contended"
	FieldHolding       = "holding"
	FieldTrace         = "trace"
	FieldLost          = "lost"
)

// timedFence is the least fence that can be a time in µs: of 2001, the first of
// sixteen digits.
const timedFence = 1e15

// Fields returns m as the field, value, … list that HSET takes, in a fixed
// order, each in a field of its own (see [PackHolder] for the other way). Empty texts and zero numbers are left out: absent means "not said".
func (m *Meta) Fields() []any {
	list := make([]any, 0, 2*25)
	text := func(name, value string) {
		if value != "" {
			list = append(list, name, value)
		}
	}
	number := func(name string, value int64) {
		if value != 0 {
			list = append(list, name, strconv.FormatInt(value, 10))
		}
	}
	number(FieldV, int64(m.V))
	text(FieldID, m.ID)
	text(FieldSession, m.Session)
	text(FieldInstance, m.Instance)
	text(FieldApp, m.App)
	text(FieldHost, m.Host)
	number(FieldPID, int64(m.PID))
	text(FieldClass, m.Class)
	text(FieldPurpose, m.Purpose)
	number(FieldAcquired, m.Acquired)
	number(FieldTTL, m.TTL)
	number(FieldRenewEvery, m.RenewEvery)
	number(FieldExpect, m.Expect)
	number(FieldMaxHold, m.MaxHold)
	number(FieldEndsWithBeat, m.EndsWithHeartbeat)
	number(FieldRenewed, m.Renewed)
	number(FieldRenewals, m.Renewals)
	number(FieldRenewFailures, m.RenewFailures)
	number(FieldProgress, m.Progress)
	number(FieldFence, m.Fence)
	number(FieldHolds, m.Holds)
	number(FieldContended, m.Contended)
	text(FieldHolding, EncodeKeys(m.Holding))
	text(FieldTrace, m.Trace)
	if m.Lost != nil {
		text(FieldLost, m.Lost.encode())
	}
	for _, name := range slices.Sorted(maps.Keys(m.Unknown)) {
		text(name, m.Unknown[name])
	}
	return list
}

// Decode reads a metadata hash as HGETALL gave it. It keeps what it can read
// even when it also returns an error, which wraps [ErrMalformed] and names every
// field that it could not: a reader may show the rest. Fields it does not know
// are kept in Unknown, and a later version is no error. It never returns nil.
func Decode(fields map[string]string) (*Meta, error) {
	m := &Meta{}
	d := decoder{fields: fields}
	m.V = d.integer(FieldV, math.MaxInt32)
	m.ID = d.text(FieldID)
	m.Session = d.text(FieldSession)
	m.Instance = d.text(FieldInstance)
	m.App = d.text(FieldApp)
	m.Host = d.text(FieldHost)
	m.PID = d.integer(FieldPID, math.MaxInt32)
	m.Class = d.text(FieldClass)
	m.Purpose = d.text(FieldPurpose)
	m.Acquired = d.number(FieldAcquired, math.MaxInt64)
	m.TTL = d.number(FieldTTL, math.MaxInt64)
	m.RenewEvery = d.number(FieldRenewEvery, math.MaxInt64)
	m.Expect = d.number(FieldExpect, math.MaxInt64)
	m.MaxHold = d.number(FieldMaxHold, math.MaxInt64)
	m.EndsWithHeartbeat = d.number(FieldEndsWithBeat, 1)
	m.Renewed = d.number(FieldRenewed, math.MaxInt64)
	m.Renewals = d.number(FieldRenewals, math.MaxInt64)
	m.RenewFailures = d.number(FieldRenewFailures, math.MaxInt64)
	m.Progress = d.number(FieldProgress, math.MaxInt64)
	m.Fence = d.number(FieldFence, math.MaxInt64)
	m.Holds = d.number(FieldHolds, math.MaxInt64)
	m.Contended = d.number(FieldContended, math.MaxInt64)
	m.Trace = d.text(FieldTrace)
	if _, told := fields[FieldAcquired]; !told && m.Fence >= timedFence {
		m.Acquired = m.Fence / 1000
	}
	if text, ok := d.take(FieldHolding); ok {
		keys, err := decodeKeys(text)
		m.Holding = keys
		d.fail(FieldHolding, text, err)
	}
	if text, _ := d.take(FieldHolder); text != "" {
		d.fail(FieldHolder, text, unpackHolder(m, text))
	}
	if text, ok := d.take(FieldLost); ok {
		lost, err := decodeLost(text)
		m.Lost = lost
		d.fail(FieldLost, text, err)
	}
	m.Unknown = d.unknown()
	if m.V == 0 && fields[FieldHolder] == "" {
		d.missing(FieldV)
	} else if m.V == 0 && d.errs == nil {
		d.errs = append(d.errs, fmt.Errorf("%w: field %q has no %q", ErrMalformed, FieldHolder, FieldV))
	}
	if m.ID == "" {
		d.missing(FieldID)
	}
	return m, errors.Join(d.errs...)
}

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
