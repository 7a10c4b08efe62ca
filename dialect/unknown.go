package dialect

import (
	"fmt"
	"strings"

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
	if knownHash(s) != "" {
		d.Confidence = locksteward.ConfidenceMedium
	}
	return d
}

func whyUnknown(s Sample) string {
	if library := knownHash(s); library != "" {
		return "this version does not know how to release " + library
	}
	switch {
	case s.TooLarge && (s.Type == typeString || s.Type == typeHash):
		return fmt.Sprintf("the %s of size %d was too large to read in full, so it cannot be compared", s.Type, s.Size)
	case s.Type == typeString:
		return "the string was not read in full, so it cannot be compared"
	case s.Type == "" || s.Type == "none":
		return "there is no such key"
	default:
		return fmt.Sprintf("no dialect knows a %s of this form, so nobody can say what must be compared and who must be woken", s.Type)
	}
}

// knownHash names the lock that a hash is when its layout is one of a known
// library which is listed but not released: read/write locks, whose readers one
// DEL would throw out together, and locks with more keys than one.
func knownHash(s Sample) string {
	if s.Type != typeHash || s.TooLarge || len(s.Fields) == 0 {
		return ""
	}
	mode, hasMode := s.Fields["mode"]
	switch {
	case hasMode && (mode == "read" || mode == "write") && len(s.Fields) > 1:
		if everyField(s, func(field, value string) bool {
			client, isWriter := strings.CutSuffix(field, ":write")
			_, _, ok := redissonField(client)
			_, counted := redissonCount(value)
			return field == "mode" || ok && counted && (mode == "write" || !isWriter)
		}) {
			return "a Redisson read/write lock"
		}
		if everyField(s, func(field, _ string) bool {
			return field == "mode" || field == "writer" || field == "wcount" || field == "rcount" || strings.HasPrefix(field, "r:")
		}) {
			return "a go-redislock read/write lock"
		}
	case strings.HasPrefix(s.Key, "uniquejobs:") && strings.HasSuffix(s.Key, ":LOCKED"):
		if everyField(s, func(field, _ string) bool { return len(field) == 24 && isHex(field) }) {
			return "a sidekiq-unique-jobs lock"
		}
	}
	return ""
}

func everyField(s Sample, ok func(field, value string) bool) bool {
	for field, value := range s.Fields {
		if !ok(field, value) {
			return false
		}
	}
	return true
}

var _ Dialect = unknownDialect{}
