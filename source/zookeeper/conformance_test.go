package zksource_test

import (
	"errors"
	"flag"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/sourcetest"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/testkit/testzk"
	"github.com/locksteward/locksteward/source"
	zksource "github.com/locksteward/locksteward/source/zookeeper"
)

const readerPassword = "the-secret-of-the-reader"

var anybody = zk.WorldACL(zk.PermAll)

func password(p string) func() (locksteward.Secret, error) {
	return func() (locksteward.Secret, error) { return locksteward.Secret(p), nil }
}

// open returns a source that is closed at the end of the test.
func open(t testing.TB, login source.Login, opts zksource.Options) *zksource.Source {
	t.Helper()
	src, err := zksource.Open(login, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(src.Close)
	return src
}

// zkStore is a directory of a server as applications and operators use it. The source reaches
// the server through a proxy.
type zkStore struct {
	server *testzk.Server
	proxy  *testredis.Proxy
	client *zk.Conn
	root   string
	digest locksteward.DigestKey

	mu    sync.Mutex
	nodes map[string]string // the last hold's, by lock
}

// newStore has locks of a session that lasts session without its client.
func newStore(t testing.TB, server *testzk.Server, session time.Duration) *zkStore {
	t.Helper()
	return &zkStore{
		server: server, proxy: testredis.NewProxy(t, server.Addr()), client: server.Client(t, session), root: server.Directory(t),
		digest: locksteward.NewDigestKey(), nodes: map[string]string{},
	}
}

func (s *zkStore) url() string { return "zookeeper://" + s.proxy.Addr() + s.root }

func (*zkStore) Prefix() string { return "/" }

func (s *zkStore) Source(t testing.TB) source.Source {
	t.Helper()
	return open(t, source.Login{URL: s.url()}, zksource.Options{Digest: s.digest})
}

func (s *zkStore) Releaser(t testing.TB) source.Releaser {
	t.Helper()
	r, err := zksource.OpenReleaser(source.Login{URL: s.url()}, zksource.ReleaserOptions{Digest: s.digest, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// retry repeats what a server that is being restarted, or a cut connection, did not answer.
func retry(t testing.TB, do func() error) {
	t.Helper()
	testredis.Eventually(t, 30*time.Second, func() bool {
		err := do()
		if err != nil && !errors.Is(err, zk.ErrConnectionClosed) && !errors.Is(err, zk.ErrNoServer) && !errors.Is(err, zk.ErrSessionExpired) {
			t.Errorf("%v", err)
			return true
		}
		return err == nil
	}, "the server takes nothing")
}

func (s *zkStore) Take(t testing.TB, name string, ttl time.Duration) {
	t.Helper()
	s.Free(t, name)
	flags := int32(zk.FlagEphemeralSequential)
	if ttl == 0 {
		flags = zk.FlagSequence
	}
	retry(t, func() error {
		if _, err := s.client.Create(s.root+name, nil, zk.FlagPersistent, anybody); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
		path, err := s.client.Create(s.root+name+"/_c_"+uuid()+"-lock-", []byte("192.0.2.1"), flags, anybody)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.nodes[name] = strings.TrimPrefix(path, s.root+name+"/")
		return err
	})
}

func (s *zkStore) Free(t testing.TB, name string) {
	t.Helper()
	retry(t, func() error {
		children, _, err := s.client.Children(s.root + name)
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		for _, c := range children {
			if err := s.client.Delete(s.root+name+"/"+c, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
				return err
			}
		}
		return err
	})
}

func (s *zkStore) Held(t testing.TB, name string) bool {
	t.Helper()
	children, _, err := s.client.Children(s.root + name)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(children, s.nodes[name])
}

func (s *zkStore) Cut(testing.TB) {
	s.proxy.Cut()
	s.proxy.Heal()
}

func (s *zkStore) Refused(t testing.TB) (map[string]source.Source, []string) {
	t.Helper()
	if _, err := s.client.SetACL(s.root, zk.DigestACL(zk.PermRead, "reader", readerPassword), -1); err != nil {
		t.Fatal(err)
	}
	wrong := "not-" + readerPassword
	return map[string]source.Source{
		"a wrong password": open(t, source.Login{URL: s.url(), Username: "reader", Password: password(wrong)}, zksource.Options{Digest: s.digest}),
		"nobody":           open(t, source.Login{URL: s.url()}, zksource.Options{Digest: s.digest}),
	}, []string{readerPassword, wrong}
}

// restarted is a store with a server of its own.
type restarted struct{ *zkStore }

func (s restarted) Restart(testing.TB) { s.server.Restart() }

var conformanceRaces = flag.Int("conformance.races", 2000, "how often releases race against new holds")

func TestConformance(t *testing.T) {
	t.Parallel()
	sourcetest.Conformance(t, *conformanceRaces, func(t testing.TB) sourcetest.Store {
		if strings.Contains(t.Name(), "restart") {
			// A server that starts may never answer a client, which waits for seven times its session.
			return restarted{newStore(t, testzk.Start(t, testzk.Standalone), 3*time.Second)}
		}
		return newStore(t, testzk.Shared(t), time.Minute)
	})
}
