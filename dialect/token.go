package dialect

import (
	_ "embed" // for the script
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// Token is the name of the dialect of locks that are one string.
const Token = "token"

//go:embed token.lua
var tokenLua string

// tokenDialect is any string: `SET k v NX PX`, SETNX, redsync, redis-py and the
// many other libraries whose lock is a value that the holder knows.
type tokenDialect struct{}

// Name returns "token".
func (tokenDialect) Name() string { return Token }

// Recognise takes every string that was read in full and says what its value
// looks like: that decides whether the next acquisition can be told from this.
func (tokenDialect) Recognise(s Sample) (Decoded, bool) {
	if !whole(s) {
		return Decoded{}, false
	}
	shape := shapeOf(s.Key, s.Value)
	d := Decoded{
		Dialect:     Token,
		Confidence:  shape.confidence,
		Identity:    locksteward.IdentityStrong,
		Holder:      shape.holder,
		Count:       1,
		Waiters:     -1, // they poll
		SharedToken: shape.origin == originShared,
		TokenKind:   shape.kind,
		RenewEvery:  shape.renewEvery,
	}
	if shape.origin != originAcquisition {
		d.Identity = lineage(s)
	}
	return d, true
}

// Release deletes the string if it has the same bytes and the same expiry.
func (tokenDialect) Release(s Sample, r Release) (Command, error) {
	p, err := planRelease(Token, s, r)
	if err != nil {
		return Command{}, err
	}
	if why := shapeOf(s.Key, s.Value).refuse; why != "" {
		return Command{}, fmt.Errorf("release %q: %s: %w; see docs/dialects/token.md for the way by hand",
			locksteward.DisplayKey(s.Key), why, locksteward.ErrRefused)
	}
	return p.command(tokenLua, nil, s.Value), nil
}

// origin says where a token comes from, which is how often it changes.
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

// tokenShape is what a token looks like. kind is for people and does not give
// the token away.
type tokenShape struct {
	kind       string
	origin     origin
	confidence locksteward.Confidence
	holder     locksteward.Holder
	renewEvery time.Duration
	// refuse is why deleting this one string would be wrong; usually empty.
	refuse string
}

// shapeOf judges a token: first as a known library's, by key and value, then
// by its value alone. Doubt ends in originUnclear, never in a fresh token.
func shapeOf(key string, value []byte) tokenShape {
	text := unwrap(string(value))
	for _, judge := range []func(key, text string) (tokenShape, bool){libraryShape, timeShape, freshShape, sharedShape} {
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

var _ Dialect = tokenDialect{}
