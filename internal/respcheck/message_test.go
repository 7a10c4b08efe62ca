package respcheck_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/internal/respcheck"
)

// The message of a flush has an empty array where the server sends a null, however it is cut; other nulls stay.
func TestFlushPassesAsAnEmptyArray(t *testing.T) {
	t.Parallel()
	flush := "*3\r\n" + bulk("message") + bulk("__redis__:invalidate")
	changed := flush + "*2\r\n" + bulk("a") + bulk("b")
	sent := "$-1\r\n" + flush + "$-1\r\n" + changed + flush + "*-1\r\n" + "*2\r\n$-1\r\n:1\r\n+OK\r\n"
	want := "$-1\r\n" + flush + "*0\r\n" + changed + flush + "*0\r\n" + "*2\r\n$-1\r\n:1\r\n+OK\r\n"
	for size := 1; size <= len(sent); size++ {
		cuts := []byte(strings.Repeat(string([]byte{byte(size - 1)}), len(sent)/size+1))
		raw := &piecewise{data: []byte(sent), cuts: cuts}
		got, err := io.ReadAll(respcheck.NewSubscriber(raw, "redis-1:6379"))
		if err != nil || string(got) != want {
			t.Fatalf("pieces of %d: %q, %v", size, got, err)
		}
	}
}

// What has go-redis panic is an error that names the server.
func TestMessageOfAnotherShape(t *testing.T) {
	t.Parallel()
	_, err := respcheck.Message("redis-1:6379", func() (any, error) {
		reply := []any{int64(5)}
		return reply[0].(string), nil
	})
	if bad, ok := errors.AsType[*respcheck.Error](err); !ok || bad.Server != "redis-1:6379" || !respcheck.Lied(err) {
		t.Errorf("got %v", err)
	}
	if got, err := respcheck.Message("redis-1:6379", func() (any, error) { return "pong", io.EOF }); got != "pong" || !errors.Is(err, io.EOF) {
		t.Errorf("got %v, %v", got, err)
	}
}
