package respcheck

import (
	"bytes"
	"fmt"
	"math"
)

// MaxBytes is the most that a connection may let through of one reply or push.
const MaxBytes = 64 << 20

// Bounds of one reply or push.
const (
	maxDepth    = 8
	maxElements = 65536
	maxLine     = 64 << 10 // of what ends with its line
	maxString   = 1 << 20  // what is longer is read past
	// maxPast is how much is read past in one reply: the longest string that a server
	// takes from its clients, unless proto-max-bulk-len says otherwise.
	maxPast = 512 << 20
	// maxHead bounds a line that tells a length, of which 20 digits are more than any.
	maxHead = 32
)

// place is where in a stream the next byte is.
type place uint8

const (
	atHead place = iota // at the beginning of a value
	inLine              // in a line that is a value
	inBody              // in a string
	inPast              // in one that is read past
)

// check follows a stream of RESP. Without anything but most it is at the beginning of a
// reply.
type check struct {
	most int64 // bytes of a reply that pass
	// noNulls says that a null at the end of an array passes as an empty array.
	noNulls bool
	in      place
	cr      bool  // the last byte of the line was a CR
	line    int   // bytes of the line so far
	left    int64 // of the string
	depth   int
	open    [maxDepth]int64 // values still to come, of each aggregate that is open

	// Of the reply so far: elements that are announced, bytes that passed or were read
	// past.
	elements, passed, past int64
}

// feed takes the next bytes and leaves in b[:kept] what passes of them. The last held
// of them are to come again, in front of those that follow. mark, if any, passes
// behind b[:kept]; then nothing is held. After an error, which says what was wrong,
// nothing passes any more.
func (c *check) feed(b []byte) (kept, held int, mark []byte, wrong string) {
	r := 0
	for r < len(b) {
		switch c.in {
		case inBody:
			n := int(min(c.left, int64(len(b)-r)))
			if kept != r {
				copy(b[kept:], b[r:r+n])
			}
			kept, r = kept+n, r+n
			if c.left -= int64(n); c.left == 0 {
				c.end()
			}
		case inPast:
			n := min(c.left, int64(len(b)-r))
			r += int(n)
			if c.left -= n; c.left == 0 {
				c.in, c.left = inBody, 2 // its line end is that of the mark
			}
		case inLine:
			n, wrong := c.more(b[r:])
			if kept != r {
				copy(b[kept:], b[r:r+n])
			}
			kept, r = kept+n, r+n
			if wrong != "" {
				return kept, 0, nil, wrong
			}
		default:
			if n := c.short(b[r:]); n > 0 {
				if kept != r {
					copy(b[kept:], b[r:r+n])
				}
				kept, r = kept+n, r+n
				continue
			}
			switch b[r] {
			case '+', '-', ':', '_', '#', ',', '(':
				c.in, c.line, c.cr = inLine, 0, false
				continue
			}
			n, long, wrong := c.head(b[r:])
			switch {
			case n > 0 && string(long) == emptyArray:
				kept, r = kept+copy(b[kept:], long), r+n
				continue
			case wrong != "":
				return kept, 0, nil, wrong
			case n == 0:
				return kept, len(b) - r, nil, ""
			case long == nil:
				if kept != r {
					copy(b[kept:], b[r:r+n])
				}
				kept, r = kept+n, r+n
				continue
			}
			// What is read past makes room for the mark, unless it ends elsewhere.
			r += n
			if c.left >= int64(len(b)-r) {
				c.left -= int64(len(b) - r)
				if c.left == 0 {
					c.in, c.left = inBody, 2
				}
				return kept, 0, long, ""
			}
			kept += copy(b[kept:], long)
		}
	}
	return kept, 0, nil, ""
}

// short takes the strings of at most 99,999 bytes that b begins with, as most of what comes is, as far as each is all
// in b, and returns their length with headers and ends; the others are left to the long way.
func (c *check) short(b []byte) (n int) {
	for n < len(b) && b[n] == '$' {
		s := b[n:]
		size, i := 0, 1
		for ; i < len(s) && i < 6 && s[i]-'0' < 10; i++ {
			size = size*10 + int(s[i]-'0')
		}
		length := i + 2 + size + 2
		if i == 1 || length > len(s) || s[i] != '\r' || s[i+1] != '\n' || c.passed+int64(length) > c.most {
			break
		}
		n += length
		c.passed += int64(length)
		if c.depth > 0 && c.open[c.depth-1] > 1 {
			c.open[c.depth-1]--
			continue
		}
		c.end()
	}
	return n
}

// more takes bytes of a line, and returns how many of them pass.
func (c *check) more(b []byte) (n int, wrong string) {
	n, over := len(b), false
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		n, over = i+1, true
	}
	if room := maxLine - c.line; n > room {
		return room, fmt.Sprintf("a line of more than %d bytes", maxLine)
	}
	if room := c.most - c.passed; int64(n) > room {
		return int(room), c.tooMuch()
	}
	if over {
		cr := c.cr
		if n > 1 {
			cr = b[n-2] == '\r'
		}
		if !cr {
			return n - 1, "a line that does not end with CR and LF"
		}
	}
	c.line += n
	c.passed += int64(n)
	c.cr = b[n-1] == '\r'
	if over {
		c.end()
	}
	return n, ""
}

