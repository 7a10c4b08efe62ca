package respcheck_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/internal/respcheck"
)

// piecewise is a connection that gives data in pieces of the sizes that cuts says, then
// io.EOF.
type piecewise struct {
	net.Conn
	data   []byte
	cuts   []byte
	closed bool
}

func (c *piecewise) Read(p []byte) (int, error) {
	if c.closed {
		return 0, net.ErrClosed
	}
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := min(len(p), len(c.data))
	if len(c.cuts) > 0 {
		n = min(n, int(c.cuts[0])+1)
		c.cuts = c.cuts[1:]
	}
	copy(p, c.data[:n])
	c.data = c.data[n:]
	return n, nil
}

func (c *piecewise) Close() error {
	c.closed = true
	return nil
}

// through reads all of data behind the check, in reads of the given sizes, 32 KiB when
// these are used up.
func through(t testing.TB, data, cuts, reads []byte) (string, error) {
	t.Helper()
	raw := &piecewise{data: data, cuts: cuts}
	cn := respcheck.New(raw, "redis-1:6379", respcheck.MaxBytes)
	var out bytes.Buffer
	room := make([]byte, 32<<10)
	for {
		p := room
		if len(reads) > 0 {
			p, reads = room[:int(reads[0])+1], reads[1:]
		}
		n, err := cn.Read(p)
		out.Write(p[:n])
		if err == nil {
			continue
		}
		if _, again := cn.Read(p); err != io.EOF && !errors.Is(again, err) { //nolint:errorlint // as it came
			t.Errorf("a second read after %v says %v", err, again)
		}
		if bad, ok := errors.AsType[*respcheck.Error](err); ok != raw.closed {
			t.Errorf("connection closed is %t with error %v (%v)", raw.closed, err, bad)
		}
		if err == io.EOF { //nolint:errorlint // as it came
			err = nil
		}
		return out.String(), err
	}
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func TestLegalStreamsPassUnchanged(t *testing.T) {
	t.Parallel()
	stream := strings.Join([]string{
		"+OK\r\n", "-ERR no\r\n", ":12\r\n", ":-1\r\n", "$-1\r\n", "*-1\r\n", "$0\r\n\r\n", "*0\r\n", "%0\r\n",
		"_\r\n", "#t\r\n", ",1.5\r\n", ",-inf\r\n", "(123456789012345678901234567890\r\n", "!5\r\nERR x\r\n", "=7\r\ntxt:abc\r\n",
		"*3\r\n:1\r\n" + bulk("a\r\nb") + "*1\r\n+x\r\n", "%1\r\n+a\r\n:1\r\n", "~2\r\n:1\r\n:2\r\n",
		"|1\r\n+ttl\r\n:3600\r\n*1\r\n:1\r\n", ">2\r\n+invalidate\r\n*1\r\n" + bulk("k"),
		strings.Repeat("*1\r\n", 8) + ":1\r\n", "*65536\r\n" + strings.Repeat(":1\r\n", 65536),
		"+" + strings.Repeat("x", 64<<10-3) + "\r\n", bulk(strings.Repeat("y", 1<<20)),
		"*3\r\n*65533\r\n" + strings.Repeat("_\r\n", 65533) + "_\r\n_\r\n",
		bulk("the end"),
	}, "")
	for _, cuts := range [][]byte{nil, bytes.Repeat([]byte{0}, len(stream)), bytes.Repeat([]byte{6}, len(stream))} {
		got, err := through(t, []byte(stream), cuts, nil)
		if err != nil || got != stream {
			t.Errorf("a legal stream came as %d bytes of %d: %v", len(got), len(stream), err)
		}
	}
}

func TestWhatGoesBeyondIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sent, want string }{
		"length of a string":        {"$9223372036854775807\r\n", "a string of 9223372036854775807 bytes"},
		"longer than any number":    {"$92233720368547758070\r\n", "a length of 92233720368547758070 (a string)"},
		"string of 2 GB":            {"$2147483648\r\n", "a string of 2147483648 bytes"},
		"verbatim string":           {"=9223372036854775807\r\n", "a string of 9223372036854775807 bytes"},
		"error":                     {"!2000000\r\n", "an error of 2000000 bytes"},
		"length of an array":        {"*2\r\n$1\r\n0\r\n*9223372036854775807\r\n", "an array of 9223372036854775807, where a reply has at most 65536 elements"},
		"array that fits in memory": {"*2147483647\r\n", "an array of 2147483647, where a reply has at most 65536 elements"},
		"one element too many":      {"*65537\r\n", "an array of 65537, where a reply has at most 65536 elements"},
		"two arrays of half":        {"*2\r\n*65534\r\n" + strings.Repeat("_\r\n", 65534) + "*1\r\n", "an array of 1, where a reply has at most 65536 elements"},
		"map":                       {"%32769\r\n", "a map of 32769, where a reply has at most 65536 elements"},
		"set":                       {"~65537\r\n", "a set of 65537, where a reply has at most 65536 elements"},
		"push":                      {">65537\r\n", "a push of 65537, where a reply has at most 65536 elements"},
		"attribute":                 {"|40000\r\n", "an attribute of 40000, where a reply has at most 65536 elements"},
		"attributes without an end": {strings.Repeat("|0\r\n", 9), "a reply that is nested more than 8 deep"},
		"nested arrays":             {strings.Repeat("*1\r\n", 9), "a reply that is nested more than 8 deep"},
		"negative array":            {"*-2\r\n", "a negative length (an array)"},
		"negative string":           {"$-9223372036854775808\r\n", "a negative length (a string)"},
		"null of a push":            {">-1\r\n", "a negative length (a push)"},
		"length without an end":     {"*" + strings.Repeat("1", 100), "a length that does not end (an array)"},
		"no length":                 {"$\r\n", "a length that is no number (a string)"},
		"length with a sign":        {"$+5\r\nhello\r\n", "a length that is no number (a string)"},
		"streamed string":           {"$?\r\n", "a length that is no number (a string)"},
		"line without an end":       {"+" + strings.Repeat("x", 100_000), "a line of more than 65536 bytes"},
		"number without an end":     {"(" + strings.Repeat("1", 100_000), "a line of more than 65536 bytes"},
		"line without CR":           {"+OK\n", "a line that does not end with CR and LF"},
		"HTTP":                      {"HTTP/1.1 400 Bad Request\r\n", `what is no reply of Redis: one cannot begin with 'H'`},
		"TLS":                       {"\x15\x03\x01\x00\x02\x02\x16", `what is no reply of Redis: one cannot begin with '\x15'`},
		"100 strings of 1 MiB":      {"*100\r\n" + strings.Repeat(bulk(strings.Repeat("z", 1<<20)), 64), "a reply of more than 67108864 bytes"},
		"2,000 lines of 64 KiB":     {"*2000\r\n" + strings.Repeat("+"+strings.Repeat("x", 64<<10-3)+"\r\n", 1100), "a reply of more than 67108864 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const before = "*1\r\n+before\r\n"
			got, err := through(t, []byte(before+c.sent), nil, nil)
			bad, ok := errors.AsType[*respcheck.Error](err)
			if !ok || bad.What != c.want || bad.Server != "redis-1:6379" {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if !strings.HasPrefix(got, before) || len(got) > len(before)+len(c.sent) {
				t.Errorf("the reply before it did not come, or more than was sent: %d bytes", len(got))
			}
		})
	}
}

