package live_test

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap/zaptest"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
	redissource "github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/releaser"
)

// patience is how long anything may take that has to happen.
const patience = 20 * time.Second

// lab is one server with what looks at its locks and frees them.
type lab struct {
	server *testredis.Server
	client *redis.Client
	digest locksteward.DigestKey
}

func newLab(t *testing.T) lab {
	t.Helper()
	server := testredis.Start(t)
	return lab{server: server, client: server.Client(t), digest: locksteward.NewDigestKey()}
}

func (l lab) connect() connect.Config {
	return connect.Config{URL: l.server.URL(), ReadTimeout: patience}
}

// sweep is what `locksteward scan` sees without any configured class.
func (l lab) sweep(t *testing.T) []locksteward.Lock {
	t.Helper()
	conn, err := connect.Open(l.connect())
	must(t, err)
	defer func() { must(t, conn.Close()) }()
	classes, err := class.NewSet(nil)
	must(t, err)
	target := locksteward.Target{Name: "live", Mode: conn.Mode()}
	src, err := redissource.New(conn, redissource.Options{Log: zaptest.NewLogger(t), Digest: l.digest, Unpaced: true})
	must(t, err)
	s, err := scanner.New(zaptest.NewLogger(t), target, src, classes, scanner.Config{NoThrottle: true}, scanner.Options{})
	must(t, err)
	sweep, err := s.Sweep(t.Context())
	must(t, err)
	return sweep.Locks
}

// see returns the lock under key; ok is false if the scanner does not see one.
func (l lab) see(t *testing.T, key string) (lock locksteward.Lock, ok bool) {
	t.Helper()
	locks := l.sweep(t)
	i := slices.IndexFunc(locks, func(lock locksteward.Lock) bool { return lock.Key == key })
	if i < 0 {
		return lock, false
	}
	return locks[i], true
}

// wants is what the scanner must say of a lock.
type wants struct {
	key, typ, format string
	confidence       locksteward.Confidence
	identity         locksteward.Identity
	holder           locksteward.Holder
	count            int64         // 0 stands for 1
	ttl              time.Duration // at most; 0: the key never expires
	renews           time.Duration
}

// check looks at the lock under w.key and compares.
func (l lab) check(t *testing.T, w wants) locksteward.Lock {
	t.Helper()
	got, ok := l.see(t, w.key)
	if !ok {
		t.Fatalf("the scanner does not see %q", w.key)
	}
	if got.Library != w.format || got.Type != w.typ || got.Kind != locksteward.KindLock {
		t.Errorf("%q is a %s of format %s (%s), want a %s of %s (lock)", w.key, got.Type, got.Library, got.Kind, w.typ, w.format)
	}
	if got.Confidence != w.confidence || got.Identity != w.identity || got.SharedToken {
		t.Errorf("%q: confidence %s, identity %s, shared %t, want %s, %s, false", w.key, got.Confidence, got.Identity, got.SharedToken, w.confidence, w.identity)
	}
	if got.Holder != w.holder || got.Count != max(1, w.count) || got.RenewEvery != w.renews {
		t.Errorf("%q: holder %+v, %d times, renewed every %s, want %+v, %d, %s", w.key, got.Holder, got.Count, got.RenewEvery, w.holder, max(1, w.count), w.renews)
	}
	if w.ttl == 0 && got.TTL != locksteward.NoExpiry || w.ttl > 0 && (got.TTL <= 0 || got.TTL > w.ttl) {
		t.Errorf("%q: TTL %s, want %s at most", w.key, got.TTL, w.ttl)
	}
	return got
}

// release asks the releaser, as an approved request does, to free the lock as
// it stands now.
func (l lab) release(t *testing.T, key string) source.Outcome {
	t.Helper()
	lock, ok := l.see(t, key)
	if !ok {
		t.Fatalf("the scanner does not see %q", key)
	}
	executor, err := releaser.New(releaser.Config{Connect: l.connect(), Digest: l.digest})
	must(t, err)
	result, err := executor.Release(t.Context(), requestOf(lock))
	must(t, err)
	return result
}

// free releases the lock, again if its holder renewed it between look and
// release, and returns when that was done.
func (l lab) free(t *testing.T, key string) time.Time {
	t.Helper()
	for range 5 {
		switch result := l.release(t, key); result.State {
		case locksteward.RequestReleased:
			return time.Now()
		case locksteward.RequestChanged:
			t.Logf("%q: %s %v", key, result.Reason, result.Differences)
		default:
			t.Fatalf("%q: %s, %s, want released", key, result.State, result.Reason)
		}
	}
	t.Fatalf("%q changed between five looks and releases", key)
	return time.Time{}
}

// refused wants a release that touches nothing and says why.
func (l lab) refused(t *testing.T, key, why string) {
	t.Helper()
	before := l.client.Dump(t.Context(), key).Val()
	result := l.release(t, key)
	if result.State != locksteward.RequestFailed || !strings.Contains(result.Reason, why) {
		t.Errorf("%q: %s, %q, want failed with %q", key, result.State, result.Reason, why)
	}
	if before == "" || l.client.Dump(t.Context(), key).Val() != before {
		t.Errorf("%q was touched by a release that was refused", key)
	}
}

// calls is how often the server ran a command.
func (l lab) calls(t *testing.T, command string) int {
	t.Helper()
	m := regexp.MustCompile(`cmdstat_` + regexp.QuoteMeta(command) + `:calls=(\d+)`).FindStringSubmatch(l.client.Info(t.Context(), "commandstats").Val())
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	must(t, err)
	return n
}

// tries waits until start has run command on the server at least once, which is
// a waiter that found the lock held.
func (l lab) tries(t *testing.T, command string, start func()) {
	t.Helper()
	before := l.calls(t, command)
	start()
	testredis.Eventually(t, patience, func() bool { return l.calls(t, command) > before }, "the waiter does not try "+command)
}

// gets waits for what a waiter gets, and says how long after freed that was.
func gets[T any](t *testing.T, freed time.Time, within time.Duration, from <-chan T) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case got := <-from:
		took := time.Since(freed)
		t.Logf("the waiter has the lock %s after the release", took.Round(100*time.Microsecond))
		if took > within {
			t.Errorf("the waiter has the lock %s after the release, want %s at most", took, within)
		}
		return got
	case <-ctx.Done():
		t.Fatal("the waiter does not get the lock")
		panic("not reached")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
