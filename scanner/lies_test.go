package scanner_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// TestLies has a server lie in every way at every command of a sweep. The process
// lives and stays small, another target is swept meanwhile, and what was wrong with
// which server is the reason of the target.
func TestLies(t *testing.T) {
	t.Parallel()
	if !testredis.Apart(t, raced) {
		return
	}
	srv, good := testredis.Start(t), testredis.Start(t)
	c := srv.Client(t)
	must(t, c.Set(t.Context(), "lock:string", "token-1234567890", time.Hour).Err())
	must(t, c.HSet(t.Context(), "lock:hash", "8743c9c0-0795-4907-87fd-6c719a6b4586:1", 1).Err())
	must(t, c.ZAdd(t.Context(), "lock:zset", redis.Z{Score: 1, Member: "a"}).Err())
	must(t, c.SAdd(t.Context(), "lock:set", "a").Err())
	must(t, c.RPush(t.Context(), "lock:list", "a").Err())
	must(t, good.Client(t).Set(t.Context(), "lock:string", "token-1234567890", time.Hour).Err())
	classes := []class.Class{{Name: "locks", Match: []string{"lock:*"}}}
	liar := testredis.NewLiar(t, srv.Addr())
	r := fast(good.URL())
	r.classes = classes
	honest := r.build(t)

	sweeps := []string{
		"hello", "client setname", "info", "ping", "scan", "type", "object idletime", "time", "pexpiretime", "getrange",
		"hlen", "memory usage", "hgetall", "zcard", "zrange", "scard", "smembers", "llen", "lrange",
	}
	for url, commands := range map[string][]string{
		"redis://" + liar.Addr() + "/0":                 sweeps,
		"redis+cluster://" + liar.Addr():                {"cluster slots"},
		"redis+sentinel://" + liar.Addr() + "/mymaster": {"sentinel get-master-addr-by-name"},
	} {
		for _, command := range commands {
			for _, lie := range testredis.Lies() {
				t.Run(command+"/"+lie.Name, func(t *testing.T) {
					liar.Tell(command, lie.Tell)
					defer liar.Tell("", nil)
					r := fast(url)
					r.classes = classes
					if r.connect.ReadTimeout = 500 * time.Millisecond; lie.Refused {
						r.connect.ReadTimeout = soon // of what it sends much has to arrive
					}
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					defer cancel()
					other := besides(ctx, honest)
					got, err := r.build(t).Sweep(ctx)
					if err := <-other; err != nil {
						t.Errorf("the other target was not swept: %v", err)
					}
					reason := reasonOf(got, err)
					reported := liar.Lied()
					fmt.Printf("| %s | %s | %d | %s\n", command, lie.Name, reported, reason)
					if reported == 0 || reported > 16 {
						t.Errorf("lied to %d times, want one and few", reported)
					}
					checkReason(t, lie, got.Complete() && len(got.Masters) > 0, reason, liar.Addr())
				})
			}
		}
	}
	for _, command := range []string{"client id", "subscribe", "client tracking", "client trackinginfo"} {
		for _, lie := range testredis.Lies() {
			if !lie.Refused {
				continue
			}
			t.Run(command+"/"+lie.Name, func(t *testing.T) {
				liar.Tell(command, lie.Tell)
				defer liar.Tell("", nil)
				r := fast("redis://" + liar.Addr() + "/0")
				r.classes = classes
				r.connect.ReadTimeout = soon
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s := r.build(t)
				other := besides(t.Context(), honest)
				over := make(chan error, 1)
				go func() { over <- s.Watch(ctx, func(context.Context, locksteward.Update) {}) }()
				reason := ""
				testredis.Eventually(t, soon, func() bool {
					for _, n := range s.WatchState().Nodes {
						reason = n.Addr + ": " + n.Reason
					}
					return liar.Lied() > 0 && reason != "" && !strings.HasSuffix(reason, "not set up yet")
				}, "the watch says why it is not set up")
				cancel()
				must(t, <-over)
				if err := <-other; err != nil {
					t.Errorf("the other target was not swept: %v", err)
				}
				fmt.Printf("| %s | %s | %d | %s\n", command, lie.Name, liar.Lied(), reason)
				checkReason(t, lie, false, reason, liar.Addr())
			})
		}
	}
}

// besides sweeps another target meanwhile.
func besides(ctx context.Context, honest *scanner.Scanner) <-chan error {
	done := make(chan error, 1)
	go func() {
		got, err := honest.Sweep(ctx)
		if err == nil && (!got.Complete() || len(got.Locks) != 1) {
			err = fmt.Errorf("complete %t, %d locks", got.Complete(), len(got.Locks))
		}
		done <- err
	}()
	return done
}

// checkReason requires that what was wrong is reported, and of which server, unless the lie
// was one that is no harm.
func checkReason(t *testing.T, lie testredis.Lie, harmless bool, reason, addr string) {
	t.Helper()
	says := strings.Contains(reason, "look whether a Redis server listens there") && strings.Contains(reason, addr)
	silent := strings.Contains(reason, "the server closed the connection") || strings.Contains(reason, "no answer in time") ||
		strings.Contains(reason, "cannot be resolved") // the master that a Sentinel names
	switch {
	case says, !lie.Refused && (silent || harmless):
	default:
		t.Errorf("reason %q does not say what was wrong with %s", reason, addr)
	}
}

// reasonOf is what a person sees of a sweep that is not complete.
func reasonOf(s locksteward.Sweep, err error) string {
	if len(s.Masters) == 0 {
		return connect.Explain(err)
	}
	var out []string
	for _, m := range s.Masters {
		if m.Reason != "" {
			out = append(out, m.Node+": "+m.Reason)
		}
	}
	return strings.Join(out, "; ")
}

// A subscription that is answered with messages that go-redis panics over ends, and says why.
func TestMessagesOfAnotherShape(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	for name, message := range map[string]string{
		"empty":            "*0\r\n",
		"number":           "*1\r\n:5\r\n",
		"count as text":    "*3\r\n$9\r\nsubscribe\r\n$20\r\n__redis__:invalidate\r\n$1\r\n1\r\n",
		"without a count":  "*1\r\n$9\r\nsubscribe\r\n",
		"channel of ten":   "*3\r\n$7\r\nmessage\r\n:10\r\n$1\r\nx\r\n",
		"names as numbers": "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n:5\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			liar := testredis.NewLiar(t, srv.Addr())
			liar.Tell("subscribe", func(w io.Writer) error {
				_, err := io.WriteString(w, message)
				return err
			})
			ctx, cancel := context.WithCancel(t.Context())
			s := fast("redis://" + liar.Addr() + "/0").build(t)
			over := make(chan error, 1)
			go func() { over <- s.Watch(ctx, func(context.Context, locksteward.Update) {}) }()
			testredis.Eventually(t, soon, func() bool {
				for _, n := range s.WatchState().Nodes {
					if strings.Contains(n.Reason, "a message of a shape that no message of Redis has") {
						return true
					}
				}
				return false
			}, "the watch does not say why it is not set up")
			cancel()
			must(t, <-over)
		})
	}
}
