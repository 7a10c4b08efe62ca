package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// FieldHolder is the one field that has what never changes during a hold and
// need not be compared by a script: fewer fields make an acquire cheaper.
const FieldHolder = "holder"

// maxHolder is the longest such field that is read, in bytes.
const maxHolder = 8 * MaxText

// holder is the JSON in [FieldHolder]; members are named like the fields of
// their own that they stand for.
type holder struct {
	V          int    `json:"v"`
	App        string `json:"app,omitempty"`
	Host       string `json:"host,omitempty"`
	PID        int    `json:"pid,omitempty"`
	Class      string `json:"class,omitempty"`
	Purpose    string `json:"purpose,omitempty"`
	TTL        int64  `json:"ttl,omitempty"`
	RenewEvery int64  `json:"renew_every,omitempty"`
	Expect     int64  `json:"expect,omitempty"`
	MaxHold    int64  `json:"max_hold,omitempty"`

	EndsWithHeartbeat int64 `json:"ends_with_heartbeat,omitempty"`
}

// PackHolder returns the value of [FieldHolder] for m: v, app, host, pid, class,
// purpose, ttl, renew_every, expect, max_hold and ends_with_heartbeat. It is false for texts that JSON
// cannot have, which are not UTF-8: those need fields of their own.
func PackHolder(m *Meta) (string, bool) {
	for _, text := range []string{m.App, m.Host, m.Class, m.Purpose} {
		if !utf8.ValidString(text) {
			return "", false
		}
	}
	b, err := json.Marshal(holder{
		V: m.V, App: m.App, Host: m.Host, PID: m.PID, Class: m.Class, Purpose: m.Purpose,
		TTL: m.TTL, RenewEvery: m.RenewEvery, Expect: m.Expect, MaxHold: m.MaxHold,
		EndsWithHeartbeat: m.EndsWithHeartbeat,
	})
	return string(b), err == nil
}

// unpackHolder fills what m has no field of its own for.
func unpackHolder(m *Meta, text string) error {
	if len(text) > maxHolder {
		return fmt.Errorf("longer than %d bytes", maxHolder)
	}
	var h holder
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return errors.New("want a JSON object of texts and whole numbers")
	}
	for _, n := range []int64{int64(h.V), int64(h.PID), h.TTL, h.RenewEvery, h.Expect, h.MaxHold, h.EndsWithHeartbeat} {
		if n < 0 {
			return errors.New("a number is negative")
		}
	}
	if h.EndsWithHeartbeat > 1 {
		return errors.New("ends_with_heartbeat is neither 0 nor 1")
	}
	if h.V > math.MaxInt32 || h.PID > math.MaxInt32 {
		return fmt.Errorf("a number is above %d", math.MaxInt32)
	}
	fill(&m.V, h.V)
	fill(&m.App, clip(h.App, MaxText))
	fill(&m.Host, clip(h.Host, MaxText))
	fill(&m.PID, h.PID)
	fill(&m.Class, clip(h.Class, MaxText))
	fill(&m.Purpose, clip(h.Purpose, MaxText))
	fill(&m.TTL, h.TTL)
	fill(&m.RenewEvery, h.RenewEvery)
	fill(&m.Expect, h.Expect)
	fill(&m.MaxHold, h.MaxHold)
	fill(&m.EndsWithHeartbeat, h.EndsWithHeartbeat)
	return nil
}

// fill sets what says nothing yet.
func fill[T comparable](to *T, value T) {
	var none T
	if *to == none {
		*to = value
	}
}
