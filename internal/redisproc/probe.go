package redisproc

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// errForeign says that somebody else's server answers at our address.
var errForeign = errors.New("another process answers at this address")

// probe asks the server at addr for a sign of life. It speaks RESP itself: a
// client library would pool, retry and log what is normal here. A reply of
// error (no permission, no password) is a sign of life too, but for LOADING.
func probe(ctx context.Context, network, addr string, conf *tls.Config, user, password string, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := dial(ctx, network, addr, conf)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()

	r := bufio.NewReader(conn)
	if password != "" {
		if user == "" {
			user = "default"
		}
		if _, err := call(conn, r, "AUTH", user, password); err != nil {
			return err
		}
	}
	pong, err := call(conn, r, "PING")
	if err != nil {
		return err
	}
	if strings.HasPrefix(pong, "-LOADING") {
		return errors.New("the server is loading its data")
	}
	info, err := call(conn, r, "INFO", "server")
	if err != nil {
		return err
	}
	for line := range strings.Lines(info) {
		text, found := strings.CutPrefix(strings.TrimSpace(line), "process_id:")
		if found && text != strconv.Itoa(pid) {
			return fmt.Errorf("%w: process %s, want %d", errForeign, text, pid)
		}
	}
	return nil
}

func dial(ctx context.Context, network, addr string, conf *tls.Config) (net.Conn, error) {
	if conf != nil {
		return (&tls.Dialer{Config: conf}).DialContext(ctx, network, addr)
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// call sends one command and returns its reply: the text of a bulk string, or
// the whole line of any other single-line reply, errors with their "-".
func call(w io.Writer, r *bufio.Reader, args ...string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return "", fmt.Errorf("send %s: %w", args[0], err)
	}
	line, err := r.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("read reply to %s: %w", args[0], err)
	}
	line = strings.TrimSpace(line)
	size, bulk := strings.CutPrefix(line, "$")
	if !bulk {
		return line, nil
	}
	n, err := strconv.Atoi(size)
	if err != nil || n < 0 {
		return "", fmt.Errorf("read reply to %s: bad length %q", args[0], size)
	}
	body := make([]byte, n+2)
	if _, err := io.ReadFull(r, body); err != nil {
		return "", fmt.Errorf("read reply to %s: %w", args[0], err)
	}
	return string(body[:n]), nil
}
