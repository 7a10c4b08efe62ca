package dashboards_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/agent"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testcert"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/users"
	"github.com/locksteward/locksteward/lock"
)

// class is the one that the class's dashboard shows.
const class = "orders"

const within = 30 * time.Second

// scene is an agent on a server whose clients do all that can be measured.
type scene struct {
	t       *testing.T
	rdb     *redis.Client
	metrics string // host:port
	console string
	roots   *x509.CertPool // of the console's certificate
	tokens  map[string]locksteward.Secret
	dir     string
	traced  sync.Map // the ids of traces in which locks are taken
}

const settings = `
targets: [{name: main, url: '%s', schedule: '@every 1s', pace: {idle: 50%%, busy: 50%%}, release_credentials: {}}]
classes:
  - {class: orders, match: ["lock:order:*"], team: checkout, release: approve, expect: 2s}
  - {class: jobs, match: ["lock:job:*"], team: batch}
  - {class: invoices, match: ["lock:invoice:*"], team: billing}
alert:
  console_url: https://locks.example
  heartbeat: {every: 2s, webhook: {url: '%s', allow_private: true}}
  receivers:
    - {name: ops, kind: webhook, url: '%s', allow_private: true}
    - {name: pager, kind: webhook, url: 'http://127.0.0.1:1/', allow_private: true}
targets_from: {files: [more.yaml]}
metrics: {listen: '127.0.0.1:0', top_locks: 5}
console: {listen: '127.0.0.1:0', users_file: '%s', tls_cert_file: '%s', tls_key_file: '%s'}
store: {dsn: 'sqlite:%s'}
`

// newScene runs everything until the test ends.
func newScene(t *testing.T) *scene {
	t.Helper()
	srv := testredis.Start(t)
	s := &scene{t: t, rdb: srv.Client(t), dir: t.TempDir(), tokens: map[string]locksteward.Secret{}}
	if err := s.rdb.ConfigSet(t.Context(), "maxmemory", "100mb").Err(); err != nil {
		t.Fatal(err)
	}
	// Sweeps do without it, and say so.
	if err := s.rdb.Do(t.Context(), "ACL", "SETUSER", "default", "-pexpiretime").Err(); err != nil {
		t.Fatal(err)
	}
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Errorf("read a message: %v", err)
		}
	}))
	t.Cleanup(sink.Close)
	people := filepath.Join(s.dir, "users.yaml")
	for name, role := range map[string]users.Role{"ana": users.RoleRequester, "bo": users.RoleApprover} {
		token, err := users.Add(people, name, []users.Role{role})
		if err != nil {
			t.Fatal(err)
		}
		s.tokens[name] = token
	}
	ca := testcert.NewCA(t, "console")
	_, cert, key := testcert.Files(t, s.dir, "console", ca.PEM, ca.Issue(t, testcert.Leaf{Name: "console"}))
	s.roots = x509.NewCertPool()
	s.roots.AppendCertsFromPEM(ca.PEM)
	testcert.Put(t, filepath.Join(s.dir, "more.yaml"), []byte("targets: []\n"))
	s.run(fmt.Sprintf(settings, srv.URL(), sink.URL, sink.URL, people, cert, key, filepath.Join(s.dir, "store.db")))
	testcert.Put(t, key, []byte("half a key")) // refused, and what was read before stays in use
	s.act()
	return s
}

