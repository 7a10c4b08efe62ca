package api

import (
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// Key is a Redis key in JSON. KeyB64 is set only when the key is not valid
// UTF-8; Key is then escaped for people.
type Key struct {
	Key    string `json:"key"`
	KeyB64 string `json:"key_b64,omitempty"`
}

// NewKey encodes the exact bytes of a key.
func NewKey(key string) Key {
	text, b64 := locksteward.EncodeKey(key)
	return Key{Key: text, KeyB64: b64}
}

// Bytes returns the exact bytes of the key. Both forms may be given only if they
// are of one key, as an answer has them: which of two locks is meant must not be
// guessed. The error wraps locksteward.ErrInvalid.
func (k Key) Bytes() (string, error) {
	raw, err := locksteward.DecodeKey(k.Key, k.KeyB64)
	if err != nil {
		return "", fmt.Errorf("key_b64 %q: %w: must be standard base64: %w", k.KeyB64, locksteward.ErrInvalid, err)
	}
	if text, _ := locksteward.EncodeKey(raw); k.KeyB64 != "" && k.Key != "" && k.Key != text {
		return "", fmt.Errorf("key: %w: key %q and key_b64 name two keys: give one of them", locksteward.ErrInvalid, k.Key)
	}
	return raw, nil
}

// Time is a time as the contract writes it: UTC, in milliseconds.
func Time(t time.Time) time.Time { return stamp(t) }

// stamp is a time as the contract writes it; the zero time stays zero, so that
// omitzero drops it.
func stamp(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

// list returns a copy that is never null in JSON.
func list(in []string) []string { return append([]string{}, in...) }

// known returns nil for a negative figure, which means "unknown".
func known[T int | int64 | float64](v T) *T {
	if v < 0 {
		return nil
	}
	return &v
}
