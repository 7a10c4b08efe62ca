package connect_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// TestDedicatedConnectionIsNotReplaced: what broke fails from then on, so that
// nobody goes on with another connection unaware.
func TestDedicatedConnectionIsNotReplaced(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	conn := open(t, connect.Config{URL: strings.TrimSuffix(srv.URL(), "/0") + "/2"})
	id := int64(0)
	d := conn.Dedicated(t.Context(), srv.Addr(), "-test", func(ctx context.Context, cn *redis.Conn) (err error) {
		id, err = cn.ClientID(ctx).Result()
		return err
	})
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	info, err := d.Do(t.Context(), "client", "info").Text()
	if err != nil || !strings.Contains(info, " name=locksteward-test ") || !strings.Contains(info, " db=2 ") || id == 0 {
		t.Fatalf("client info: %v %s, id %d", err, info, id)
	}
	if got, err := d.ClientID(t.Context()).Result(); err != nil || got != id {
		t.Errorf("id %d, %v, want %d", got, err, id)
	}
	if err := srv.Client(t).ClientKillByFilter(t.Context(), "ID", strconv.FormatInt(id, 10)).Err(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := d.Ping(t.Context()).Err(); err == nil {
			t.Fatal("another connection answers")
		}
	}
}

// With the end of its context a dedicated connection is cut off, anyone who waits for an
// answer of a server that gives none.
func TestDedicatedEndsWithItsContext(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	conn := open(t, connect.Config{URL: srv.URL()})
	ctx, cancel := context.WithCancel(t.Context())
	d := conn.Dedicated(ctx, srv.Addr(), "-test", nil)
	defer d.Close()
	if err := d.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	srv.Pause()
	defer srv.Resume()
	answered := make(chan error, 1)
	go func() { answered <- d.Ping(context.WithoutCancel(ctx)).Err() }()
	cancel()
	select {
	case err := <-answered:
		if err == nil {
			t.Error("a server that stands still answered")
		}
	case <-time.After(patience):
		t.Error("it waits on")
	}
}
