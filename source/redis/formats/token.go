package formats

import (
	_ "embed" // for the script

	"github.com/locksteward/locksteward"
)

// Token is the name of the format of locks that are one string of no known library.
const Token = "token"

//go:embed token.lua
var tokenLua string

// tokenFormat is any string that is no known library's: `SET k v NX PX`, SETNX,
// and the libraries whose value is whatever the caller passes.
var tokenFormat = Format{
	Name:         Token,
	Type:         typeString,
	decode:       decodeToken,
	release:      deleteString,
	reads:        workCounterReads,
	auxiliaryKey: queueAuxiliaryKey,
}

// decodeToken accepts every string that was read in full and judges its value:
// that decides whether the next hold can be distinguished from this one.
func decodeToken(s Sample) (Decoded, bool) {
	if !whole(s) {
		return Decoded{}, false
	}
	shape := shapeOf(s.Key, s.Value)
	d := Decoded{
		Confidence:  shape.confidence,
		Identity:    locksteward.IdentityStrong,
		Holder:      shape.holder,
		Count:       1,
		Waiters:     -1, // they poll
		SharedToken: shape.origin == originShared,
		TokenKind:   shape.kind,
	}
	if shape.origin != originAcquisition {
		d.Identity = lineage(s)
	}
	return d, true
}

// origin is where a token comes from, which is how often it changes.
type origin int

const (
	// originUnclear may be anything: the same value may come again.
	originUnclear origin = iota
	// originAcquisition is random and fresh for each acquisition.
	originAcquisition
	// originProcess is kept by a lock object, thread or process and comes again.
	originProcess
	// originTime is a point in time and names nobody.
	originTime
	// originShared is a constant or a name that others know or can guess.
	originShared
)

// tokenShape is what a token looks like. kind is for people and does not reveal
// the token.
type tokenShape struct {
	kind       string
	origin     origin
	confidence locksteward.Confidence
	holder     locksteward.Holder
}

// shapeOf judges a token by its value alone. Doubt ends in originUnclear, never in a fresh token.
func shapeOf(key string, value []byte) tokenShape {
	text := unwrap(string(value))
	for _, judge := range []func(key, text string) (tokenShape, bool){threadShape, timeShape, freshShape, sharedShape} {
		if shape, ok := judge(key, text); ok {
			return shape
		}
	}
	kind := "a text of no known form"
	if !isPrintableText(text) {
		kind = "bytes of no known form"
	}
	return tokenShape{kind: kind, origin: originUnclear, confidence: locksteward.ConfidenceLow}
}
