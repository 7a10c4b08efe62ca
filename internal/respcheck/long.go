package respcheck

import (
	"crypto/rand"
	"strconv"
	"strings"
)

// markPrefix begins what replaces a long string. It is another one in
// each process and leaves it nowhere: no server can send it.
var markPrefix = "long-string-" + rand.Text() + "-"

// Long says whether s replaces a string that was too long to be read,
// and how long that was.
func Long(s string) (size int64, long bool) {
	digits, ok := strings.CutPrefix(s, markPrefix)
	if !ok {
		return 0, false
	}
	size, err := strconv.ParseInt(digits, 10, 64)
	return size, err == nil
}

// mark is the beginning of a string of size bytes of kind '$' or '=', without the line
// end behind it.
func mark(kind byte, size int64) []byte {
	text := markPrefix + strconv.FormatInt(size, 10)
	if kind == '=' {
		text = "txt:" + text
	}
	return append(strconv.AppendInt([]byte{kind}, int64(len(text)), 10), "\r\n"+text...)
}
