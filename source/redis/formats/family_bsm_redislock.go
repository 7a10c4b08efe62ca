package formats

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// bsmTokenLength is base64url of 16 bytes without padding.
const bsmTokenLength = 22

// familyBSMRedislock is bsm/redislock, caddy-storage-redis too: base64url of 16
// random bytes, fresh for each acquisition, and behind it the metadata that the
// application gave. Others write such tokens too: without metadata it is named only
// where the key says redislock. Several keys of one ObtainMulti have the same value.
// Source: bsm/redislock redislock.go (randomToken, ObtainMulti).
var familyBSMRedislock = bsmNamed(bare(stringFamily("bsm-redislock", nil, stringLock{
	kind: "random base64, as bsm/redislock writes it",
	value: func(text string) bool {
		token, metadata, ok := bsmToken(text)
		return ok && isRandomBase64(token) && (metadata == "" || isBSMMetadata(metadata))
	},
	origin:     originAcquisition,
	confidence: locksteward.ConfidenceMedium,
	holder: func(text string) locksteward.Holder {
		_, metadata, _ := bsmToken(text)
		holder, _ := hostAndPID(metadata)
		return holder
	},
})))

// bsmNamed narrows the family to locks with metadata, or with its name in theirs.
func bsmNamed(f *family) *family {
	says, decode := named("redislock"), f.recognise
	f.recognise = func(s Sample) (Decoded, bool) {
		d, ok := decode(s)
		return d, ok && (s.Size > bsmTokenLength || says(s.Key))
	}
	return f
}

func bsmToken(text string) (token, metadata string, ok bool) {
	if len(text) < bsmTokenLength || strings.ContainsAny(text[:bsmTokenLength], "+/=") {
		return "", "", false
	}
	return text[:bsmTokenLength], text[bsmTokenLength:], true
}

// isBSMMetadata tells text that was put behind a token from the rest of a longer
// random text: it has characters that such a text has not.
func isBSMMetadata(text string) bool {
	if !isPrintableText(text) {
		return false
	}
	return !every(text, func(c byte) bool { return isAlnum(c) || strings.IndexByte("+/=-_", c) >= 0 })
}
