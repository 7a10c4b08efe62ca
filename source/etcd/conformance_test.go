package etcdsource_test

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/sourcetest"
	"github.com/locksteward/locksteward/internal/testkit/testetcd"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source"
	etcdsource "github.com/locksteward/locksteward/source/etcd"
)

var conformanceRaces = flag.Int("conformance.races", 2000, "how often releases race against new holds")

// etcdStore is an etcd as applications and operators use it.
type etcdStore struct {
	server *testetcd.Server
	client *clientv3.Client
	proxy  *testredis.Proxy // before the source
	digest locksteward.DigestKey

	mu    sync.Mutex
	took  map[string]hold // by name
	takes int
}

// hold is what Take gave last.
type hold struct {
	key    string
	create int64
}

func newStore(t testing.TB) *etcdStore {
	t.Helper()
	server := testetcd.Start(t)
	return &etcdStore{
		server: server, client: server.Client(t), proxy: testredis.NewProxy(t, server.Addrs()[0]),
		digest: locksteward.NewDigestKey(), took: map[string]hold{},
	}
}

// open returns a source that ends with the test.
func open(t testing.TB, login source.Login, opts etcdsource.Options) *etcdsource.Source {
	t.Helper()
	opts.PerSecond = -1
	s, err := etcdsource.Open(login, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (s *etcdStore) Source(t testing.TB) source.Source {
	t.Helper()
	return open(t, source.Login{URL: "etcd://" + s.proxy.Addr() + "/"}, etcdsource.Options{Digest: s.digest})
}

func (s *etcdStore) Releaser(t testing.TB) source.Releaser {
	t.Helper()
	r, err := etcdsource.OpenReleaser(source.Login{URL: s.server.URL()}, etcdsource.Options{Digest: s.digest})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s *etcdStore) Take(t testing.TB, name string, ttl time.Duration) {
	t.Helper()
	s.Free(t, name)
	ctx, key := context.WithoutCancel(t.Context()), name
	var opts []clientv3.OpOption
	if ttl > 0 {
		lease, err := s.client.Grant(ctx, int64(ttl/time.Second))
		if err != nil {
			t.Error(err)
			return
		}
		key = fmt.Sprintf("%s/%x", name, lease.ID)
		opts = append(opts, clientv3.WithLease(lease.ID))
	}
	put, err := s.client.Put(ctx, key, "", opts...)
	if err != nil {
		t.Error(err)
		return
	}
	s.mu.Lock()
	s.took[name] = hold{key, put.Header.Revision}
	s.takes++
	old := s.takes%500 == 0
	s.mu.Unlock()
	if old { // as an etcd in use does: else it goes through all keys that ever were below a name
		if _, err := s.client.Compact(ctx, put.Header.Revision-100); err != nil {
			t.Error(err)
		}
	}
}

func (s *etcdStore) Free(t testing.TB, name string) {
	t.Helper()
	_, err := s.client.Txn(context.WithoutCancel(t.Context())).Then(clientv3.OpDelete(name), clientv3.OpDelete(name+"/", clientv3.WithPrefix())).Commit()
	if err != nil {
		t.Error(err)
	}
}

func (s *etcdStore) Held(t testing.TB, name string) bool {
	t.Helper()
	s.mu.Lock()
	want := s.took[name]
	s.mu.Unlock()
	got, err := s.client.Get(t.Context(), want.key)
	if err != nil {
		t.Fatal(err)
	}
	return len(got.Kvs) == 1 && got.Kvs[0].CreateRevision == want.create
}

func (s *etcdStore) Restart(testing.TB) { s.server.Restart() }

func (s *etcdStore) Cut(testing.TB) {
	s.proxy.Cut()
	s.proxy.Heal()
}

// addUser makes a user without a role.
func addUser(t testing.TB, root *clientv3.Client, name, password string) {
	t.Helper()
	if _, err := root.UserAdd(t.Context(), name, password); err != nil {
		t.Fatal(err)
	}
}

func password(text string) func() (locksteward.Secret, error) {
	return func() (locksteward.Secret, error) { return locksteward.Secret(text), nil }
}

func (s *etcdStore) Refused(t testing.TB) (map[string]source.Source, []string) {
	const right, wrong = "the-secret-of-the-scanner", "another-secret"
	addUser(t, s.server.EnableAuth(t), "reader", right)
	as := func(user, secret string) source.Source {
		return open(t, source.Login{URL: s.server.URL(), Username: user, Password: password(secret)}, etcdsource.Options{})
	}
	return map[string]source.Source{
		"a wrong password":   as("reader", wrong),
		"no right to read":   as("reader", right),
		"nobody":             as("", ""),
		"a user without one": as("reader", ""),
		"a user unknown":     as("nobody", right),
	}, []string{right, wrong}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	sourcetest.Conformance(t, *conformanceRaces, func(t testing.TB) sourcetest.Store { return newStore(t) })
}
