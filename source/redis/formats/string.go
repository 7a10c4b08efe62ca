package formats

import (
	"time"

	"github.com/locksteward/locksteward"
)

// stringLock decodes locks that are one string.
type stringLock struct {
	kind       string // Decoded.TokenKind
	value      func(text string) bool
	origin     origin
	confidence locksteward.Confidence
	holder     func(text string) locksteward.Holder // nil: none in the value
	acquired   func(text string) time.Time          // nil: not in the value
}

// decode is the [Format]'s decode.
func (l stringLock) decode(s Sample) (Decoded, bool) {
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

// deleteString releases a lock that is one string whose waiters poll.
func deleteString(s Sample, p plan) (Command, error) { return p.command(tokenLua, nil, s.Value), nil }
