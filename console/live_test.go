package console

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// follow opens a stream and returns its lines.
func (b *fixture) follow(user string) (*http.Response, <-chan string) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", b.url+"/live", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if user != "" {
		req.Header.Set("Authorization", "Bearer "+b.tokens[user])
	}
	resp, err := (&http.Client{Transport: ownConnections}).Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	lines := make(chan string, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(lines)
		scan := bufio.NewScanner(resp.Body)
		for scan.Scan() {
			lines <- scan.Text()
		}
	}()
	b.t.Cleanup(func() { cancel(); _ = resp.Body.Close(); <-done })
	return resp, lines
}

// hear waits for a line.
func hear(t *testing.T, lines <-chan string, want string) {
	t.Helper()
	timeout := time.After(10 * time.Second)
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				t.Fatalf("the stream ended before %q", want)
			}
			if line == want {
				return
			}
		case <-timeout:
			t.Fatalf("never received %q", want)
		}
	}
}

// over waits for the end of a stream.
func over(t *testing.T, lines <-chan string) {
	t.Helper()
	timeout := time.After(10 * time.Second)
	for {
		select {
		case _, ok := <-lines:
			if !ok {
				return
			}
		case <-timeout:
			t.Fatal("the stream never ended")
		}
	}
}

func TestLiveTellsOfChanges(t *testing.T) {
	t.Parallel()
	b := setup(t, "approver")
	b.server.streams.every, b.server.streams.beat = 20*time.Millisecond, 40*time.Millisecond
	resp, lines := b.follow("approver")
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("status %d, %v", resp.StatusCode, resp.Header)
	}
	hear(t, lines, "retry: 3000")
	hear(t, lines, "event: beat") // nothing changed: it is only alive
	for range 1000 {
		b.server.Touch()
	}
	hear(t, lines, "event: change")
	hear(t, lines, "event: beat") // a thousand changes were one
	b.send("approver", "/requests/r1/deny", "reason", "x")
	hear(t, lines, "event: change")
}

func TestLiveEndsWithTheSession(t *testing.T) {
	t.Parallel()
	b := setup(t, "viewer", "admin")
	b.server.streams.every, b.server.streams.beat = 10*time.Millisecond, 20*time.Millisecond
	_, lines := b.follow("viewer")
	hear(t, lines, "retry: 3000")
	write := strings.ReplaceAll(read(t, b.file), "viewer", "watcher")
	overwrite(t, b.file, write)
	_ = b.server.ReloadUsers() // the roles are wrong now; a name alone must do as well
	overwrite(t, b.file, strings.Replace(write, "roles: [watcher]", "roles: [viewer]", 1))
	if err := b.server.ReloadUsers(); err != nil {
		t.Fatal(err)
	}
	over(t, lines)
}

func TestLiveEndsWithTheServer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, lines := b.follow("")
	hear(t, lines, "retry: 3000")
	b.server.streams.close()
	over(t, lines)
	if a := b.do("", "GET", "/live", ""); a.status != http.StatusServiceUnavailable {
		t.Errorf("a stream of a server that stops: status %d", a.status)
	}
}

// The server's bound on the time of an answer does not cut a stream.
func TestLiveOutlivesTheWriteTimeout(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.streams.every, b.server.streams.beat = 200*time.Millisecond, 200*time.Millisecond
	srv := &http.Server{Handler: b.server.handler(), ReadTimeout: time.Second, WriteTimeout: time.Second}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(b.server.listener) }()
	t.Cleanup(func() { b.server.streams.close(); _ = srv.Close(); <-served })
	b.url = "http://" + b.server.Addr()
	_, lines := b.follow("")
	for range 20 { // four times the bound
		hear(t, lines, "event: beat")
	}
}

func TestLiveIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, "viewer", "admin")
	var ends []func()
	for range maxStreamsOfPerson {
		end, err := b.server.streams.begin("viewer")
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	if a := b.do("viewer", "GET", "/live", ""); a.status != http.StatusServiceUnavailable {
		t.Errorf("one stream too many of a person: status %d", a.status)
	}
	if end, err := b.server.streams.begin("admin"); err != nil {
		t.Error("one person takes the streams of another")
	} else {
		end()
	}
	for _, end := range ends {
		end()
	}
	if end, err := b.server.streams.begin("viewer"); err != nil || len(b.server.streams.byName) != 1 {
		t.Errorf("streams that ended count: %v", err)
	} else {
		end()
	}
	for n := range maxStreams {
		if _, err := b.server.streams.begin(string(rune('a' + n/maxStreamsOfPerson))); err != nil {
			t.Fatalf("stream %d: %v", n, err)
		}
	}
	if _, err := b.server.streams.begin("admin"); err == nil {
		t.Error("there is no bound for all")
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func overwrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
