package fenced

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// MaxKey is the longest key of [Set], in bytes.
	MaxKey = 8 << 10
	// MaxResource is the longest name for [Guard], in bytes: the index of its
	// table takes about 2,700.
	MaxResource = 2 << 10
)

var (
	// ErrStale is "another has held the lock since": nothing was written, and
	// nothing will be with this fence. The error is a [*StaleError].
	ErrStale = errors.New("fence is stale")
	// ErrInvalid is bad input; nothing was sent.
	ErrInvalid = errors.New("invalid argument")
)

// StaleError is a write that the resource refused, since it has seen a greater
// fence. It is [ErrStale].
type StaleError struct {
	Key   string // key, resource or row
	Fence int64  // of the refused write
	Seen  int64  // greatest that the resource has seen
}

// Error names the resource and both fences.
func (e *StaleError) Error() string {
	return fmt.Sprintf("write %q: fence %d is stale, a later holder has written with %d", e.Key, e.Fence, e.Seen)
}

// Is answers to [ErrStale].
func (e *StaleError) Is(target error) bool { return target == ErrStale }

func checkName(what, name string, longest int) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: %s is empty", ErrInvalid, what)
	case len(name) > longest:
		return fmt.Errorf("%w: %s has %d bytes, at most %d", ErrInvalid, what, len(name), longest)
	default:
		return nil
	}
}

func checkFence(fence int64) error {
	if fence <= 0 {
		return fmt.Errorf("%w: fence is %d, must be above 0 (does the lock give fences?)", ErrInvalid, fence)
	}
	return nil
}

// checkText refuses what PostgreSQL cannot have in a text.
func checkText(what, text string) error {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return fmt.Errorf("%w: %s %q is not UTF-8 without NUL", ErrInvalid, what, text)
	}
	return nil
}
