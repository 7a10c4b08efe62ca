package formats

import (
	"encoding/base64"
	"strings"

	"github.com/locksteward/locksteward"
)

// minFresh is the shortest text that may count as fresh: 16 hex characters are
// 64 bits.
const minFresh = 16

// freshShape recognises tokens that look random enough to be fresh in each
// acquisition. It judges form and mixture, so that names, however long, and
// constants are not taken for random: what it misses is compared by its expiry
// as well, what it takes wrongly might be released wrongly.
func freshShape(_, text string) (tokenShape, bool) {
	kind := freshKind(text)
	if kind == "" {
		return tokenShape{}, false
	}
	shape := tokenShape{kind: kind, origin: originAcquisition, confidence: locksteward.ConfidenceMedium}
	if kind == kindTimedUUID {
		shape.origin = originProcess // ioredis-lock draws one for each lock object
	}
	return shape, true
}

// Kinds of fresh tokens that libraries write under names of any form. Code that draws
// its own writes them too, so that the shape alone names none of the libraries.
const (
	kindUUID      = "a UUID, as aioredlock, ioredis-lock, node-redis-lock, redlock-rb, sherlock, spring-integration and others write it"
	kindTimedUUID = "a UUID with a time, as ioredis-lock and others write it"
	kindHex32     = "32 random hex digits, as node-redlock and others write them"
	kindHex40     = "40 random hex digits, as redlock4j and others write them"
	kindBase64URL = "22 characters of random base64, as bsm-redislock, redlock-py and others write them"
	kindBase64    = "24 characters of random base64, as redsync and others write them"
	kindAlnum22   = "22 random letters and digits, as redlock-py and others write them"
)

func freshKind(text string) string {
	switch {
	case isFreshUUID(text) && text[14] == '1':
		return kindTimedUUID
	case isFreshUUID(text):
		return kindUUID
	case len(text) < minFresh || len(text) > maxFresh:
		return ""
	case isBase64Text(text):
		return ""
	case isRandomHex(text):
		switch {
		case len(text) == 32 && isLowerHex(text):
			return kindHex32
		case len(text) == 40 && isLowerHex(text):
			return kindHex40
		}
		return "random hex digits"
	case isRandomBase32(text):
		return "random base32"
	case isRandomBase64(text):
		switch {
		case len(text) == bsmTokenLength && !strings.ContainsAny(text, "+/"):
			return kindBase64URL
		case len(text) == 24 && strings.HasSuffix(text, "=="):
			return kindBase64
		}
		return "random base64"
	case isRandomAlnum(text):
		if len(text) == 22 && every(text, isAlnum) {
			return kindAlnum22
		}
		return "random letters and digits"
	default:
		return ""
	}
}

// maxFresh bounds what is looked at: longer texts are documents, not tokens.
const maxFresh = 256

// isFreshUUID refuses the zero UUID and versions 3 and 5, which are hashes of a
// name and the same each time.
func isFreshUUID(text string) bool {
	if !isUUID(text) || text[14] == '3' || text[14] == '5' {
		return false
	}
	return varietyOf(text).distinct >= 5 // with the dash; zeros and test patterns have fewer
}

// isRandomUUID matches a version 4 UUID as Python, Ruby and others print it: in
// lower case. The zero UUID and test patterns are none.
func isRandomUUID(text string) bool {
	return isLowerUUID(text) && text[14] == '4' && strings.IndexByte("89ab", text[19]) >= 0 && isFreshUUID(text)
}

func isRandomHex(text string) bool {
	if !isHex(text) {
		return false
	}
	v := varietyOf(text)
	return v.distinct >= 6 && v.letter && v.digit && v.changes >= len(text)/6
}

// isRandomBase32 knows Go's rand.Text (A-Z2-7) and ULIDs, 26 characters each.
func isRandomBase32(text string) bool {
	if len(text) != 26 || !every(text, func(c byte) bool { return isUpper(c) || isDigit(c) }) {
		return false
	}
	v := varietyOf(text)
	return v.distinct >= 9 && v.letter && v.digit && v.changes >= 3
}

// isRandomBase64 wants the canonical text of at least 16 bytes that are mixed
// themselves. Padding, + or /, which words do not have, and the four zero bits
// at the end of the text of 16 bytes, make less of a mixture enough.
func isRandomBase64(text string) bool {
	raw := decodeBase64(text)
	if len(raw) < 16 || isPrintableText(string(raw)) || varietyOf(string(raw)).distinct < min(len(raw)*5/8, 20) {
		return false
	}
	v := varietyOf(text)
	need := len(text) / 3
	switch {
	case strings.ContainsAny(text, "=+/"):
		need = len(text) / 5
	case len(raw) == 16:
		need = len(text) / 4
	}
	return v.upper && v.lower && v.distinct >= min(len(text)/2, 20) && v.changes >= need
}

// isBase64Text says that text is the encoding of a text: a name in disguise.
func isBase64Text(text string) bool {
	raw := decodeBase64(text)
	return len(raw) >= 8 && isPrintableText(string(raw))
}

// decodeBase64 returns nil for what is no canonical base64 of any alphabet.
func decodeBase64(text string) []byte {
	if !every(text, func(c byte) bool { return isAlnum(c) || strings.IndexByte("+/-_=", c) >= 0 }) {
		return nil
	}
	for _, e := range [...]*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if raw, err := e.Strict().DecodeString(text); err == nil {
			return raw
		}
	}
	return nil
}

// isRandomAlnum wants letters and digits in a mixture that words do not have.
func isRandomAlnum(text string) bool {
	if !every(text, func(c byte) bool { return isAlnum(c) || c == '-' || c == '_' }) {
		return false
	}
	v := varietyOf(text)
	if v.upper && v.lower {
		return v.distinct >= min(len(text)*11/20+1, 20) && v.changes >= len(text)/3
	}
	// One case alone has to be longer, and without separators: pods and hosts
	// are such names.
	return len(text) >= 20 && v.letter && v.digit && v.distinct >= 10 && v.changes >= len(text)/4 &&
		!strings.ContainsAny(text, "-_")
}
