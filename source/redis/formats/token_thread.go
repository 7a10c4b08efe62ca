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
