package alert

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/locksteward/locksteward"
)

// plainLines are facts for a text without markup.
func plainLines(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.label + l.text + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// plainJSON encodes a message, less the escapes for HTML: they cost room.
func plainJSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	// Maps, lists, texts and numbers can be encoded.
	_ = enc.Encode(v)
	return locksteward.EscapeJSON(bytes.TrimRight(b.Bytes(), "\n"))
}

// pieces cuts a text into pieces that are no longer than limit, in UTF-16 units, at
// line breaks where there are some.
func pieces(text string, limit int) []string {
	var out []string
	for text != "" {
		n, size, lastBreak := 0, len(text), 0
		for i, r := range text {
			if n += utf16.RuneLen(r); n > limit {
				size = i
				break
			}
			if r == '\n' {
				lastBreak = i + 1
			}
		}
		if size < len(text) && lastBreak > 0 {
			size = lastBreak
		}
		out = append(out, text[:size])
		text = text[size:]
	}
	return out
}

// peopleCap is how many findings a notification to people lists.
const peopleCap = 10

// chatReceiver is what all chat services have in common.
type chatReceiver struct {
	*poster
	renderer
}

// newChatReceiver takes what the files that the configuration names hold, and reports all
// problems at once, more among them, each with its key.
func newChatReceiver(r Receiver, fs *files, more ...error) (*chatReceiver, error) {
	look, err := newRenderer(r)
	p, errs := openPoster(r.Endpoint, fs)
	if err := errors.Join(slices.Concat(more, errs, []error{err})...); err != nil {
		return nil, err
	}
	return &chatReceiver{p, look}, nil
}

// cutUTF16 is cut in UTF-16 units.
func cutUTF16(text string, limit int) string {
	n := 0
	for i, r := range text {
		if n += utf16.RuneLen(r); n > limit {
			return cut(text, max(1, len([]rune(text[:i]))))
		}
	}
	return text
}
