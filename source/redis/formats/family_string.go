package formats

import (
	"time"

	"github.com/locksteward/locksteward"
)

// stringLock is what is known of a family whose lock is one string.
type stringLock struct {
	kind       string // Decoded.TokenKind
	value      func(text string) bool
	origin     origin
	confidence locksteward.Confidence
	renewEvery time.Duration
	holder     func(text string) locksteward.Holder // nil: none in the value
	acquired   func(text string) time.Time          // nil: not in the value
	refuse     string                               // why deleting this one string would be wrong; "" if it would not
	noStand    string                               // family.noStand
}

// stringFamily makes a family of string locks, which is released by comparing
// and deleting the string; what has to happen besides is the caller's to add
// (family.release, with command of token.lua as its model). key may be nil.
func stringFamily(name string, key func(string) bool, l stringLock) *family {
	f := &family{name: name, typ: typeString, key: key, refuse: l.refuse, noStand: l.noStand}
	if l.origin == originTime {
		f.noStand = noStandTime
	}
	f.recognise = func(s Sample) (Decoded, bool) {
		if !whole(s) {
			return Decoded{}, false
		}
		text := s.plain()
		if !l.value(text) {
			return Decoded{}, false
		}
		d := Decoded{
			Confidence:  l.confidence,
			Identity:    locksteward.IdentityStrong,
			Count:       1,
			Waiters:     -1, // they poll
			SharedToken: l.origin == originShared,
			TokenKind:   l.kind,
			RenewEvery:  l.renewEvery,
		}
		if l.origin != originAcquisition {
			d.Identity = lineage(s)
		}
		if l.holder != nil {
			d.Holder = l.holder(text)
		}
		if l.acquired != nil {
			d.Acquired = l.acquired(text)
		}
		return d, true
	}
	if l.refuse == "" {
		f.release = func(s Sample, p plan) (Command, error) { return p.command(tokenLua, nil, s.Value), nil }
	}
	return f
}
