package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What [Decode] keeps at most of metadata, whoever wrote it.
const (
	// MaxText is the longest text, in bytes; what is longer is cut.
	MaxText = 4096
	// MaxUnknown is how many fields of other versions are kept of an instance hash.
	MaxUnknown = 32
	// MaxHolding is how many keys of a session are kept.
	MaxHolding = 256
	// MaxMeta is the longest metadata that is read, in bytes: more than the library writes.
	MaxMeta = 24 << 10
)

// ErrMalformed is "a field does not have the form that the format gives it".
var ErrMalformed = errors.New("malformed metadata")

// timedFence is the least fence that can be a time in µs: of 2001, the first of
// sixteen digits.
const timedFence = 1e15

// members are the members of the metadata's JSON object, in the order in which
// they are written. Fences and times are strings, since JSON readers lose the
// digits of large numbers. What is before the id is written by the scripts. A
// text that is not UTF-8 or has control characters is in the member that ends in
// _b64, in base64.
type members struct {
	Fence    int64  `json:"fence,omitempty,string"`
	Acquired int64  `json:"acquired,omitempty,string"`
	Lost     string `json:"lost,omitempty"`
	Offered  int64  `json:"offered,omitempty,string"`
	Free     int64  `json:"free,omitempty,string"`
	Renewed  int64  `json:"renewed,omitempty,string"`
	Progress int64  `json:"progress,omitempty,string"`

	ID            string   `json:"id,omitempty"`
	Seq           int64    `json:"seq,omitempty"`
	Renewals      int64    `json:"renewals,omitempty"`
	RenewFailures int64    `json:"renew_failures,omitempty"`
	Holds         int64    `json:"holds,omitempty"`
	Session       string   `json:"session,omitempty"`
	Holding       []string `json:"holding,omitempty"`
	HoldingB64    [][]byte `json:"holding_b64,omitempty"`
	Trace         string   `json:"trace,omitempty"`
	TraceB64      []byte   `json:"trace_b64,omitempty"`

	V                 int64  `json:"v,omitempty"`
	Instance          string `json:"instance,omitempty"`
	App               string `json:"app,omitempty"`
	AppB64            []byte `json:"app_b64,omitempty"`
	Host              string `json:"host,omitempty"`
	HostB64           []byte `json:"host_b64,omitempty"`
	PID               int64  `json:"pid,omitempty"`
	Class             string `json:"class,omitempty"`
	ClassB64          []byte `json:"class_b64,omitempty"`
	Purpose           string `json:"purpose,omitempty"`
	PurposeB64        []byte `json:"purpose_b64,omitempty"`
	TTL               int64  `json:"ttl,omitempty"`
	RenewEvery        int64  `json:"renew_every,omitempty"`
	Expect            int64  `json:"expect,omitempty"`
	MaxHold           int64  `json:"max_hold,omitempty"`
	EndsWithHeartbeat int64  `json:"ends_with_heartbeat,omitempty"`
}

