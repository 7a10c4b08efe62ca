package connect_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/source/redis/connect"
)

// fakeServer answers each command (its words joined by spaces) with what reply
// returns, in RESP. It stands in for versions that this machine does not have.
func fakeServer(t *testing.T, reply func(cmd string) string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for {
					cmd, err := readCommand(r)
					if err != nil {
						return
					}
					if _, err := io.WriteString(c, reply(cmd)); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
	return l.Addr().String()
}

func readCommand(r *bufio.Reader) (string, error) {
	n, err := readNumber(r, '*')
	if err != nil {
		return "", err
	}
	words := make([]string, n)
	for i := range words {
		size, err := readNumber(r, '$')
		if err != nil {
			return "", err
		}
		buf := make([]byte, size+2)
		if _, err := io.ReadFull(r, buf); err != nil {
			return "", err
		}
		words[i] = string(buf[:size])
	}
	return strings.Join(words, " "), nil
}

func readNumber(r *bufio.Reader, mark byte) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != mark {
		return 0, fmt.Errorf("want %q, got %q", mark, line)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

func TestNoTouchWhereTheServerHasIt(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		info, answer string
		tried        int // NO-TOUCH on two connections
		writes       bool
	}{
		"7.0":              {"redis_version:7.0.15", "+OK", 0, false},
		"7.2":              {"redis_version:7.2.0", "+OK", 2, false},
		"8.4":              {"redis_version:8.4.1", "+OK", 2, false},
		"8.4, for writes":  {"redis_version:8.4.1", "+OK", 0, true},
		"valkey":           {"redis_version:7.0.0\r\nvalkey_version:8.0.0", "+OK", 2, false},
		"7.2, not allowed": {"redis_version:7.2.0", "-NOPERM no permissions to run the 'client|no-touch' command", 1, false},
		"nonsense":         {"redis_version:x", "+OK", 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var seen []string
			addr := fakeServer(t, func(cmd string) string {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, cmd)
				switch {
				case strings.HasPrefix(cmd, "hello"):
					return "-ERR unknown command 'hello'\r\n"
				case cmd == "info server":
					text := "# Server\r\n" + test.info + "\r\n"
					return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
				case cmd == "client no-touch on":
					return test.answer + "\r\n"
				default:
					return "+OK\r\n"
				}
			})
			conn := open(t, connect.Config{URL: "redis://" + addr, Writes: test.writes})
			client := conn.Universal().(*redis.Client)
			for range 2 {
				cn := client.Conn() // held, so that the next one is another
				defer cn.Close()
				if err := cn.Ping(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			n := len(slices.DeleteFunc(slices.Clone(seen), func(c string) bool { return c != "client no-touch on" }))
			if n != test.tried {
				t.Errorf("NO-TOUCH tried %d times, want %d: %q", n, test.tried, seen)
			}
		})
	}
}
