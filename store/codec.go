package store

import (
	"strings"
	"time"
)

// micros returns a time as it is stored: microseconds since 1970, 0 for the zero time.
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

// bytesOf returns the bytes of s, never nil: a nil slice would be NULL.
func bytesOf(s string) []byte {
	if s == "" {
		return []byte{}
	}
	return []byte(s)
}

// text returns s as both databases can store it: PostgreSQL accepts no NUL and no invalid
// UTF-8 in text.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// number returns a boolean as it is stored.
func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
