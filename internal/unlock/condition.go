package unlock

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/locksteward/locksteward"
)

// saltSize is the length of a salt in bytes. A [locksteward.DigestKey] made of it
// is filled up with zeros, as HMAC fills up any short key (RFC 2104, section 2):
// its digests are those of the salt.
const saltSize = 16

// Condition says which hold may be released: a lock of this type, these bytes and
// this expiry. It stands for itself: what it was taken with is in it. Written as
// <type>.<salt>.<hmac(salt, bytes)>.<pexpiretime>.
type Condition struct {
	Type   string // of Redis
	Salt   [saltSize]byte
	Digest string // HMAC-SHA256 in hex, of what DigestKey takes of that type
	// ExpireAt is in ms since 1970 by the server's clock, locksteward.NoExpireAt for
	// a lock without expiry.
	ExpireAt int64
}

// NewSalt returns a fresh random salt.
func NewSalt() [saltSize]byte {
	var salt [saltSize]byte
	_, _ = rand.Read(salt[:]) // never returns an error
	return salt
}

// KeyOf is the digest key that a salt makes. Unlike that of an installation it is
// no secret.
func KeyOf(salt [saltSize]byte) locksteward.DigestKey {
	var key locksteward.DigestKey
	copy(key[:], salt[:])
	return key
}

const digestPrefix = "hmac-sha256:"

// ConditionOf is the condition that what was seen of a lock makes, with digests
// of KeyOf(salt); ok is false if too little was seen.
func ConditionOf(o locksteward.Observation, salt [saltSize]byte) (c Condition, ok bool) {
	digest, found := strings.CutPrefix(o.TokenDigest, digestPrefix)
	if !found || o.Type == "" || o.ExpireAt == 0 {
		return Condition{}, false
	}
	return Condition{Type: o.Type, Salt: salt, Digest: digest, ExpireAt: o.ExpireAt}, true
}

// String returns the written form.
func (c Condition) String() string {
	return strings.Join([]string{c.Type, hex.EncodeToString(c.Salt[:]), c.Digest, strconv.FormatInt(c.ExpireAt, 10)}, ".")
}

// ParseCondition reads the written form.
func ParseCondition(text string) (Condition, error) {
	bad := func(what string) (Condition, error) {
		return Condition{}, fmt.Errorf("condition %q: %s; copy it whole from what scan prints", text, what)
	}
	parts := strings.Split(text, ".")
	if len(parts) != 4 {
		return bad("want <type>.<salt>.<hmac>.<pexpiretime>")
	}
	c := Condition{Type: parts[0], Digest: parts[2]}
	switch c.Type {
	case "string", "hash", "zset", "list", "set":
	default:
		return bad("no lock has the type " + strconv.Quote(c.Type))
	}
	salt, err := hex.DecodeString(parts[1])
	if err != nil || len(salt) != saltSize {
		return bad(fmt.Sprintf("the salt is not %d hex digits", 2*saltSize))
	}
	copy(c.Salt[:], salt)
	if raw, err := hex.DecodeString(c.Digest); err != nil || len(raw) != 32 || strings.ToLower(c.Digest) != c.Digest {
		return bad("the hmac is not 64 hex digits in lower case")
	}
	c.ExpireAt, err = strconv.ParseInt(parts[3], 10, 64)
	if err != nil || c.ExpireAt <= 0 && c.ExpireAt != locksteward.NoExpireAt {
		return bad("the expiry is neither a time in ms nor -1 for none")
	}
	return c, nil
}
