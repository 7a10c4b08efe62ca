package redis_test

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/sourcetest"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source"
	redissource "github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/releaser"
)

const scannerPassword = "the-secret-of-the-scanner"

// redisStore is a Redis deployment as applications and operators use it.
type redisStore struct {
	url    string
	client redis.UniversalClient
	digest locksteward.DigestKey

	mu     sync.Mutex
	tokens map[string]string
}

func newStore(url string, client redis.UniversalClient) *redisStore {
	return &redisStore{url: url, client: client, digest: locksteward.NewDigestKey(), tokens: map[string]string{}}
}

func (s *redisStore) source(t testing.TB, cfg connect.Config) source.Source {
	t.Helper()
	cfg.URL, cfg.ReadTimeout = s.url, 5*time.Second
	conn, err := connect.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	src, err := redissource.New(conn, redissource.Options{Log: zap.NewNop(), Digest: s.digest, Unpaced: true})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func (s *redisStore) Source(t testing.TB) source.Source { return s.source(t, connect.Config{}) }

func (s *redisStore) Releaser(t testing.TB) source.Releaser {
	t.Helper()
	r, err := releaser.New(releaser.Config{Connect: connect.Config{URL: s.url, ReadTimeout: 5 * time.Second}, Digest: s.digest})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s *redisStore) Take(t testing.TB, name string, ttl time.Duration) {
	t.Helper()
	token := uuid()
	if err := s.client.Set(context.WithoutCancel(t.Context()), name, token, ttl).Err(); err != nil {
		t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[name] = token
}

// uuid is a token that is fresh for each acquisition, and looks so.
func uuid() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (s *redisStore) Free(t testing.TB, name string) {
	t.Helper()
	if err := s.client.Del(context.WithoutCancel(t.Context()), name).Err(); err != nil {
		t.Error(err)
	}
}

func (s *redisStore) Held(t testing.TB, name string) bool {
	t.Helper()
	got, err := s.client.Get(t.Context(), name).Result()
	if err != nil && err != redis.Nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return got == s.tokens[name]
}

// standalone is a server that can be restarted and refuses some users.
type standalone struct {
	*redisStore
	server *testredis.Server
}

func (s standalone) Restart(testing.TB) { s.server.Restart() }

func (s standalone) Cut(t testing.TB) {
	t.Helper()
	if err := s.client.Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err(); err != nil {
		t.Fatal(err)
	}
}

func (s standalone) Refused(t testing.TB) (map[string]source.Source, []string) {
	wrong := "not-" + scannerPassword
	return map[string]source.Source{
		"a wrong password": s.source(t, connect.Config{Username: "reader", Password: locksteward.Secret(wrong)}),
		"no right to SCAN": s.source(t, connect.Config{Username: "reader", Password: scannerPassword}),
	}, []string{scannerPassword, wrong}
}

// readerRules are the rights of a scanner but for SCAN.
func readerRules() []string {
	return append([]string{"on", ">" + scannerPassword}, append(redissource.ACL(), "-scan")...)
}

var conformanceRaces = flag.Int("conformance.races", 2000, "how often releases race against new holds on each deployment")

func TestConformanceStandalone(t *testing.T) {
	t.Parallel()
	sourcetest.Conformance(t, *conformanceRaces, func(t testing.TB) sourcetest.Store {
		srv := testredis.Start(t, testredis.WithACL("reader "+strings.Join(readerRules(), " ")))
		return standalone{newStore(srv.URL(), srv.Client(t)), srv}
	})
}

// deployment is several servers that the tests have one after the other, empty.
type deployment struct {
	*redisStore
	// each calls do with a client of each master.
	each func(ctx context.Context, do func(context.Context, *redis.Client) error) error
	// restart replaces a process that serves keys.
	restart func(t testing.TB)
}

func (d deployment) Restart(t testing.TB) {
	t.Helper()
	d.restart(t)
	testredis.Eventually(t, 30*time.Second, func() bool {
		return d.client.Set(t.Context(), "lock:restarted", "probe", 0).Err() == nil
	}, "no write is taken")
}

func (d deployment) Cut(t testing.TB) {
	t.Helper()
	d.command(t, "client", "kill", "type", "normal", "skipme", "yes")
}

func (d deployment) Refused(t testing.TB) (map[string]source.Source, []string) {
	command := []any{"acl", "setuser", "reader"}
	for _, rule := range readerRules() {
		command = append(command, rule)
	}
	d.command(t, command...)
	return standalone{redisStore: d.redisStore}.Refused(t)
}

func (d deployment) command(t testing.TB, command ...any) {
	t.Helper()
	if err := d.each(t.Context(), func(ctx context.Context, master *redis.Client) error { return master.Do(ctx, command...).Err() }); err != nil {
		t.Fatal(err)
	}
}

// open gives the tests the deployment one after the other.
func (d deployment) open() func(testing.TB) sourcetest.Store {
	var turn sync.Mutex
	return func(t testing.TB) sourcetest.Store {
		turn.Lock()
		t.Cleanup(turn.Unlock)
		d.command(t, "flushall")
		d.redisStore = newStore(d.url, d.client)
		return d
	}
}

func TestConformanceSentinel(t *testing.T) {
	t.Parallel()
	sentinel := testredis.StartSentinel(t)
	client := sentinel.Client(t)
	d := deployment{
		redisStore: newStore(sentinel.URL(), client),
		each:       func(ctx context.Context, do func(context.Context, *redis.Client) error) error { return do(ctx, client) },
		restart: func(t testing.TB) {
			old := sentinel.Master()
			sentinel.Failover(t)
			old.Restart()
		},
	}
	sourcetest.Conformance(t, *conformanceRaces, d.open())
}

func TestConformanceCluster(t *testing.T) {
	t.Parallel()
	cluster := testredis.StartCluster(t)
	client := cluster.Client(t)
	d := deployment{
		redisStore: newStore(cluster.URL(), client),
		each:       client.ForEachMaster,
		restart:    func(testing.TB) { cluster.NodeOf("lock:restarted").Restart() },
	}
	sourcetest.Conformance(t, *conformanceRaces, d.open())
}
