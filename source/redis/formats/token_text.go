package formats

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// unwrap takes a value out of the serialisation that a client library put
// around it; what has none comes back as it is. Only what is read is unwrapped:
// comparisons are always on the stored bytes.
func unwrap(value string) string {
	// Java: stream magic, TC_STRING, two bytes of length (Spring's default).
	if rest, ok := strings.CutPrefix(value, "\xac\xed\x00\x05t"); ok && len(rest) >= 2 {
		if n := int(rest[0])<<8 | int(rest[1]); len(rest) == n+2 {
			return rest[2:]
		}
	}
	// PHP: s:<bytes>:"…"; and i:…; and b:…;
	if rest, ok := strings.CutPrefix(value, "s:"); ok {
		length, rest, _ := strings.Cut(rest, ":")
		if n, err := strconv.Atoi(length); err == nil && n >= 0 && len(rest) == n+3 && rest[0] == '"' && strings.HasSuffix(rest, `";`) {
			return rest[1 : n+1]
		}
	}
	if len(value) > 3 && (value[0] == 'i' || value[0] == 'b') && value[1] == ':' && value[len(value)-1] == ';' && isDigits(value[2:len(value)-1]) {
		return value[2 : len(value)-1]
	}
	// JSON: a string without escapes.
	if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' && !strings.ContainsAny(value[1:n-1], "\"\\") {
		return value[1 : n-1]
	}
	return value
}

func every(s string, ok func(c byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return s != ""
}

func isDigit(c byte) bool     { return '0' <= c && c <= '9' }
func isLower(c byte) bool     { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool     { return 'A' <= c && c <= 'Z' }
func isLetter(c byte) bool    { return isLower(c) || isUpper(c) }
func isAlnum(c byte) bool     { return isLetter(c) || isDigit(c) }
func isLowerHexC(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' }
func isUpperHexC(c byte) bool { return isDigit(c) || 'A' <= c && c <= 'F' }

func isDigits(s string) bool   { return every(s, isDigit) }
func isLowerHex(s string) bool { return every(s, isLowerHexC) }
func isHex32(s string) bool    { return len(s) == 32 && isLowerHex(s) }
func isHex(s string) bool      { return isLowerHex(s) || every(s, isUpperHexC) }

// uuidLength is the length of a UUID's text form, 8-4-4-4-12.
const uuidLength = 36

func isLowerUUID(s string) bool { return isUUID(s) && strings.ToLower(s) == s }

// isUUID accepts any version and variant, in either case.
func isUUID(s string) bool {
	if len(s) != uuidLength {
		return false
	}
	for i := range len(s) {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if !isLowerHexC(s[i]) && !isUpperHexC(s[i]) {
				return false
			}
		}
	}
	return true
}

// isPrintableText says that s can be shown: UTF-8 without control characters.
func isPrintableText(s string) bool {
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// variety is how mixed the bytes of a text are.
type variety struct {
	distinct int
	// changes counts where lower case meets upper case, a run of capitals ends
	// in lower case, or a letter meets a digit. The capital of a camelCase word
	// counts once, so that names have few and random text has many.
	changes      int
	lower, upper bool
	letter       bool
	digit        bool
}

func varietyOf(s string) variety {
	var (
		v    variety
		seen [256]bool
	)
	for i := range len(s) {
		c := s[i]
		if !seen[c] {
			seen[c] = true
			v.distinct++
		}
		v.lower = v.lower || isLower(c)
		v.upper = v.upper || isUpper(c)
		v.digit = v.digit || isDigit(c)
		if i == 0 {
			continue
		}
		before := s[i-1]
		switch {
		case isLower(before) && isUpper(c),
			isLetter(before) && isDigit(c), isDigit(before) && isLetter(c),
			i > 1 && isUpper(s[i-2]) && isUpper(before) && isLower(c):
			v.changes++
		}
	}
	v.letter = v.lower || v.upper
	return v
}
