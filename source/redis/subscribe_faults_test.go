package redis

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// early stands between a client and a server, and has a message arrive before the
// confirmation of the subscription that it comes by (redis/redis#13645). It returns
// its address.
func early(t *testing.T, upstream, message string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	relay := func(client net.Conn) {
		server, err := net.Dial("tcp", upstream)
		if err != nil {
			_ = client.Close()
			return
		}
		mu.Lock()
		open = append(open, client, server)
		mu.Unlock()
		group.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() })
		defer client.Close()
		buf, reported := make([]byte, 64<<10), false
		for {
			n, err := server.Read(buf)
			data := bytes.Clone(buf[:n])
			for _, ack := range []string{"*3\r\n$9\r\nsubscribe\r\n", "*3\r\n$10\r\npsubscribe\r\n"} {
				// In the middle of confirmations, and before all of them.
				if at := bytes.LastIndex(data, []byte(ack)); at >= 0 && !reported {
					reported = true
					data = slices.Insert(data, at, []byte(message)...)
					data = append([]byte(message), data...)
				}
			}
			if _, werr := client.Write(data); err != nil || werr != nil {
				return
			}
		}
	}
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() { relay(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		group.Wait()
	})
	return l.Addr().String()
}

func bulk(parts ...string) string {
	var out strings.Builder
	out.WriteString(fmt.Sprintf("*%d\r\n", len(parts)))
	for _, p := range parts {
		out.WriteString(fmt.Sprintf("$%d\r\n%s\r\n", len(p), p))
	}
	return out.String()
}

// A message may come before the confirmation of its subscription, or
// between two of them. It is received, and the watch is set up all the same.
// fault: 61
func TestMessagesBeforeTheConfirmation(t *testing.T) {
	t.Parallel()
	const pattern = "__keyspace@0__:lock:*"
	for name, tc := range map[string]struct {
		message string
		open    func(context.Context, *testing.T, string, listener) (*pair, error)
	}{
		"tracking": {
			// Keys of an invalidation are an array in the place of the payload.
			"*3\r\n$7\r\nmessage\r\n$20\r\n" + invalidations + "\r\n" + bulk("lock:early"),
			func(ctx context.Context, t *testing.T, addr string, to listener) (*pair, error) {
				return openTracking(ctx, openConn(t, "redis://"+addr), newCaps(), addr, []string{"lock:", "mutex:"}, to)
			},
		},
		"keyspace": {
			bulk("pmessage", pattern, "__keyspace@0__:lock:early", "set"),
			func(ctx context.Context, t *testing.T, addr string, to listener) (*pair, error) {
				return openKeyspace(ctx, openConn(t, "redis://"+addr), addr, 0, []string{"lock:", "mutex:"}, to)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "tracking" {
				testredis.Since(t, 6, 2, "CLIENT TRACKINGINFO")
			}
			srv := testredis.Start(t, testredis.WithConfig("notify-keyspace-events KA"))
			addr := early(t, srv.Addr(), tc.message)
			received := make(chan string, 100)
			to := listener{flushed: func() {}, changed: func(keys []string) {
				for _, key := range keys {
					received <- key
				}
			}}
			p, err := tc.open(t.Context(), t, addr, to)
			if err != nil {
				t.Fatalf("not set up: %v", err)
			}
			defer func() { p.close(); <-p.ended }()
			if len(received) != 2 || <-received != "lock:early" || <-received != "lock:early" {
				t.Fatal("what came early was not received")
			}
			if err := srv.Client(t).Set(t.Context(), "mutex:later", "tok", time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
			select {
			case key := <-received:
				if key != "mutex:later" {
					t.Errorf("saw %q", key)
				}
			case <-time.After(5 * time.Second):
				t.Error("nothing is received after the confirmations")
			}
			if err := p.check(t.Context()); err != nil {
				t.Errorf("check: %v", err)
			}
		})
	}
}
