package testredis

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Liar stands before a server and answers one command itself, with whatever a test
// wants; all else the server answers. It is safe for concurrent use, and gone with all
// its connections at the end of the test.
type Liar struct {
	upstream string
	listener net.Listener
	wg       sync.WaitGroup

	mu      sync.Mutex
	command string
	lie     func(io.Writer) error
	lied    int
	conns   map[net.Conn]struct{}
	closed  bool
}

// NewLiar starts a liar before the server at upstream, host:port.
func NewLiar(t testing.TB, upstream string) *Liar {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("start liar: %v", err)
	}
	l := &Liar{upstream: upstream, listener: listener, conns: map[net.Conn]struct{}{}}
	l.wg.Go(l.accept)
	t.Cleanup(l.close)
	return l
}

// Addr returns the host:port where it listens.
func (l *Liar) Addr() string { return l.listener.Addr().String() }

// Tell has every request that begins with the words of command answered by lie, which
// may write until the client has gone; an error of it ends the connection. With an empty
// command the server answers all.
func (l *Liar) Tell(command string, lie func(io.Writer) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.command, l.lie, l.lied = strings.ToLower(command), lie, 0
}

// Lied returns how many requests were answered with a lie since [Liar.Tell].
func (l *Liar) Lied() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lied
}

func (l *Liar) lieTo(request []string) func(io.Writer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	words := strings.Fields(l.command)
	if len(words) == 0 || len(request) < len(words) {
		return nil
	}
	for i, word := range words {
		if !strings.EqualFold(request[i], word) {
			return nil
		}
	}
	l.lied++
	return l.lie
}

func (l *Liar) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", l.upstream)
		if err != nil {
			abort(client)
			continue
		}
		if !l.keep(client, server) {
			abort(client)
			abort(server)
			return
		}
		l.wg.Go(func() { l.serve(client, server) })
	}
}

func (l *Liar) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		l.conns[c] = struct{}{}
	}
	return !l.closed
}

// serve answers the requests of one connection in their order.
func (l *Liar) serve(client, server net.Conn) {
	var mu sync.Mutex // of the client's side, and what is still to be answered
	idle := sync.NewCond(&mu)
	waiting, over := 0, false
	var wg sync.WaitGroup
	end := func() {
		_ = client.Close() // both are thrown away: that one of them has gone is no news
		_ = server.Close()
	}
	wg.Go(func() {
		defer func() {
			mu.Lock()
			over = true
			idle.Broadcast()
			mu.Unlock()
			end()
		}()
		counter, buf := new(replyCounter), make([]byte, 32<<10)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			mu.Lock()
			_, err = client.Write(buf[:n])
			waiting -= len(counter.feed(buf[:n]))
			idle.Broadcast()
			mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	in := bufio.NewReader(client)
	for {
		words, raw, err := request(in)
		if err != nil {
			break
		}
		lie := l.lieTo(words)
		mu.Lock()
		if lie != nil {
			for waiting > 0 && !over {
				idle.Wait()
			}
			err = lie(client)
		} else {
			waiting++
			_, err = server.Write(raw)
		}
		mu.Unlock()
		if err != nil {
			break
		}
	}
	end()
	wg.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, client)
	delete(l.conns, server)
}

// request reads one request, which clients send as an array of strings.
func request(in *bufio.Reader) (words []string, raw []byte, err error) {
	number := func(kind byte) (int, error) {
		line, err := in.ReadString('\n')
		if err != nil {
			return 0, err
		}
		raw = append(raw, line...)
		if line[0] != kind {
			return 0, fmt.Errorf("read request: got %q, want %q", line, kind)
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := number('*')
	if err != nil {
		return nil, nil, err
	}
	for range n {
		size, err := number('$')
		if err != nil {
			return nil, nil, err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, nil, err
		}
		raw = append(raw, word...)
		words = append(words, string(word[:size]))
	}
	return words, raw, nil
}

func (l *Liar) close() {
	_ = l.listener.Close() // it was ours alone
	l.mu.Lock()
	l.closed = true
	for c := range l.conns {
		abort(c)
	}
	l.mu.Unlock()
	l.wg.Wait()
}

// Lie is one kind of lie.
type Lie struct {
	Name string
	// Refused says that no reply of any command can be this.
	Refused bool
	Tell    func(io.Writer) error
}

func say(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// flood says head and then, up to limit bytes, body again and again.
func flood(head, body string, limit int) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, head)
		chunk := strings.Repeat(body, 1+(64<<10)/len(body))
		for left := limit; left > 0 && err == nil; left -= len(chunk) {
			_, err = io.WriteString(w, chunk[:min(left, len(chunk))])
		}
		return err
	}
}

// Lies are those that kill, swell or confuse a client that believes them.
func Lies() []Lie {
	return []Lie{
		{"string of 2^63-1 bytes", true, say("$9223372036854775807\r\n")},
		{"array of 2^63-1 in a page", true, say("*2\r\n$1\r\n0\r\n*9223372036854775807\r\n")},
		{"array of 2^31-1", true, say("*2147483647\r\n")},
		{"map of 2^62", true, say("%4611686018427387904\r\n")},
		{"negative array", true, say("*-5\r\n")},
		{"negative string", true, say("$-7\r\n")},
		{"arrays in arrays", true, flood("", "*1\r\n", 64<<20)},
		{"attributes without an end", true, flood("", "|0\r\n", 64<<20)},
		{"line without an end", true, flood("+", "x", 256<<20)},
		{"error without an end", true, flood("-", "x", 256<<20)},
		{"string of 2 GB, sent", true, flood("$2147483648\r\n", "x", 512<<20)},
		{"100 million names", true, flood("*2\r\n$1\r\n0\r\n*100000000\r\n", "$4\r\nname\r\n", 512<<20)},
		{"90 MB of strings of 1 MB", true, flood("*2\r\n$1\r\n0\r\n*90\r\n", "$1000000\r\n"+strings.Repeat("x", 1_000_000)+"\r\n", 90<<20)},
		{"another protocol", true, say("HTTP/1.1 400 Bad Request\r\n\r\n")},
		{"string of 50 MB, sent", false, func(w io.Writer) error {
			if err := flood("$50000000\r\n", "x", 50_000_000)(w); err != nil {
				return err
			}
			return say("\r\n")(w)
		}},
		{"wrong type", false, say("*3\r\n:1\r\n%1\r\n*0\r\n_\r\n-ERR no\r\n")},
		{"half a reply", false, func(w io.Writer) error {
			_, err := io.WriteString(w, "*2\r\n$1\r\n0\r\n*1\r\n$10")
			if err == nil {
				err = io.EOF
			}
			return err
		}},
		{"pushes without an end", false, flood("", ">2\r\n+message\r\n+x\r\n", 512<<20)},
	}
}
