package testredis

import (
	"bytes"
	"strconv"
)

// replyCounter finds where replies end in a stream of RESP2 or RESP3. It keeps
// no data but the line it is in. A stream that is not RESP (TLS) counts none.
type replyCounter struct {
	line   []byte // of the header being read
	skip   int    // bytes of a bulk string still to come
	open   []int  // values still to come in each open aggregate
	push   bool   // the value under way is a push: no reply
	opaque bool
}

// feed takes the next bytes and returns the offsets behind each reply that
// ends in them.
func (c *replyCounter) feed(data []byte) []int {
	var ends []int
	for i := 0; i < len(data) && !c.opaque; {
		var complete bool
		if c.skip > 0 {
			n := min(c.skip, len(data)-i)
			c.skip -= n
			i += n
			complete = c.skip == 0
		} else {
			end := bytes.IndexByte(data[i:], '\n')
			if end < 0 {
				c.line = append(c.line, data[i:]...)
				break
			}
			c.line = append(c.line, data[i:i+end+1]...)
			i += end + 1
			complete = c.header(bytes.TrimRight(c.line, "\r\n"))
			c.line = c.line[:0]
		}
		if complete && c.closeValue() {
			if !c.push {
				ends = append(ends, i)
			}
			c.push = false
		}
	}
	return ends
}

// header takes a line that begins a value and reports whether the value is
// complete with it.
func (c *replyCounter) header(line []byte) bool {
	if len(line) == 0 {
		c.opaque = true
		return false
	}
	switch line[0] {
	case '+', '-', ':', '_', '#', ',', '(':
		return true
	case '$', '=', '!':
		n := c.size(line)
		if n < 0 {
			return true
		}
		c.skip = n + 2
		return false
	case '>':
		if len(c.open) == 0 {
			c.push = true
		}
		return c.begin(c.size(line))
	case '*', '~':
		return c.begin(c.size(line))
	case '%':
		return c.begin(2 * c.size(line))
	case '|':
		// Attributes come before the value they belong to.
		return c.begin(2*c.size(line) + 1)
	default:
		c.opaque = true
		return false
	}
}

func (c *replyCounter) size(line []byte) int {
	n, err := strconv.Atoi(string(line[1:]))
	if err != nil {
		c.opaque = true
	}
	return n
}

// begin opens an aggregate of n values and reports whether that is all of it.
func (c *replyCounter) begin(n int) bool {
	if n <= 0 {
		return true
	}
	c.open = append(c.open, n)
	return false
}

// closeValue counts a complete value against the aggregates around it and
// reports whether the outermost value is complete.
func (c *replyCounter) closeValue() bool {
	for len(c.open) > 0 {
		last := len(c.open) - 1
		c.open[last]--
		if c.open[last] > 0 {
			return false
		}
		c.open = c.open[:last]
	}
	return true
}
