package store

import (
	"strings"
	"time"
)

// micros is a time as it is stored: microseconds since 1970, 0 for the zero
// time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// fromMicros is the inverse of micros; the result is in UTC.
func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// bytesOf returns s as bytes that are never nil: a nil slice would be NULL.
func bytesOf(s string) []byte {
	if s == "" {
		return []byte{}
	}
	return []byte(s)
}

// text returns s as both databases can keep it: PostgreSQL has no text with a NUL
// or with bytes that are not UTF-8.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// number is a truth value as it is stored.
func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
