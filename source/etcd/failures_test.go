package etcdsource_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testcert"
	"github.com/locksteward/locksteward/internal/testkit/testetcd"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
	etcdsource "github.com/locksteward/locksteward/source/etcd"
)

// A hung process whose client library keeps the lease alive is a zombie, and a key
// without a lease has no TTL.
func TestHungHolderAndKeyWithoutLease(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	s := scan(t, store.Source(t), "/app/*")
	session := store.session(t, 2) // its goroutine renews, whatever the application does
	if _, err := store.client.Put(t.Context(), fmt.Sprintf("/app/hung/%x", session.Lease()), "", clientv3.WithLease(session.Lease())); err != nil {
		t.Fatal(err)
	}
	store.put(t, "/app/no-lease", "", 0)
	classes, err := class.NewSet([]class.Class{{Name: "all", Match: []string{"/app/*"}, Expect: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := rules.New(rules.Config{}, classes, func(string) locksteward.LibraryFacts { return locksteward.LibraryFacts{} })
	if err != nil {
		t.Fatal(err)
	}
	fired := map[string]string{}
	tick := time.NewTicker(1600 * time.Millisecond) // renewals show in whole seconds
	defer tick.Stop()
	for range 10 {
		sweep, err := s.Sweep(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, tr := range engine.Evaluate(sweep) {
			if tr.Finding.Status == locksteward.StatusFiring {
				fired[tr.Finding.Rule] = tr.Finding.Key
			}
		}
		if len(fired) > 2 {
			break
		}
		<-tick.C
	}
	if fired["renewal/zombie"] != "/app/hung" || fired["ttl/none"] != "/app/no-lease" {
		t.Errorf("fired %v", fired)
	}
}

// watch runs a watch of s and returns what tells which locks it passed, and that ended.
func watch(t *testing.T, s *scanner.Scanner) (seen func(name string) bool, ended func(name string) bool) {
	t.Helper()
	var mu sync.Mutex
	locks, endings := map[string]bool{}, map[string]bool{}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- s.Watch(ctx, func(_ context.Context, u locksteward.Update) {
			mu.Lock()
			defer mu.Unlock()
			for i := range u.Locks {
				locks[u.Locks[i].Key] = true
			}
			for i := range u.Endings {
				endings[u.Endings[i].Lock.Key] = true
			}
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("watch: %v", err)
		}
	})
	s.AwaitWatch(ctx)
	in := func(set map[string]bool) func(string) bool {
		return func(name string) bool {
			mu.Lock()
			defer mu.Unlock()
			return set[name]
		}
	}
	return in(locks), in(endings)
}

// Without a leader nothing is read, nothing ends, and the reason is plain; one sweep
// after it is back all is as before, and the watch goes on.
func TestWithoutLeader(t *testing.T) {
	t.Parallel()
	// A member that stands still for a moment must not cost the leader its place: a write under way would fail.
	server := testetcd.StartWith(t, testetcd.Options{Members: 3, Args: []string{"--heartbeat-interval", "100", "--election-timeout", "1000"}})
	store := &etcdStore{server: server, client: server.Client(t), took: map[string]hold{}}
	s := scan(t, open(t, source.Login{URL: server.URL()}, etcdsource.Options{}), "lock:*")
	store.Take(t, "lock:a", time.Hour)
	locks(t, s)
	seen, _ := watch(t, s)
	server.Kill(1, 2)
	sweep, err := s.Sweep(t.Context())
	if reason := s.State().Reason; err == nil || sweep.Complete() || len(sweep.Endings) > 0 || !strings.Contains(reason, "leader") {
		t.Errorf("complete %v, %d ended, reason %q, %v", sweep.Complete(), len(sweep.Endings), reason, err)
	}
	testredis.Eventually(t, soon, func() bool { return s.WatchState().Mode == source.WatchSweep && s.WatchState().Reason != "" }, "it says it watches")
	server.Restart(1, 2)
	testredis.Eventually(t, soon, func() bool {
		sweep, _ := s.Sweep(t.Context())
		return sweep.Complete() && len(sweep.Locks) == 1 && sweep.Locks[0].History.Looks > 1 && len(sweep.Endings) == 0
	}, "it is not swept again")
	testredis.Eventually(t, soon, func() bool { return s.WatchState().Mode == source.WatchTracking }, "it is not watched again")
	store.Take(t, "lock:b", time.Hour)
	testredis.Eventually(t, soon, func() bool { return seen("lock:b") }, "a lock is not passed")
}

// A server that hangs, is killed, or is cut off: nothing ends, and the watch tells what
// happened meanwhile.
func TestServerAwayUnderWatch(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	s := scan(t, store.Source(t), "lock:*")
	for _, name := range []string{"lock:a", "lock:b", "lock:c"} {
		store.Take(t, name, time.Hour)
	}
	locks(t, s)
	seen, ended := watch(t, s)
	away := func(what, freed, taken string, begin, end func()) {
		t.Helper()
		begin()
		sweep, err := s.Sweep(t.Context())
		if err == nil || len(sweep.Endings) > 0 || s.State().Reason == "" {
			t.Errorf("%s: %d ended, reason %q, %v", what, len(sweep.Endings), s.State().Reason, err)
		}
		end()
		store.Free(t, freed)
		store.Take(t, taken, time.Hour)
		testredis.Eventually(t, soon, func() bool { return ended(freed) && seen(taken) }, what+": what happened is not passed")
		testredis.Eventually(t, soon, func() bool {
			sweep, _ := s.Sweep(t.Context())
			return sweep.Complete() && len(sweep.Endings) == 0
		}, what+": it is not swept again")
	}
	away("killed", "lock:a", "lock:d", func() { store.server.Kill() }, func() { store.server.Restart() })
	away("cut off", "lock:b", "lock:e", store.proxy.Cut, store.proxy.Heal)
	away("hung", "lock:c", "lock:f", func() { store.server.Pause() }, func() { store.server.Resume() })
}

// What Rights prints is enough for a sweep, a watch and a release, and no more.
func TestRights(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	classes, err := class.NewSet([]class.Class{{Name: "all", Match: []string{"lock:*", "/it's/*"}}})
	if err != nil {
		t.Fatal(err)
	}
	store.Take(t, "lock:a", time.Hour)
	store.Take(t, "/it's/b", 0)
	root := store.server.EnableAuth(t)
	text := etcdsource.Rights(classes)
	text = strings.NewReplacer("user add locksteward ", "user add locksteward:read-password ", "user add locksteward-release ", "user add locksteward-release:free-password ").Replace(text)
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", text)
	cmd.Env = []string{"ETCDCTL_API=3", "PATH=" + os.Getenv("PATH"), "ETCDCTL_ENDPOINTS=" + store.server.Addrs()[0], "ETCDCTL_USER=root:" + testetcd.RootPassword}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, text)
	}
	reader := source.Login{URL: strings.Replace(store.server.URL(), "://", "://locksteward@", 1), Password: password("read-password")}
	s := scan(t, open(t, reader, etcdsource.Options{Digest: store.digest}), "lock:*", "/it's/*")
	if seen := locks(t, s); len(seen) != 2 || seen["lock:a"].Lifetime != locksteward.LifetimeLease {
		t.Errorf("seen %v", seen)
	}
	seen, _ := watch(t, s)
	if state := s.WatchState(); state.Mode != source.WatchTracking {
		t.Errorf("watched %+v", state)
	}
	asRoot := &etcdStore{server: store.server, client: root, took: map[string]hold{}}
	asRoot.Take(t, "lock:c", time.Hour)
	testredis.Eventually(t, soon, func() bool { return seen("lock:c") }, "a lock is not passed")

	if _, err := s.Table().Refresh(t.Context(), "other"); err == nil || !strings.Contains(err.Error(), "may not be read") {
		t.Errorf("another key: %v", err)
	}
	good := func(checks []source.Check) {
		t.Helper()
		for _, c := range checks {
			if c.Status != source.StatusOK || c.Found == "" {
				t.Errorf("%+v", c)
			}
		}
		if len(checks) < 5 {
			t.Errorf("%d checks", len(checks))
		}
	}
	good(etcdsource.Examine(t.Context(), reader, classes, false))
	freeing := source.Login{URL: store.server.URL(), Username: "locksteward-release", Password: password("free-password")}
	good(etcdsource.Examine(t.Context(), freeing, classes, true))

	// The reader can neither free a lock nor read what is not its own.
	release := func(login source.Login, want locksteward.RequestState) source.Outcome {
		t.Helper()
		r, err := etcdsource.OpenReleaser(login, etcdsource.Options{Digest: store.digest})
		if err != nil {
			t.Fatal(err)
		}
		l, _ := s.Table().Get(0, "lock:a")
		out, err := r.Release(t.Context(), locksteward.Request{ID: "r-" + string(want), Evidence: locksteward.Evidence{
			Key: l.Key, Type: l.Type, Library: l.Library, Identity: l.Identity, TokenDigest: l.TokenDigest, ExpireAt: l.ExpireAt, Count: l.Count,
		}})
		if err != nil || out.State != want {
			t.Errorf("%s: %+v, %v", want, out, err)
		}
		return out
	}
	if out := release(reader, locksteward.RequestFailed); !strings.Contains(out.Reason, "locksteward acl") {
		t.Errorf("reason %q", out.Reason)
	}
	release(freeing, locksteward.RequestReleased)
	out := etcdsource.Examine(t.Context(), reader, classes, true)
	bad := 0
	for _, c := range out {
		if c.Status != source.StatusOK {
			bad++
			if c.Name != "read locksteward/releases/" || !strings.Contains(c.Found, "locksteward acl") {
				t.Errorf("%+v", c)
			}
		}
	}
	if bad != 1 {
		t.Errorf("%+v", out)
	}
}

// Of what may not be read nothing ends, and the rest is read.
func TestRightToOnePrefix(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	store.Take(t, "lock:a", time.Hour)
	store.Take(t, "mutex:b", time.Hour)
	root := store.server.EnableAuth(t)
	addUser(t, root, "half", "half-password")
	grantRead := func(prefix string) {
		t.Helper()
		if _, err := root.RoleGrantPermission(t.Context(), "half", prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermRead)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := root.RoleAdd(t.Context(), "half"); err != nil {
		t.Fatal(err)
	}
	if _, err := root.UserGrantRole(t.Context(), "half", "half"); err != nil {
		t.Fatal(err)
	}
	grantRead("lock:")
	grantRead("mutex:")
	src := open(t, source.Login{URL: store.server.URL(), Username: "half", Password: password("half-password")}, etcdsource.Options{})
	s := scan(t, src, "lock:*", "mutex:*")
	if seen := locks(t, s); len(seen) != 2 {
		t.Fatalf("seen %v", seen)
	}
	if _, err := root.RoleRevokePermission(t.Context(), "half", "mutex:", clientv3.GetPrefixRangeEnd("mutex:")); err != nil {
		t.Fatal(err)
	}
	sweep, err := s.Sweep(t.Context())
	if err == nil || sweep.Complete() || len(sweep.Locks) != 1 || len(sweep.Endings) != 0 || !strings.Contains(s.State().Reason, "grant it a role") {
		t.Errorf("complete %v, %d locks, %d ended, %q, %v", sweep.Complete(), len(sweep.Locks), len(sweep.Endings), s.State().Reason, err)
	}
	grantRead("mutex:")
	if seen := locks(t, s); len(seen) != 2 {
		t.Errorf("seen %v", seen)
	}
}

// A password that changed counts from the next login on.
func TestPasswordChanges(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	root := store.server.EnableAuth(t)
	now := "first-password"
	src := open(t, source.Login{URL: store.server.URL(), Username: "root", Password: func() (locksteward.Secret, error) { return locksteward.Secret(now), nil }}, etcdsource.Options{})
	s := scan(t, src, "lock:*")
	if _, err := s.Sweep(t.Context()); err == nil || !strings.Contains(s.State().Reason, "refused the user or its password") {
		t.Errorf("%q, %v", s.State().Reason, err)
	}
	if _, err := root.UserChangePassword(t.Context(), "root", now); err != nil {
		t.Fatal(err)
	}
	locks(t, s)
}

// More keys than may be read are refused, and end nothing.
func TestTooManyKeys(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	for i := range 30 {
		var ops []clientv3.Op
		for j := range 100 {
			ops = append(ops, clientv3.OpPut(fmt.Sprint("lock:", 100*i+j), strings.Repeat("x", 2000)))
		}
		if _, err := store.client.Txn(t.Context()).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	login := source.Login{URL: store.server.URL()}
	all := scan(t, open(t, login, etcdsource.Options{}), "lock:*")
	if seen := locks(t, all); len(seen) != 3000 {
		t.Errorf("%d locks", len(seen))
	}
	some := scan(t, open(t, login, etcdsource.Options{MaxKeys: 2000}), "lock:*")
	sweep, err := some.Sweep(t.Context())
	if err == nil || sweep.Complete() || len(sweep.Locks) != 2000 || !strings.Contains(some.State().Reason, `more than 2000 keys begin with "lock:"`) {
		t.Errorf("%d locks, %q, %v", len(sweep.Locks), some.State().Reason, err)
	}
}

// An etcd without space can be read, and a release says why it cannot be made.
func TestNoSpace(t *testing.T) {
	t.Parallel()
	server := testetcd.StartWith(t, testetcd.Options{Args: []string{"--quota-backend-bytes", "1000000"}})
	store := &etcdStore{server: server, client: server.Client(t), proxy: testredis.NewProxy(t, server.Addrs()[0]), took: map[string]hold{}}
	store.Take(t, "lock:a", time.Hour)
	req := store.freeze(t, "r-1", "lock:a", nil)
	var err error
	for range 100 {
		if _, err = store.client.Put(t.Context(), "large", strings.Repeat("x", 500_000)); err != nil {
			break
		}
	}
	if err == nil {
		t.Fatal("there is space")
	}
	if seen := locks(t, scan(t, store.Source(t), "lock:*")); len(seen) != 1 {
		t.Errorf("seen %v", seen)
	}
	if out, err := store.Releaser(t).Release(t.Context(), req); err != nil || out.State != locksteward.RequestFailed || !strings.Contains(out.Reason, "out of space") || !store.Held(t, "lock:a") {
		t.Errorf("%+v, %v", out, err)
	}
}

// Encrypted, with a certificate of ours, and what is wrong if that lacks.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca := testcert.NewCA(t, "etcd CA")
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	server, client := ca.Issue(t, testcert.Leaf{Name: "server"}), ca.Issue(t, testcert.Leaf{Name: "client"})
	srv := testetcd.StartWith(t, testetcd.Options{Cert: file("cert", server.Cert), Key: file("key", server.Key), CA: file("ca", ca.PEM)})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM)
	own, err := tls.X509KeyPair(client.Cert, client.Key)
	if err != nil {
		t.Fatal(err)
	}
	good := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}}
	locks(t, scan(t, open(t, source.Login{URL: srv.URL(), TLS: good}, etcdsource.Options{}), "lock:*"))
	for name, bad := range map[string]source.Login{
		"encrypted connection failed": {URL: srv.URL(), TLS: &tls.Config{Certificates: good.Certificates}},
		"certificate of ours":         {URL: srv.URL(), TLS: &tls.Config{RootCAs: roots}},
		"whether it wants etcds://":   {URL: "etcd://" + srv.Addrs()[0]},
		"what listens there does not": {URL: "etcd://" + srv.Addrs()[0]},
		"nobody listens there":        {URL: "etcd://127.0.0.1:1"},
	} {
		s := scan(t, open(t, bad, etcdsource.Options{}), "lock:*")
		if _, err := s.Sweep(t.Context()); err == nil || !strings.Contains(s.State().Reason, name) {
			t.Errorf("%s: %q, %v", name, s.State().Reason, err)
		}
	}
}

func TestBadURLs(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                          "must begin with etcd://",
		"http://h:2379":             "must begin with etcd://",
		"etcd://":                   "without a name",
		"etcd://h1:2379,,h2":        "without a name",
		"etcd://h:2379/app":         "must end after its hosts",
		"etcd://h:2379?x=1":         "must end after its hosts",
		"etcd://user:secret@h:2379": "must not have a password",
	} {
		_, err := etcdsource.Open(source.Login{URL: url}, etcdsource.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
		if _, err := etcdsource.OpenReleaser(source.Login{URL: url}, etcdsource.Options{}); err == nil {
			t.Errorf("%s: a releaser", url)
		}
	}
	for _, url := range []string{"etcd://h", "etcd://h1:2379,h2:2379/", "etcds://[::1]:2379", "etcd://[::1]", "etcd://user@h:1"} {
		s, err := etcdsource.Open(source.Login{URL: url}, etcdsource.Options{})
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		s.Close()
	}
	if _, err := etcdsource.Open(source.Login{URL: "etcd://h", TLS: &tls.Config{}}, etcdsource.Options{}); err == nil {
		t.Error("TLS without etcds://")
	}
}
