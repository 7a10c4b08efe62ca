package redisproc

import (
	"errors"
	"net"
	"strings"
	"testing"
)

// answering returns the address of a server that gives these replies in turn
// to anyone who comes first.
func answering(t *testing.T, replies ...string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		buf := make([]byte, 4096)
		for _, reply := range replies {
			if _, err := conn.Read(buf); err != nil {
				return
			}
			if _, err := conn.Write([]byte(reply)); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = l.Close() // The goroutine may have ended before.
		<-done
	})
	return l.Addr().String()
}

func TestProbe(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		replies []string
		want    string // in the error; "" for none
	}{
		"ours":         {[]string{"+PONG\r\n", "$17\r\nprocess_id:4711\r\n\r\n"}, ""},
		"no password":  {[]string{"-NOAUTH Authentication required.\r\n", "-NOAUTH Authentication required.\r\n"}, ""},
		"no INFO":      {[]string{"+PONG\r\n", "-NOPERM no\r\n"}, ""},
		"foreign":      {[]string{"+PONG\r\n", "$15\r\nprocess_id:42\r\n\r\n"}, "another process"},
		"loading":      {[]string{"-LOADING Redis is loading\r\n"}, "loading"},
		"hangs up":     {nil, "PING"},
		"half a reply": {[]string{"+PONG\r\n", "$100\r\nprocess"}, "INFO"},
		"bad length":   {[]string{"+PONG\r\n", "$x\r\n"}, "bad length"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := probe(t.Context(), "tcp", answering(t, tc.replies...), nil, "", "", 4711)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("got %v, want it taken as ours", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
			if errors.Is(err, errForeign) != (name == "foreign") {
				t.Errorf("foreign: %v", err)
			}
		})
	}
}

func TestProbeLogsIn(t *testing.T) {
	t.Parallel()
	p := start(t, Options{Config: []string{"user default off", "user op on >pw +@all"}, Username: "op", Password: "pw"})
	if err := answers(t, p); err != nil {
		t.Error(err)
	}
	if err := probe(t.Context(), p.network, p.addr, nil, "op", "pw", p.PID()+1); !errors.Is(err, errForeign) {
		t.Errorf("with another process id: %v, want errForeign", err)
	}
}
