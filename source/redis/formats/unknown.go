package formats

import (
	"fmt"

	"github.com/locksteward/locksteward"
)

// Unknown is the name of the dialect of what no other dialect knows.
const Unknown = "unknown"

// unknownDialect takes everything and releases nothing.
type unknownDialect struct{}

// Name returns "unknown".
func (unknownDialect) Name() string { return Unknown }

// Recognise takes every sample.
func (unknownDialect) Recognise(s Sample) (Decoded, bool) { return unknownOf(s), true }

// Release always refuses, and says why and how a person can do it.
func (unknownDialect) Release(s Sample, _ Release) (Command, error) {
	return Command{}, fmt.Errorf("release %q: %s: %w; read it with redis-cli, stop its holder, and follow docs/dialects/unknown.md",
		locksteward.DisplayKey(s.Key), whyUnknown(s), locksteward.ErrRefused)
}

func unknownOf(s Sample) Decoded {
	d := Decoded{
		Dialect:    Unknown,
		Confidence: locksteward.ConfidenceLow,
		Identity:   locksteward.IdentityNone,
		Count:      1,
		Waiters:    -1,
	}
	return d
}

func whyUnknown(s Sample) string {
	switch {
	case s.TooLarge && s.Type != typeStream:
		return fmt.Sprintf("the %s of size %d was too large to read in full, so it cannot be compared", s.Type, s.Size)
	case s.Type == typeString:
		return "the string was not read in full, so it cannot be compared"
	case s.Type == "" || s.Type == "none":
		return "there is no such key"
	default:
		return fmt.Sprintf("no dialect knows a %s of this form, so nobody can say what must be compared and who must be woken", s.Type)
	}
}

var _ Dialect = unknownDialect{}