// one value of any length blinds nothing.
func TestLongStringsArriveAsMarks(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("n", 3<<20)
	stream := "*2\r\n" + bulk("17") + "*3\r\n" + bulk("a") + bulk(name) + bulk("b") +
		bulk(name) + fmt.Sprintf("=%d\r\ntxt:%s\r\n", len(name)+4, name) + "+OK\r\n"
	for _, cuts := range [][]byte{nil, {200, 0, 0, 3, 0, 0, 0, 9}, bytes.Repeat([]byte{255}, 1000), bytes.Repeat([]byte{0}, 4<<20)} {
		got, err := through(t, []byte(stream), cuts, nil)
		if err != nil {
			t.Fatal(err)
		}
		var marks []string
		for line := range strings.SplitSeq(strings.ReplaceAll(got, "txt:", ""), "\r\n") {
			if size, long := respcheck.Long(line); long {
				marks = append(marks, strconv.FormatInt(size, 10))
				got = strings.ReplaceAll(got, line, "MARK")
			}
		}
		if want := "3145728 3145728 3145732"; strings.Join(marks, " ") != want {
			t.Errorf("marks of %v, want %s", marks, want)
		}
		for i, part := range []string{"*2\r\n$2\r\n17\r\n*3\r\n$1\r\na\r\n$", "\r\nMARK\r\n$1\r\nb\r\n$", "\r\nMARK\r\n=", "\r\ntxt:MARK\r\n+OK\r\n"} {
			_, after, found := strings.Cut(got, part)
			if !found {
				t.Fatalf("part %d (%q) is not in %q", i, part, got)
			}
			got = after
		}
	}
}

