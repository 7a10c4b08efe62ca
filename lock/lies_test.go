package lock_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

// TestLies has a server lie in every way at every command of the library, behind a client
// of one server and of a Cluster: the process lives and stays small, the caller is told
// what was wrong with which server, and locks elsewhere are taken meanwhile.
func TestLies(t *testing.T) {
	t.Parallel()
	if !testredis.Apart(t, raced) {
		return
	}
	srv, good := testredis.Start(t), testredis.Start(t)
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	honest := open(t, good.Client(t), lock.Options{})
	for _, command := range []string{"hello", "client setname", "evalsha", "eval", "cluster slots"} {
		for _, lie := range testredis.Lies() {
			t.Run(command+"/"+lie.Name, func(t *testing.T) {
				timeout := 30 * time.Second // of what it sends much has to arrive
				if !lie.Refused {
					timeout = 300 * time.Millisecond // as long it may be tried again
				}
				if !strings.HasPrefix(lie.Name, "90 MB") {
					t.Parallel()
				}
				liar := testredis.NewLiar(t, srv.Addr())
				// The client of the caller is not ours to protect: it asks nothing.
				var rdb redis.UniversalClient = redis.NewClient(&redis.Options{Addr: liar.Addr(), ClientName: "app", DialerRetries: 1, MaintNotificationsConfig: quiet})
				if command == "cluster slots" {
					rdb = redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{liar.Addr()}, DialerRetries: 1, MaintNotificationsConfig: quiet})
				}
				defer rdb.Close()
				c := open(t, rdb, lock.Options{Timeout: timeout})
				liar.Tell(command, lie.Tell)
				if command == "eval" { // the server has to be sent the script anew
					if err := srv.Client(t).ScriptFlush(t.Context()).Err(); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				key := command + "/" + lie.Name
				other := make(chan error, 1)
				go func() {
					h, err := honest.TryAcquire(ctx, key, lease())
					if err == nil {
						err = h.Release(ctx)
					}
					other <- err
				}()
				h, err := c.TryAcquire(ctx, key, lease())
				for n := 0; liar.Lied() == 0 && n < 20; n++ { // a busy machine may be too slow to get as far
					if err == nil {
						_ = h.Release(ctx)
					}
					h, err = c.TryAcquire(ctx, key, lease())
				}
				if err == nil {
					err = h.Release(ctx)
				}
				if err := <-other; err != nil {
					t.Errorf("a lock elsewhere: %v", err)
				}
				fmt.Printf("| %s | %s | %d | %v\n", command, lie.Name, liar.Lied(), err)
				if told := liar.Lied(); told == 0 || told > 16 {
					t.Errorf("lied to %d times, want one and few", told)
				}
				says := err != nil && (strings.Contains(err.Error(), "close connection to "+liar.Addr()) ||
					strings.Contains(err.Error(), "redis: ") || strings.Contains(err.Error(), "strconv"))
				if lie.Refused && !says {
					t.Errorf("got %v, want what was wrong", err)
				}
			})
		}
	}
}

// A server whose messages go-redis panics over is asked by polling, and the caller gets the lock.
func TestMessagesOfAnotherShape(t *testing.T) {
	t.Parallel()
	for _, message := range []string{"*0\r\n", "*1\r\n:5\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n$1\r\n1\r\n"} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t)
			liar := testredis.NewLiar(t, srv.Addr())
			liar.Tell("subscribe", func(w io.Writer) error {
				_, err := io.WriteString(w, message)
				return err
			})
			rdb := redis.NewClient(&redis.Options{Addr: liar.Addr()})
			t.Cleanup(func() { _ = rdb.Close() })
			events := &recorder{}
			c := open(t, rdb, lock.Options{})
			c.Observe(events.add)
			h := mustAcquire(t, open(t, srv.Client(t), lock.Options{}), "k", lease())
			got := make(chan error, 1)
			go func() {
				h, err := c.Acquire(t.Context(), "k", lease())
				if err == nil {
					err = h.Release(t.Context())
				}
				got <- err
			}()
			events.wait(t, lock.EventPushFailed, 1, 5*time.Second)
			mustRelease(t, h)
			if err := <-got; err != nil {
				t.Fatal(err)
			}
		})
	}
}
