package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
)

// spy counts what clients send, on a MONITOR connection. INFO cannot: its
// counts have the commands that scripts execute among those that were sent.
// MONITOR marks them, and is exact, but costs the server time; so it never runs
// while something is timed.
type spy struct {
	bed  *bed
	conn net.Conn
	read *bufio.Reader
}

// newSpy starts to listen.
func newSpy(ctx context.Context, b *bed) (*spy, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, b.server.Network(), b.server.Addr())
	if err != nil {
		return nil, fmt.Errorf("connect monitor: %w", err)
	}
	s := &spy{bed: b, conn: conn, read: bufio.NewReaderSize(conn, 64<<10)}
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		return nil, fmt.Errorf("start monitor: %w", err)
	}
	if line, err := s.read.ReadString('\n'); err != nil || line != "+OK\r\n" {
		return nil, fmt.Errorf("start monitor: reply %q, %w", line, err)
	}
	return s, nil
}

func (s *spy) close() error { return s.conn.Close() }

// count returns how often clients have sent each command since the last count,
// and how many more the server has executed inside scripts.
func (s *spy) count(ctx context.Context) (sent map[string]int, inside int, err error) {
	mark := s.bed.name()
	if err := s.bed.admin.Echo(ctx, mark).Err(); err != nil {
		return nil, 0, fmt.Errorf("mark end of count: %w", err)
	}
	sent = map[string]int{}
	for {
		line, err := s.read.ReadString('\n')
		if err != nil {
			return nil, 0, fmt.Errorf("read monitor: %w", err)
		}
		command, lua, ok := monitored(line)
		switch {
		case !ok:
			return nil, 0, fmt.Errorf("read monitor: line %q", line)
		case command == "echo" && strings.Contains(line, `"`+mark+`"`):
			return sent, inside, nil
		case lua:
			inside++
		default:
			sent[command]++
		}
	}
}

// monitored reads a line of MONITOR: +1700000000.123456 [0 127.0.0.1:4711] "get" "k".
func monitored(line string) (command string, lua, ok bool) {
	_, rest, ok1 := strings.Cut(line, " [")
	from, rest, ok2 := strings.Cut(rest, "] \"")
	command, _, ok3 := strings.Cut(rest, `"`)
	return strings.ToLower(command), strings.HasSuffix(from, " lua"), ok1 && ok2 && ok3
}
