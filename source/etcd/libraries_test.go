package etcdsource_test

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap/zaptest"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/testkit/testtooz"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
)

const soon = 30 * time.Second

// scan returns a scanner over src for one class with these patterns.
func scan(t testing.TB, src source.Source, patterns ...string) *scanner.Scanner {
	t.Helper()
	classes, err := class.NewSet([]class.Class{{Name: "all", Match: patterns, Expect: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := scanner.New(zaptest.NewLogger(t), locksteward.Target{Name: "t"}, src, classes, scanner.Config{NoThrottle: true, Timeout: soon}, scanner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// locks makes a sweep that must be complete.
func locks(t testing.TB, s *scanner.Scanner) map[string]locksteward.Lock {
	t.Helper()
	sweep, err := s.Sweep(t.Context())
	if err != nil || !sweep.Complete() {
		t.Fatalf("complete %v: %+v, %v", sweep.Complete(), sweep.Masters, err)
	}
	out := map[string]locksteward.Lock{}
	for _, l := range sweep.Locks {
		out[l.Key] = l
	}
	return out
}

func (s *etcdStore) session(t testing.TB, ttl int) *concurrency.Session {
	t.Helper()
	out, err := concurrency.NewSession(s.client, concurrency.WithTTL(ttl))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() }) // the server may be gone
	return out
}

// put writes a key with a lease of ttl seconds, 0 for none, as a client does that wants
// the key for itself.
func (s *etcdStore) put(t testing.TB, key, value string, ttl int64) {
	t.Helper()
	var opts []clientv3.OpOption
	if ttl > 0 {
		lease, err := s.client.Grant(t.Context(), ttl)
		if err != nil {
			t.Fatal(err)
		}
		opts = append(opts, clientv3.WithLease(lease.ID))
	}
	got, err := s.client.Txn(t.Context()).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(clientv3.OpPut(key, value, opts...)).Commit()
	if err != nil || !got.Succeeded {
		t.Fatalf("put %q: %+v, %v", key, got, err)
	}
}

// The mutex of clientv3: who holds it, who waits, and who has it next.
func TestMutex(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	s := scan(t, store.Source(t), "/app/*")
	var mutexes []*concurrency.Mutex
	for range 3 {
		mutexes = append(mutexes, concurrency.NewMutex(store.session(t, 60), "/app/report"))
	}
	if err := mutexes[0].Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 2)
	for i, m := range mutexes[1:] {
		go func() { waits <- m.Lock(t.Context()) }()
		testredis.Eventually(t, soon, func() bool { return locks(t, s)["/app/report"].Waiters == i+1 }, "it does not wait")
	}
	sweep, err := s.Sweep(t.Context())
	if err != nil || len(sweep.Locks) != 1 || len(sweep.Waiters) != 2 {
		t.Fatalf("%d locks, waiters %+v, %v", len(sweep.Locks), sweep.Waiters, err)
	}
	first, w := sweep.Locks[0], sweep.Waiters[0]
	if first.Library != "etcd-mutex" || first.Type != "queue" || first.Identity != locksteward.IdentityStrong || first.Fence <= 0 ||
		first.Lifetime != locksteward.LifetimeLease || first.TTL <= 50*time.Second || first.TTL > time.Minute {
		t.Errorf("%+v", first)
	}
	if w.Key != "/app/report" || w.Class != "all" || !strings.HasSuffix(mutexes[1].Key(), "/"+w.ID) || w.Since.IsZero() || !w.Until.After(w.Since) || w.Since.After(sweep.Waiters[1].Since) {
		t.Errorf("the first who waits: %+v", w)
	}
	if err := mutexes[0].Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; err != nil {
		t.Fatal(err)
	}
	again, err := s.Sweep(t.Context())
	if err != nil || len(again.Locks) != 1 || len(again.Endings) != 1 || len(again.Waiters) != 1 {
		t.Fatalf("after a hand-over: %d locks, %+v, %v", len(again.Locks), again.Endings, err)
	}
	if next := again.Locks[0]; next.TokenDigest == first.TokenDigest || next.Fence <= first.Fence || !again.Waiters[0].Since.Equal(sweep.Waiters[1].Since) {
		t.Errorf("the next hold: %+v, waits %+v", next, again.Waiters)
	}
	_ = mutexes[1].Unlock(t.Context())
	if err := <-waits; err != nil {
		t.Fatal(err)
	}
}

// A leader that proclaims another value, and a Vault that writes its value once it holds
// the lock, are the same hold.
func TestElectionAndVault(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	s := scan(t, store.Source(t), "/elect/*", "/vault/core/*")
	election := concurrency.NewElection(store.session(t, 60), "/elect/cron")
	if err := election.Campaign(t.Context(), "web-1.example"); err != nil {
		t.Fatal(err)
	}
	session := store.session(t, 15)
	vault := concurrency.NewMutex(session, "/vault/core/lock")
	if err := vault.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := locks(t, s)
	if err := election.Proclaim(t.Context(), "web-1.example ready"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.client.Put(t.Context(), vault.Key(), "5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17", clientv3.WithLease(session.Lease())); err != nil {
		t.Fatal(err)
	}
	sweep, err := s.Sweep(t.Context())
	if err != nil || len(sweep.Endings) != 0 || len(sweep.Locks) != 2 {
		t.Fatalf("%+v, %v", sweep, err)
	}
	if l := before["/elect/cron"]; l.Library != "etcd-election" || l.Holder.Host != "web-1.example" || l.TokenDigest != sweep.Locks[0].TokenDigest {
		t.Errorf("%+v", l)
	}
	if l := sweep.Locks[1]; l.Library != "vault" || l.Holder.Session == "" || l.TokenDigest != before["/vault/core/lock"].TokenDigest {
		t.Errorf("%+v", l)
	}
}

// What etcdctl and python-etcd3 write is recognised.
func TestLocksOfOtherPrograms(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	s := scan(t, store.Source(t), "deploy*", "/locks/*")
	run := func(name string, args ...string) {
		t.Helper()
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Env = []string{"ETCDCTL_API=3", "PATH=/usr/bin:/bin:/usr/local/bin"}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Skipf("SKIPPED: %v", err)
		}
		t.Cleanup(func() {
			stop()
			_ = cmd.Wait() // it was killed
		})
		if !bufio.NewScanner(out).Scan() {
			t.Fatalf("%s takes no lock", name)
		}
	}
	run("etcdctl", "--endpoints", store.server.Addrs()[0], "lock", "deploy")
	host, port, _ := strings.Cut(store.server.Addrs()[0], ":")
	run("/usr/bin/python3", "-c", fmt.Sprintf(`
import etcd3, time
lock = etcd3.client(host=%q, port=%s).lock("nightly", ttl=60)
print(lock.acquire(), flush=True)
time.sleep(600)`, host, port))
	seen := locks(t, s)
	if l := seen["deploy"]; l.Library != "etcd-mutex" || l.TTL > 10*time.Second || l.Lifetime != locksteward.LifetimeLease {
		t.Errorf("etcdctl lock: %+v", l)
	}
	l := seen["/locks/nightly"]
	if l.Library != "python-etcd3" || !l.Asked || time.Since(l.Acquired).Abs() > time.Minute || l.TTL > time.Minute || l.Type != "key" {
		t.Errorf("python-etcd3: %+v", l)
	}
}

// The driver etcd3 of tooz locks with python-etcd3. The other one, etcd3+http, does not start with
// the etcd3gw of Debian 12; what it writes is in TestLocksByTheirStatements.
func TestTooz(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	s := scan(t, store.Source(t), "/locks/*")
	release := testtooz.Hold(t, "etcd3://"+store.server.Addrs()[0])
	l := locks(t, s)["/locks/"+testtooz.Lock]
	if l.Library != "python-etcd3" || l.Lifetime != locksteward.LifetimeLease || l.TTL <= 0 || l.Identity != locksteward.IdentityStrong {
		t.Errorf("seen %+v", l)
	}
	release()
	if left := locks(t, s); len(left) != 0 {
		t.Errorf("left %+v", left)
	}
}

// Locks of clients that are not here, by what their sources write.
func TestLocksByTheirStatements(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	s := scan(t, store.Source(t), "*lock*", "/service/*") // all there is
	store.put(t, "node-lock", "", 30)
	store.put(t, "/locks/gw", "c232ab00-9414-11ec-b3c8-9f68deced846", 60) // RFC 9562, appendix A.1
	store.put(t, "/tooz/locksnightly", "\xf4\x7a\xc1\x0b\x58\xcc\x43\x72\xa5\x67\x0e\x02\xb2\xc3\xd4\x79", 30)
	store.put(t, "/service/batman/leader", "postgresql0", 30)
	store.put(t, "shedlock:default:report", "ADDED:2026-11-21T03:00:00.123Z@batch-7", 600)
	store.put(t, "odd-lock", `{"some": "thing"}`, 0)
	store.put(t, "locksteward/releases/r-1", "released", 60) // ours
	seen := locks(t, s)
	for name, want := range map[string]struct {
		library  string
		holder   locksteward.Holder
		lifetime locksteward.Lifetime
	}{
		"node-lock":               {"node-etcd3", locksteward.Holder{}, locksteward.LifetimeLease},
		"/locks/gw":               {"etcd3gw", locksteward.Holder{}, locksteward.LifetimeLease},
		"/tooz/locksnightly":      {"tooz", locksteward.Holder{}, locksteward.LifetimeLease},
		"/service/batman/leader":  {"patroni", locksteward.Holder{Host: "postgresql0"}, locksteward.LifetimeLease},
		"shedlock:default:report": {"shedlock", locksteward.Holder{Host: "batch-7"}, locksteward.LifetimeLease},
		"odd-lock":                {"unknown", locksteward.Holder{}, locksteward.LifetimePersistent},
	} {
		l := seen[name]
		if leased := strings.HasPrefix(l.Holder.Session, "lease "); leased != (want.lifetime == locksteward.LifetimeLease) {
			t.Errorf("%s: session %q", name, l.Holder.Session)
		}
		if l.Holder.Session = ""; l.Library != want.library || l.Holder != want.holder || l.Lifetime != want.lifetime {
			t.Errorf("%s: %+v", name, l)
		}
	}
	if at := seen["/locks/gw"].Acquired; !at.Equal(time.Date(2022, 2, 22, 19, 22, 22, 0, time.UTC)) {
		t.Errorf("the UUID is of %s", at)
	}
	if at := seen["shedlock:default:report"].Acquired; !at.Equal(time.Date(2026, 11, 21, 3, 0, 0, 123e6, time.UTC)) {
		t.Errorf("ShedLock's is of %s", at)
	}
	if len(seen) != 6 {
		t.Errorf("%d locks: %v", len(seen), seen)
	}
	if degraded := store.Source(t).Stats().Degraded; len(degraded) != 1 {
		t.Errorf("without patterns: %q", degraded)
	}
}

// A name may be of any bytes, and so may a prefix.
func TestNamesOfAnyBytes(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	s := scan(t, store.Source(t), "lock:*", "\xff\xff*", "\x00\\**")
	names := []string{"lock:\x00\n\xff", "lock:/", "lock:a", "lock:a/b", "\xff\xff", "\xff\xff\xff", "\x00*", "lock:日本", "lock:" + strings.Repeat("x", 5000)}
	for i, name := range names {
		store.Take(t, name, time.Duration(i%2)*time.Hour)
	}
	seen := locks(t, s)
	for _, name := range names {
		l, err := s.Table().Refresh(t.Context(), name)
		if seen[name].Key != name || err != nil || l.TokenDigest != seen[name].TokenDigest {
			t.Errorf("%q: %+v, read %v", name, seen[name].Key, err)
		}
	}
	if len(seen) != len(names) {
		t.Errorf("%d locks, want %d", len(seen), len(names))
	}
	if _, err := s.Table().Refresh(t.Context(), ""); err == nil {
		t.Error("there is a lock without a name")
	}
}
