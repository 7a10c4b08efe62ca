package alert

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Of an answer that is longer 64 KiB are read, whatever it is.
// fault: 80
func TestAnAnswerIsReadUpTo64KiB(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"taken": 200, "refused": 400, "away": 503} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := hook(t, Endpoint{}, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
			})
			got, err := w.post(t.Context(), []byte("{}"), nil)
			if got.status != status || (err == nil) != (status == 200) {
				t.Errorf("status %d, %v", got.status, err)
			}
			if len(got.body) != 64<<10 {
				t.Errorf("%d bytes of the answer were read, want 65536", len(got.body))
			}
		})
	}
}

// Where no time is given an attempt is over after ten seconds: with a server that
// says nothing, and with one that says a byte now and then.
// fault: 80
func TestAnAttemptEndsAfterTenSeconds(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{
		"says nothing": "",
		"slow head":    "HTTP/1.1 200 OK\r\nX-Drip: ",
		"slow body":    "HTTP/1.1 500 No\r\nContent-Length: 1000000\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newHook(t, Endpoint{URL: "http://127.0.0.1", AllowPrivate: true})
				// The pipe is in the bubble, where ten seconds take no time.
				var far sync.WaitGroup
				defer far.Wait()
				w.client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
					ours, theirs := net.Pipe()
					far.Go(func() { dripTo(theirs, first) })
					return ours, nil
				}
				began := time.Now()
				err := w.send(t.Context(), newOutgoing("msg_1", []byte("{}")))
				if took := time.Since(began); took != 10*time.Second {
					t.Errorf("it took %s", took)
				}
				if e, ok := errors.AsType[*DeliveryError](err); !ok || !e.Retryable {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// dripTo answers a request so slowly that it never ends, until the other side is
// gone; with nothing to begin with it stays silent.
func dripTo(c net.Conn, first string) {
	defer c.Close()
	asked := bufio.NewReader(c)
	if _, err := http.ReadRequest(asked); err != nil {
		return
	}
	if first == "" {
		_, _ = io.Copy(io.Discard, asked)
		return
	}
	for text := first; ; text = "x" {
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
		time.Sleep(300 * time.Millisecond)
	}
}
