package locksteward

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// DigestKeySize is the length of a [DigestKey] in bytes.
const DigestKeySize = 32

// DigestKey is the installation's key for token digests. Lock tokens are bearer
// capabilities and often guessable ("1", a host name), so a plain hash of one
// would give it away; a keyed one does not. Replicas of an agent share the key,
// a one-off scan uses a key of the run.
type DigestKey [DigestKeySize]byte

// NewDigestKey returns a fresh random key.
func NewDigestKey() DigestKey {
	var k DigestKey
	// crypto/rand.Read never returns an error since Go 1.24: it ends the
	// program when the system has no randomness.
	_, _ = rand.Read(k[:])
	return k
}

// ParseDigestKey reads the hex form that [DigestKey.Reveal] writes.
func ParseDigestKey(text string) (DigestKey, error) {
	var k DigestKey
	raw, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(raw) != DigestKeySize {
		return k, fmt.Errorf("digest key: want %d hex characters", 2*DigestKeySize)
	}
	copy(k[:], raw)
	return k, nil
}

// Reveal returns the key in hex, for the store that keeps it.
func (k DigestKey) Reveal() string { return hex.EncodeToString(k[:]) }

// String masks the key.
func (k DigestKey) String() string { return SecretMask }

// GoString masks the key under %#v too.
func (k DigestKey) GoString() string { return SecretMask }

// Value returns the digest of a string lock's raw bytes, as
// "hmac-sha256:<64 hex>".
func (k DigestKey) Value(raw []byte) string {
	mac := hmac.New(sha256.New, k[:])
	mac.Write(raw)
	var sum [sha256.Size]byte
	text := append(make([]byte, 0, 80), "hmac-sha256:"...)
	return string(hex.AppendEncode(text, mac.Sum(sum[:0])))
}

// Fields returns the digest of a hash lock: over "len:field len:value" of each
// pair in the order of the fields' bytes, pairs separated by a space. Lengths
// are in bytes, which makes the encoding unambiguous.
func (k DigestKey) Fields(fields map[string]string) string {
	var b []byte
	for i, f := range slices.Sorted(maps.Keys(fields)) {
		if i > 0 {
			b = append(b, ' ')
		}
		b = appendSized(b, f)
		b = append(b, ' ')
		b = appendSized(b, fields[f])
	}
	return k.Value(b)
}

// Members returns the digest of a sorted set, list or set lock: over
// "len:name" of each member in the order given, separated by a space, each
// followed by " score" in Go's shortest form where there are scores (nil: there
// are none, else as many as names).
func (k DigestKey) Members(names []string, scores []float64) string {
	var b []byte
	for i, name := range names {
		if i > 0 {
			b = append(b, ' ')
		}
		b = appendSized(b, name)
		if scores != nil {
			b = append(b, ' ')
			b = strconv.AppendFloat(b, scores[i], 'g', -1, 64)
		}
	}
	return k.Value(b)
}

func appendSized(b []byte, s string) []byte {
	b = strconv.AppendInt(b, int64(len(s)), 10)
	b = append(b, ':')
	return append(b, s...)
}
