// Package record is the wire format that the lock library writes beside each lock, and the names of the keys it
// writes it under: docs/wire-format.md as code. It needs nothing but the standard library. What cannot be decoded
// is an error, never a panic.
package record

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Version is the format version that this package writes.
const Version = 2

// Grace is how long metadata outlives a lock whose lease ran out, so that an observer can tell that it was lost and
// not released.
const Grace = 5 * time.Minute

// What [Decode] keeps at most of metadata, whichever program wrote it.
const (
	MaxText    = 4096     // bytes of a text; the rest is cut off
	MaxHolding = 256      // keys of a session
	MaxMeta    = 24 << 10 // bytes of metadata: more than the library writes
)

// ErrMalformed is "a field does not have the form that the format gives it".
var ErrMalformed = errors.New("malformed metadata")

// Meta is the metadata of one hold, in the order of its JSON members. Times are milliseconds of server time since
// 1970, durations milliseconds; zero is "not said". The scripts write what is before ID, the holder the rest.
type Meta struct {
	Fence    int64 `json:"fence,omitempty,string"`
	Acquired int64 `json:"acquired,omitempty,string"`
	Lost     *Lost `json:"lost,omitempty"`           // the hold before this one, if it ended without a release
	Offered  int64 `json:"offered,omitempty,string"` // end of the turn of a hand-off that is not confirmed yet
	Free     int64 `json:"free,omitempty,string"`    // since when the lock is free with waiters in its queue: no hold, no ID
	Renewed  int64 `json:"renewed,omitempty,string"`
	Progress int64 `json:"progress,omitempty,string"`

	ID            string   `json:"id,omitempty"`  // acquisition id, as in the lock's value
	Seq           int64    `json:"seq,omitempty"` // grows with each renewal, which writes the metadata anew
	Renewals      int64    `json:"renewals,omitempty"`
	RenewFailures int64    `json:"renew_failures,omitempty"`
	Holds         int64    `json:"holds,omitempty"`
	Session       string   `json:"session,omitempty"`
	Holding       []string `json:"holding,omitempty"`
	Trace         string   `json:"trace,omitempty"`

	V                 int    `json:"v,omitempty"`
	Instance          string `json:"instance,omitempty"`
	App               string `json:"app,omitempty"`
	Host              string `json:"host,omitempty"`
	PID               int    `json:"pid,omitempty"`
	Class             string `json:"class,omitempty"`
	Purpose           string `json:"purpose,omitempty"`
	TTL               int64  `json:"ttl,omitempty"`
	RenewEvery        int64  `json:"renew_every,omitempty"`
	Expect            int64  `json:"expect,omitempty"`
	MaxHold           int64  `json:"max_hold,omitempty"`
	EndsWithHeartbeat int64  `json:"ends_with_heartbeat,omitempty"` // 1: the holder gives up when it cannot write its heartbeat
}

// encoded are the members that have a text which is not UTF-8 or has control characters, in base64.
type encoded struct {
	Holding [][]byte `json:"holding_b64"`
	Trace   []byte   `json:"trace_b64"`
	App     []byte   `json:"app_b64"`
	Host    []byte   `json:"host_b64"`
	Class   []byte   `json:"class_b64"`
	Purpose []byte   `json:"purpose_b64"`
}

// mark begins a text in base64 until its member has been renamed.
const (
	mark     = "\x00base64\x00"
	markJSON = `\u0000base64\u0000`
)