func (c *check) tooMuch() string { return fmt.Sprintf("a reply of more than %d bytes", c.most) }

// emptyArray is what passes in place of a null, which is longer.
const emptyArray = "*0\r\n"

// head takes a line that tells a length, and returns how long it is, 0 if its end is
// still to come. With long, a string begins there that is read past and in whose place
// long comes, or long is an empty array in place of a null.
func (c *check) head(b []byte) (n int, long []byte, wrong string) {
	kind := b[0]
	switch kind {
	case '$', '=', '!', '*', '~', '%', '>', '|':
	default:
		return 0, nil, fmt.Sprintf("what is no reply of Redis: one cannot begin with %q", kind)
	}
	size, n, wrong := length(b)
	if n == 0 || wrong != "" {
		return n, nil, wrong
	}
	if size < 0 { // a null of RESP2
		if kind != '$' && kind != '*' {
			return 0, nil, fmt.Sprintf("a negative length (%s)", shown(kind))
		}
		if c.noNulls && c.depth > 0 && c.open[c.depth-1] == 1 {
			long = []byte(emptyArray)
		}
		if c.passed += int64(n); c.passed > c.most {
			return 0, nil, c.tooMuch()
		}
		c.end()
		return n, long, ""
	}
	switch kind {
	case '$', '=', '!':
		long, wrong = c.beginString(kind, size, n)
	default:
		wrong = c.beginAggregate(kind, size, n)
	}
	return n, long, wrong
}

// length reads a header.
func length(b []byte) (size int64, n int, wrong string) {
	end := bytes.IndexByte(b[:min(len(b), maxHead)], '\n')
	if end < 0 {
		if len(b) >= maxHead {
			return 0, 0, fmt.Sprintf("a length that does not end (%s)", shown(b[0]))
		}
		return 0, 0, ""
	}
	digits := b[1:end]
	if len(digits) < 2 || digits[len(digits)-1] != '\r' {
		return 0, 0, fmt.Sprintf("a length that is no number (%s)", shown(b[0]))
	}
	digits = digits[:len(digits)-1]
	if len(digits) == 2 && digits[0] == '-' && digits[1] == '1' {
		return -1, end + 1, ""
	}
	if digits[0] == '-' {
		return 0, 0, fmt.Sprintf("a negative length (%s)", shown(b[0]))
	}
	for _, d := range digits {
		switch {
		case d < '0' || d > '9':
			return 0, 0, fmt.Sprintf("a length that is no number (%s)", shown(b[0]))
		case size > (math.MaxInt64-int64(d-'0'))/10:
			return 0, 0, fmt.Sprintf("a length of %s (%s)", digits, shown(b[0]))
		}
		size = size*10 + int64(d-'0')
	}
	return size, end + 1, ""
}

// beginString begins a string of size bytes whose header has n.
func (c *check) beginString(kind byte, size int64, n int) (long []byte, wrong string) {
	if size > maxString {
		if kind == '!' || size > maxPast-c.past {
			return nil, fmt.Sprintf("%s of %d bytes", shown(kind), size)
		}
		long = mark(kind, size)
		if c.passed += int64(len(long) + 2); c.passed > c.most {
			return nil, c.tooMuch()
		}
		c.past += size
		c.in, c.left = inPast, size
		return long, ""
	}
	if c.passed += int64(n) + size + 2; c.passed > c.most {
		return nil, c.tooMuch()
	}
	c.in, c.left = inBody, size+2
	return nil, ""
}

// beginAggregate begins an aggregate of size values, or pairs, whose header has n bytes.
func (c *check) beginAggregate(kind byte, size int64, n int) (wrong string) {
	values := size
	switch {
	case size > maxElements-c.elements:
		return tooMany(kind, size)
	case kind == '%':
		values = 2 * size
	case kind == '|':
		values = 2*size + 1 // and what it is said of
	}
	if c.elements += values; c.elements > maxElements {
		return tooMany(kind, size)
	}
	if c.passed += int64(n); c.passed > c.most {
		return c.tooMuch()
	}
	if c.depth == maxDepth {
		return fmt.Sprintf("a reply that is nested more than %d deep", maxDepth)
	}
	if values == 0 {
		c.end()
		return ""
	}
	c.open[c.depth] = values
	c.depth++
	return ""
}

func tooMany(kind byte, size int64) string {
	return fmt.Sprintf("%s of %d, where a reply has at most %d elements", shown(kind), size, maxElements)
}

// end is the end of a value, and of what ends with it.
func (c *check) end() {
	c.in = atHead
	for c.depth > 0 {
		c.open[c.depth-1]--
		if c.open[c.depth-1] > 0 {
			return
		}
		c.depth--
	}
	c.elements, c.passed, c.past = 0, 0, 0
}

// shown names a kind of value.
func shown(kind byte) string {
	switch kind {
	case '$', '=':
		return "a string"
	case '!':
		return "an error"
	case '*':
		return "an array"
	case '~':
		return "a set"
	case '%':
		return "a map"
	case '>':
		return "a push"
	default:
		return "an attribute"
	}
}
