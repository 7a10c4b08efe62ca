package locksteward

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// DisplayKey returns a key's name for a person: as it is when it is valid
// UTF-8 that prints, else with Go's escapes (\n, \x00, \xff) so that one key is
// one line and cannot move the cursor or pose as another.
func DisplayKey(key string) string {
	for _, r := range key {
		if r == utf8.RuneError || !strconv.IsPrint(r) || r == '\\' {
			quoted := strconv.Quote(key)
			return unescapeQuotes(quoted[1 : len(quoted)-1])
		}
	}
	return key
}

// unescapeQuotes turns \" back into ": the quotes around the name were dropped,
// so that escaping them has no purpose.
func unescapeQuotes(s string) string {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if s[i+1] != '"' {
				out = append(out, s[i])
			}
			i++
		}
		out = append(out, s[i])
	}
	return string(out)
}

// EncodeKey returns a key for JSON: text is the key itself when it is valid
// UTF-8, and b64 is empty; otherwise text is escaped for a person and b64 has
// the exact bytes in standard base64.
func EncodeKey(key string) (text, b64 string) {
	if utf8.ValidString(key) {
		return key, ""
	}
	return DisplayKey(key), base64.StdEncoding.EncodeToString([]byte(key))
}

// DecodeKey is the inverse of [EncodeKey].
func DecodeKey(text, b64 string) (string, error) {
	if b64 == "" {
		return text, nil
	}
	raw, err := base64.StdEncoding.DecodeString(b64)
	if err != nil {
		return "", err
	}
	return string(raw), nil
}

// EscapeJSON writes the characters of a JSON text that do not print (C1 controls,
// marks that turn the direction of a line, invisible ones) as \u escapes, as the
// standard library does with C0 controls alone: a terminal or page that shows the text
// is not led astray, and who parses it reads the same values. It may return raw itself.
func EscapeJSON(raw []byte) []byte {
	hidden := func(r rune) bool { return r >= 0x7f && r != utf8.RuneError && !strconv.IsPrint(r) }
	at := bytes.IndexFunc(raw, hidden)
	if at < 0 {
		return raw
	}
	out := append(make([]byte, 0, len(raw)+64), raw[:at]...)
	for i := at; i < len(raw); {
		r, size := utf8.DecodeRune(raw[i:])
		if hidden(r) {
			for _, unit := range utf16.AppendRune(nil, r) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
		} else {
			out = append(out, raw[i:i+size]...)
		}
		i += size
	}
	return out
}
