package respcheck_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/internal/respcheck"
)

// endless is a connection that says the same again and again.
type endless struct {
	net.Conn
	page []byte
	at   int
}

func (c *endless) Read(p []byte) (int, error) {
	n := copy(p, c.page[c.at:])
	c.at = (c.at + n) % len(c.page)
	return n, nil
}

// BenchmarkPage reads pages of SCAN: 1,000 names of 24 bytes each, as go-redis does, 32
// KiB at once. What the check costs is the difference.
func BenchmarkPage(b *testing.B) {
	var page strings.Builder
	page.WriteString("*2\r\n" + bulk("123456789") + "*1000\r\n")
	for i := range 1000 {
		page.WriteString(bulk(fmt.Sprintf("lock:orders:%012d", i)))
	}
	read := func(b *testing.B, cn net.Conn) {
		r := bufio.NewReaderSize(cn, 32<<10)
		b.SetBytes(int64(page.Len()))
		for b.Loop() {
			if _, err := io.CopyN(io.Discard, r, int64(page.Len())); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("plain", func(b *testing.B) { read(b, &endless{page: []byte(page.String())}) })
	b.Run("checked", func(b *testing.B) {
		read(b, respcheck.New(&endless{page: []byte(page.String())}, "redis-1:6379", respcheck.MaxBytes))
	})
}
