package formats

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// threadShape recognises what code copied from many articles writes: the UUID of
// its process and the id of its thread, which come again with every acquisition.
func threadShape(_, text string) (tokenShape, bool) {
	if len(text) <= uuidLength || !isUUID(text[:uuidLength]) {
		return tokenShape{}, false
	}
	thread := strings.TrimLeft(text[uuidLength:], "-:_#")
	if len(thread) > 19 || !isDigits(thread) {
		return tokenShape{}, false
	}
	return tokenShape{
		kind: "a UUID and a number, as of one process and thread", origin: originProcess, confidence: locksteward.ConfidenceMedium,
	}, true
}

func prefixed(prefix string) func(string) bool {
	return func(s string) bool { return len(s) > len(prefix) && strings.HasPrefix(s, prefix) }
}

func hasPrefixed(s, prefix string, ok func(string) bool) bool {
	rest, found := strings.CutPrefix(s, prefix)
	return found && ok(rest)
}

func isHex32(s string) bool { return len(s) == 32 && isLowerHex(s) }