// run runs an agent.
func (s *scene) run(text string) {
	s.t.Helper()
	file := filepath.Join(s.dir, "locksteward.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	a := testagent.Run(s.t, file, agent.Options{Build: exporter.BuildInfo{Version: "0.1.0"}})
	s.metrics, s.console = a.MetricsAddr().String(), a.ConsoleURL()
}

// act lets the applications work until the test ends.
func (s *scene) act() {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	s.t.Cleanup(func() { cancel(); wg.Wait() })
	play := func(act func(ctx context.Context, c *lock.Client)) {
		c, err := lock.New(s.rdb, lock.Options{App: "shop"})
		if err != nil {
			s.t.Fatal(err)
		}
		wg.Go(func() {
			act(ctx, c)
			if err := c.Close(); err != nil && ctx.Err() == nil {
				s.t.Errorf("close a client: %v", err)
			}
		})
	}
	for range 3 {
		play(s.takeTurns)
	}
	play(s.tryAgainAndAgain)
	play(s.loseLocks)
	play(s.hang)
	wg.Go(func() { s.useAnotherLibrary(ctx) })
	wg.Go(func() { s.release(ctx) })
}

// takeTurns waits for a lock, works and gives it back.
func (s *scene) takeTurns(ctx context.Context, c *lock.Client) {
	for ctx.Err() == nil {
		lease := lock.Lease{TTL: time.Second, Class: class, Purpose: "reprice", Trace: s.trace()}
		h, err := c.Acquire(ctx, "lock:order:cart", lease)
		if err != nil {
			pause(ctx, 50*time.Millisecond)
			continue
		}
		pause(h.Context(), 100*time.Millisecond+rand.N(1200*time.Millisecond))
		s.giveBack(h)
	}
}

func (s *scene) giveBack(h *lock.Handle) {
	err := h.Release(context.Background())
	if err != nil && !errors.Is(err, lock.ErrLost) {
		s.t.Logf("release: %v", err)
	}
}

// tryAgainAndAgain does not wait.
func (s *scene) tryAgainAndAgain(ctx context.Context, c *lock.Client) {
	for pause(ctx, 200*time.Millisecond) {
		h, err := c.TryAcquire(ctx, "lock:order:cart", lock.Lease{TTL: time.Second, Class: class})
		if err == nil {
			s.giveBack(h)
		}
	}
}

// loseLocks has its locks deleted by somebody else.
func (s *scene) loseLocks(ctx context.Context, c *lock.Client) {
	for n := 0; pause(ctx, 2*time.Second); n++ {
		key := fmt.Sprintf("lock:order:%d", n)
		h, err := c.Acquire(ctx, key, lock.Lease{TTL: time.Second, Class: class})
		if err != nil {
			continue
		}
		pause(ctx, 1500*time.Millisecond) // a sweep sees it
		if err := s.rdb.Del(ctx, key).Err(); err != nil && ctx.Err() == nil {
			s.t.Errorf("delete a lock: %v", err)
		}
		<-h.Context().Done()
		s.giveBack(h)
	}
}

// hang holds a lock far longer than expected.
func (s *scene) hang(ctx context.Context, c *lock.Client) {
	h, err := c.Acquire(ctx, "lock:order:report", lock.Lease{TTL: 5 * time.Second, Expect: time.Second, Class: class, Purpose: "nightly report"})
	if err != nil {
		return
	}
	<-ctx.Done()
	s.giveBack(h)
}

// useAnotherLibrary takes locks by hand: some run out, two have no end.
func (s *scene) useAnotherLibrary(ctx context.Context) {
	set := func(key string, ttl time.Duration) {
		token := fmt.Sprintf("5f2b8c1e-9d1a-4b6e-8f0a-%012x", rand.Uint64N(1<<48))
		if err := s.rdb.SetNX(ctx, key, token, ttl).Err(); err != nil && ctx.Err() == nil {
			s.t.Errorf("take a lock: %v", err)
		}
	}
	set("lock:order:crashed", 0)
	set("lock:order:freed", 0)
	for n := 0; pause(ctx, time.Second); n++ {
		set(fmt.Sprintf("lock:invoice:%d", n), 1500*time.Millisecond+rand.N(20*time.Second))
		set(fmt.Sprintf("lock:order:by-hand:%d", n), 1300*time.Millisecond+rand.N(3*time.Second))
		if n%10 == 0 {
			set(fmt.Sprintf("lock:job:%d", n), 20*time.Second)
		}
	}
}

// release frees a lock, by two people.
func (s *scene) release(ctx context.Context) {
	if err := s.freeOne(ctx); err != nil && ctx.Err() == nil {
		s.t.Errorf("release: %v", err)
	}
}

func (s *scene) freeOne(ctx context.Context) error {
	client := func(name string) (*apiclient.Client, error) {
		return apiclient.New(s.console, s.tokens[name], &http.Client{
			Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: s.roots, MinVersion: tls.VersionTLS12}}, Timeout: within,
		})
	}
	ana, err := client("ana")
	if err != nil {
		return err
	}
	bo, err := client("bo")
	if err != nil {
		return err
	}
	for end := time.Now().Add(within); ; {
		r, err := ana.CreateRequest(ctx, api.CreateRequest{Target: "main", Key: api.NewKey("lock:order:freed"), Reason: "its process crashed"})
		if err == nil {
			_, err = bo.Approve(ctx, r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash})
			return err
		}
		if time.Now().After(end) || !pause(ctx, 300*time.Millisecond) {
			return err // the lock is not seen yet
		}
	}
}

// trace is a traceparent, whose trace is remembered.
func (s *scene) trace() string {
	id := fmt.Sprintf("%016x%016x", rand.Uint64(), 1|rand.Uint64())
	s.traced.Store(id, nil)
	return fmt.Sprintf("00-%s-%016x-01", id, 1|rand.Uint64())
}

// pause waits, and says whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