// Encode returns m as the JSON object that is kept beside the lock. Empty texts and zero numbers are left out.
func (m *Meta) Encode() string {
	w, marked := *m, false
	for _, text := range []*string{&w.Trace, &w.App, &w.Host, &w.Class, &w.Purpose} {
		if !printable(*text) {
			*text, marked = mark+base64.StdEncoding.EncodeToString([]byte(*text)), true
		}
	}
	if slices.ContainsFunc(w.Holding, func(key string) bool { return !printable(key) }) {
		w.Holding, marked = slices.Clone(w.Holding), true
		for i, key := range w.Holding {
			w.Holding[i] = base64.StdEncoding.EncodeToString([]byte(key))
		}
		w.Holding[0] = mark + w.Holding[0]
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(w) // texts and numbers: nothing that it can refuse
	text := strings.TrimSuffix(b.String(), "\n")
	if marked {
		text = strings.NewReplacer(`":"`+markJSON, `_b64":"`, `":["`+markJSON, `_b64":["`).Replace(text)
	}
	return text
}

// printable says that a JSON string can have text without escapes of six bytes.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// Tail returns what a holder hands to the scripts: [Meta.Encode] from the member "id" on, without what the scripts
// write before it.
func (m *Meta) Tail() string {
	t := *m
	t.Fence, t.Acquired, t.Offered, t.Free, t.Renewed, t.Progress, t.Lost = 0, 0, 0, 0, 0, 0, nil
	return t.Encode()[1:]
}

// timedFence is the least fence that can be a time in µs: of 2001, the first of sixteen digits.
const timedFence = 1e15

// Decode reads metadata. It keeps what it can read even when it also returns an error, which wraps [ErrMalformed]
// and names every member that it could not read. Members that it does not know are ignored, and a later version is
// no error. It never returns nil.
func Decode(text string) (*Meta, error) {
	var w struct {
		Meta
		encoded
	}
	var errs []error
	fail := func(name, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: member %q: "+format, append([]any{ErrMalformed, name}, args...)...))
	}
	if len(text) > MaxMeta {
		return &Meta{}, fmt.Errorf("%w: longer than %d bytes", ErrMalformed, MaxMeta)
	}
	if json.Unmarshal([]byte(text), &w) != nil {
		var members map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &members) != nil {
			return &Meta{}, fmt.Errorf("%w: want a JSON object, got %q", ErrMalformed, clip(text, 64))
		}
		w.Meta, w.encoded = Meta{}, encoded{}
		for name, value := range members { // one by one: which can be read?
			before := w
			one, err := json.Marshal(map[string]json.RawMessage{name: value})
			if err != nil || json.Unmarshal(one, &w) != nil {
				w = before
				fail(name, "got %q", clip(string(value), 64))
			}
		}
	}
	m := &w.Meta
	texts := [...]*string{&m.Trace, &m.App, &m.Host, &m.Class, &m.Purpose}
	for i, b64 := range [...][]byte{w.encoded.Trace, w.encoded.App, w.encoded.Host, w.encoded.Class, w.encoded.Purpose} {
		if *texts[i] == "" {
			*texts[i] = string(b64)
		}
	}
	for _, key := range w.encoded.Holding {
		m.Holding = append(m.Holding, string(key))
	}
	if len(m.Holding) > MaxHolding {
		fail("holding", "more than %d keys", MaxHolding)
		m.Holding = slices.Clone(m.Holding[:MaxHolding])
	}
	fields := reflect.ValueOf(m).Elem()
	for i := range fields.NumField() {
		name := func() string {
			name, _, _ := strings.Cut(fields.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
		switch f := fields.Field(i); {
		case f.Kind() == reflect.String && f.Len() > MaxText:
			fail(name(), "longer than %d bytes", MaxText)
			f.SetString(clip(f.String(), MaxText))
		case f.CanInt() && (f.Int() < 0 || f.Kind() == reflect.Int && f.Int() > math.MaxInt32):
			fail(name(), "%d is out of range", f.Int())
			f.SetInt(0)
		}
	}
	if m.EndsWithHeartbeat > 1 {
		fail("ends_with_heartbeat", "want 0 or 1, got %d", m.EndsWithHeartbeat)
		m.EndsWithHeartbeat = 0
	}
	if m.Acquired == 0 && m.Fence >= timedFence {
		m.Acquired = m.Fence / 1000
	}
	if m.Lost != nil && m.Lost.Fence < 0 {
		m.Lost = nil
	}
	if m.V == 0 {
		fail("v", "is missing")
	}
	if m.ID == "" && m.Free == 0 {
		fail("id", "is missing")
	}
	return m, errors.Join(errs...)
}

// Lost is what an acquire copies of the metadata it found without its lock.
type Lost struct {
	ID       string
	Holder   string // instance id
	Fence    int64
	Deadline int64 // ms, when the lost lease ran out
	Offered  bool  // it was handed over, and never confirmed
}

// MarshalText returns "<id> <holder> <fence> <deadline>", "-" for what is not known, and " offered" behind it. It
// is one text because the scripts write it.
func (l Lost) MarshalText() ([]byte, error) {
	text := fmt.Appendf(nil, "%s %s %d %d", dash(l.ID), dash(l.Holder), l.Fence, l.Deadline)
	if l.Offered {
		text = append(text, " offered"...)
	}
	return text, nil
}

// UnmarshalText is the inverse of MarshalText; no text is a negative fence.
func (l *Lost) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		l.Fence = -1
		return nil
	}
	words := strings.Split(clip(string(text), MaxText), " ")
	if len(words) < 4 {
		return errors.New(`want "<id> <holder> <fence> <deadline>"`)
	}
	l.ID, l.Holder, l.Offered = undash(words[0]), undash(words[1]), len(words) > 4 && words[4] == "offered"
	return parseNumbers(words[2:], &l.Fence, &l.Deadline)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func undash(s string) string {
	if s == "-" {
		return ""
	}
	return s
}

// parseNumbers reads numbers of the format: at most 19 decimal digits, no sign.
func parseNumbers(words []string, into ...*int64) error {
	if len(words) < len(into) {
		return fmt.Errorf("want %d numbers, got %d", len(into), len(words))
	}
	for i, n := range into {
		v, err := strconv.ParseUint(words[i], 10, 63)
		if err != nil || len(words[i]) > 19 {
			return errors.New("not a decimal number")
		}
		*n = int64(v)
	}
	return nil
}

func clip(s string, size int) string {
	if len(s) > size {
		return strings.Clone(s[:size])
	}
	return s
}