func TestLongStringsHaveAnEnd(t *testing.T) {
	t.Parallel()
	head := "$536870912\r\n"
	if _, err := through(t, []byte("*2\r\n"+head), nil, nil); err != nil {
		t.Errorf("the longest string of Redis: %v", err)
	}
	long := strings.Repeat("x", 2<<20)
	_, err := through(t, []byte("*2\r\n"+bulk(long)+head), nil, nil)
	if bad, ok := errors.AsType[*respcheck.Error](err); !ok || bad.What != "a string of 536870912 bytes" {
		t.Errorf("got %v, want a refusal of what is read past in one reply", err)
	}
}

func TestOrdinaryTextIsNoMark(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "lock:a", "long-string-", "long-string-ABC-12"} {
		if _, long := respcheck.Long(s); long {
			t.Errorf("%q is taken for a mark", s)
		}
	}
}

// FuzzPieces gives any bytes in any pieces, to reads of any size: what passes and what
// is refused is the same as in one piece.
func FuzzPieces(f *testing.F) {
	for _, s := range []string{
		"+OK\r\n$3\r\nabc\r\n*2\r\n:1\r\n:2\r\n", "*1\r\n*-1\r\n", "$1048577\r\n", "|1\r\n+a\r\n+b\r\n:1\r\n", ">1\r\n+x\r\n", "$9223372036854775807\r\n",
	} {
		f.Add([]byte(s), []byte{0, 1, 2}, []byte{3, 0}, uint8(0))
	}
	f.Add([]byte("*2\r\n"), []byte{0, 0, 9}, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, uint8(2))
	f.Fuzz(func(t *testing.T, data, cuts, reads []byte, longs uint8) {
		for range longs % 3 {
			data = append(data, bulk(strings.Repeat("x", 1<<20+len(cuts)))...)
		}
		whole, wholeErr := through(t, bytes.Clone(data), nil, nil)
		pieces, err := through(t, bytes.Clone(data), cuts, reads)
		if whole != pieces || fmt.Sprint(wholeErr) != fmt.Sprint(err) {
			t.Errorf("in pieces %q, %v\nat once %q, %v", pieces, err, whole, wholeErr)
		}
		if !strings.Contains(whole, "\nlong-string-") && !strings.HasPrefix(string(data), whole) {
			t.Errorf("%q came as %q", data, whole)
		}
	})
}

// FuzzLegal makes a legal stream of any bytes: it passes unchanged.
func FuzzLegal(f *testing.F) {
	f.Add([]byte("\x00a\x01b\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d"), []byte{0, 3})
	f.Fuzz(func(t *testing.T, seed, cuts []byte) {
		var out bytes.Buffer
		for len(seed) > 0 {
			seed = legal(&out, seed, 1)
		}
		got, err := through(t, bytes.Clone(out.Bytes()), cuts, nil)
		if err != nil || got != out.String() {
			t.Errorf("%q came as %q, %v", out.String(), got, err)
		}
	})
}

// legal writes a value that begins at this depth, and returns what is left of the seed.
func legal(out *bytes.Buffer, seed []byte, depth int) []byte {
	if len(seed) == 0 {
		out.WriteString("_\r\n")
		return nil
	}
	kind, seed := "+-:_#,($=!*~%>|"[int(seed[0])%15], seed[1:]
	n := 0 // an end to what grows with each level
	if len(seed) > 0 {
		n, seed = int(seed[0])%5, seed[1:]
	}
	switch {
	case strings.ContainsRune("+-:_#,(", rune(kind)):
		fmt.Fprintf(out, "%c%s\r\n", kind, strings.Repeat("1", n))
		return seed
	case strings.ContainsRune("$=!", rune(kind)) || depth > 8:
		text := string(seed[:min(n, len(seed))])
		fmt.Fprintf(out, "$%d\r\n%s\r\n", len(text), text)
		return seed[len(text):]
	}
	fmt.Fprintf(out, "%c%d\r\n", kind, n)
	switch kind {
	case '%':
		n *= 2
	case '|':
		n = 2*n + 1
	}
	for range n {
		seed = legal(out, seed, depth+1)
	}
	return seed
}
