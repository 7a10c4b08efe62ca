package formats

import (
	"fmt"

	"github.com/locksteward/locksteward"
)

// Unknown is the name of the format of what no other format knows.
const Unknown = "unknown"

// unknownFormat accepts every sample and releases nothing.
var unknownFormat = Format{
	Name: Unknown,
	decode: func(Sample) (Decoded, bool) {
		return Decoded{
			Confidence: locksteward.ConfidenceLow,
			Identity:   locksteward.IdentityNone,
			Count:      1,
			Waiters:    -1,
		}, true
	},
	Never: "nobody can say what must be compared and who must be woken",
}

// refuseUnknown returns why this sample cannot be released and how a person can
// do it.
func refuseUnknown(s Sample) error {
	return fmt.Errorf("release %q: %s: %w; read it with redis-cli, stop its holder, and follow docs/libraries/unknown.md",
		locksteward.DisplayKey(s.Key), whyUnknown(s), locksteward.ErrRefused)
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
		return fmt.Sprintf("no known library writes a %s of this form, so nobody can say what must be compared and who must be woken", s.Type)
	}
}