// Encode returns m as the JSON object that is kept beside the lock. Empty texts
// and zero numbers are left out: absent means "not said".
func (m *Meta) Encode() string {
	w := members{
		Fence: m.Fence, Acquired: m.Acquired, Offered: m.Offered, Free: m.Free, Renewed: m.Renewed, Progress: m.Progress,
		ID: m.ID, Seq: m.Seq, Renewals: m.Renewals, RenewFailures: m.RenewFailures, Holds: m.Holds,
		Session: m.Session, V: int64(m.V), Instance: m.Instance, PID: int64(m.PID),
		TTL: m.TTL, RenewEvery: m.RenewEvery, Expect: m.Expect, MaxHold: m.MaxHold, EndsWithHeartbeat: m.EndsWithHeartbeat,
	}
	if m.Lost != nil {
		w.Lost = m.Lost.encode()
	}
	if slices.ContainsFunc(m.Holding, func(key string) bool { return !printable(key) }) {
		for _, key := range m.Holding {
			w.HoldingB64 = append(w.HoldingB64, []byte(key))
		}
	} else {
		w.Holding = m.Holding
	}
	for _, t := range []struct {
		from string
		text *string
		b64  *[]byte
	}{
		{m.Trace, &w.Trace, &w.TraceB64},
		{m.App, &w.App, &w.AppB64},
		{m.Host, &w.Host, &w.HostB64},
		{m.Class, &w.Class, &w.ClassB64},
		{m.Purpose, &w.Purpose, &w.PurposeB64},
	} {
		if printable(t.from) {
			*t.text = t.from
		} else {
			*t.b64 = []byte(t.from)
		}
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// Texts, whole numbers and bytes: nothing that Encode can refuse.
	_ = e.Encode(w)
	return strings.TrimSuffix(b.String(), "\n")
}

// printable says that a JSON string can have text without escapes of six bytes.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// Tail returns what a holder hands to the scripts: [Meta.Encode] from the member
// "id" on, without what the scripts write before it.
func (m *Meta) Tail() string {
	t := *m
	t.Fence, t.Acquired, t.Offered, t.Free, t.Renewed, t.Progress, t.Lost = 0, 0, 0, 0, 0, 0, nil
	return t.Encode()[1:]
}

// Decode reads metadata. It keeps what it can read even when it also returns an
// error, which wraps [ErrMalformed] and names every member that it could not: a
// reader may show the rest. Members that it does not know are ignored, and a
// later version is no error. It never returns nil.
func Decode(text string) (*Meta, error) {
	var w members
	var errs []error
	fail := func(name string, err error) {
		errs = append(errs, fmt.Errorf("%w: member %q: %w", ErrMalformed, name, err))
	}
	switch {
	case len(text) > MaxMeta:
		return &Meta{}, fmt.Errorf("%w: longer than %d bytes", ErrMalformed, MaxMeta)
	case json.Unmarshal([]byte(text), &w) != nil:
		var each map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &each); err != nil {
			return &Meta{}, fmt.Errorf("%w: want a JSON object, got %q", ErrMalformed, clip(text, 64))
		}
		w = members{}
		for name, value := range each {
			before := w
			one, err := json.Marshal(map[string]json.RawMessage{name: value})
			if err == nil {
				err = json.Unmarshal(one, &w)
			}
			if err != nil {
				w = before
				fail(name, fmt.Errorf("got %q", clip(string(value), 64)))
			}
		}
	}
	for _, n := range []struct {
		name  string
		value *int64
		limit int64
	}{
		{"fence", &w.Fence, math.MaxInt64},
		{"acquired", &w.Acquired, math.MaxInt64},
		{"offered", &w.Offered, math.MaxInt64},
		{"free", &w.Free, math.MaxInt64},
		{"renewed", &w.Renewed, math.MaxInt64},
		{"progress", &w.Progress, math.MaxInt64},
		{"seq", &w.Seq, math.MaxInt64},
		{"renewals", &w.Renewals, math.MaxInt64},
		{"renew_failures", &w.RenewFailures, math.MaxInt64},
		{"holds", &w.Holds, math.MaxInt64},
		{"v", &w.V, math.MaxInt32},
		{"pid", &w.PID, math.MaxInt32},
		{"ttl", &w.TTL, math.MaxInt64},
		{"renew_every", &w.RenewEvery, math.MaxInt64},
		{"expect", &w.Expect, math.MaxInt64},
		{"max_hold", &w.MaxHold, math.MaxInt64},
		{"ends_with_heartbeat", &w.EndsWithHeartbeat, 1},
	} {
		if *n.value < 0 || *n.value > n.limit {
			fail(n.name, fmt.Errorf("%d is not between 0 and %d", *n.value, n.limit))
			*n.value = 0
		}
	}
	either := func(name, text string, b64 []byte) string {
		if text == "" {
			text = string(b64)
		}
		if len(text) > MaxText {
			fail(name, fmt.Errorf("longer than %d bytes", MaxText))
		}
		return clip(text, MaxText)
	}
	m := &Meta{
		V: int(w.V), ID: either("id", w.ID, nil), Seq: w.Seq, Session: either("session", w.Session, nil),
		Instance: either("instance", w.Instance, nil), App: either("app", w.App, w.AppB64), Host: either("host", w.Host, w.HostB64),
		PID: int(w.PID), Class: either("class", w.Class, w.ClassB64), Purpose: either("purpose", w.Purpose, w.PurposeB64),
		Acquired: w.Acquired, TTL: w.TTL, RenewEvery: w.RenewEvery, Expect: w.Expect, MaxHold: w.MaxHold,
		EndsWithHeartbeat: w.EndsWithHeartbeat, Renewed: w.Renewed, Renewals: w.Renewals, RenewFailures: w.RenewFailures,
		Progress: w.Progress, Fence: w.Fence, Holds: w.Holds, Holding: w.Holding, Trace: either("trace", w.Trace, w.TraceB64),
		Offered: w.Offered, Free: w.Free,
	}
	for _, key := range w.HoldingB64 {
		m.Holding = append(m.Holding, string(key))
	}
	if len(m.Holding) > MaxHolding {
		fail("holding", fmt.Errorf("more than %d keys", MaxHolding))
		m.Holding = slices.Clone(m.Holding[:MaxHolding])
	}
	if m.Acquired == 0 && m.Fence >= timedFence {
		m.Acquired = m.Fence / 1000
	}
	if w.Lost != "" {
		lost, err := decodeLost(w.Lost)
		if m.Lost = lost; err != nil {
			fail("lost", err)
		}
	}
	if m.V == 0 {
		fail("v", errors.New("is missing"))
	}
	if m.ID == "" && m.Free == 0 {
		fail("id", errors.New("is missing"))
	}
	return m, errors.Join(errs...)
}
