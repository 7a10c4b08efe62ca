package zksource_test

import (
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/testkit/testtooz"
	"github.com/locksteward/locksteward/internal/testkit/testzk"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/source"
	zksource "github.com/locksteward/locksteward/source/zookeeper"
)

// A lock of each real library is seen with its session, and ends when it is released.
func TestRealLibraries(t *testing.T) {
	t.Parallel()
	type expect struct {
		library  string
		host     string // "" is any
		mode     string
		identity locksteward.Identity
		lifetime locksteward.Lifetime
		below    bool // the lock's name is that of its node
	}
	strong, session := locksteward.IdentityStrong, locksteward.LifetimeSession
	for recipe, want := range map[string]expect{
		"kazoo mutex":       {"kazoo", "worker-7.example", "", strong, session, false},
		"kazoo persistent":  {"kazoo", "worker-7.example", "", strong, locksteward.LifetimePersistent, false},
		"kazoo read":        {"kazoo", "worker-7.example", "read", strong, session, true},
		"kazoo write":       {"kazoo", "worker-7.example", "", strong, session, false},
		"kazoo semaphore":   {"kazoo", "worker-7.example", "", locksteward.IdentityLineage, session, true},
		"curator mutex":     {"curator", "", "", strong, session, false},
		"curator read":      {"curator", "", "read", strong, session, true},
		"curator write":     {"curator", "", "write", strong, session, false},
		"curator semaphore": {"curator", "", "", strong, session, true},
		"curator latch":     {"curator", "latch-of-a-test", "", strong, session, false},
	} {
		t.Run(recipe, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, testzk.Shared(t), "/locks/*")
			library, kind := recipe[:len(want.library)], recipe[len(want.library)+1:]
			command := kazoo
			if library == "curator" {
				command = curator
			}
			p := start(t, command(t), w.server.Addr()+w.root, kind, "/locks/orders")
			id := p.want("session ")
			p.want("held")
			// A semaphore of Curator keeps its mutex for a moment longer.
			testredis.Eventually(t, soon, func() bool { return w.one().Waiters == 0 }, "somebody waits")
			l := w.one()
			if l.Library != want.library || l.Mode != want.mode || l.Identity != want.identity || l.Lifetime != want.lifetime || l.Class != "all" {
				t.Errorf("seen %+v", l.Observation)
			}
			if l.Holder.Host == "" || want.host != "" && l.Holder.Host != want.host {
				t.Errorf("holder %+v, want %q", l.Holder, want.host)
			}
			if below := l.Key != "/locks/orders"; below != want.below {
				t.Errorf("its name is %q", l.Key)
			}
			if want.lifetime == session && (l.Session == nil || l.Session.ID != "0x"+id) {
				t.Errorf("session %+v, want %s", l.Session, id)
			}
			if age := time.Since(l.Acquired); age < -time.Minute || age > time.Minute {
				t.Errorf("asked for %s ago", age)
			}
			p.say("release")
			p.want("free")
			if sweep := w.sweep(); len(sweep.Locks) != 0 || len(sweep.Endings) != 1 || sweep.Endings[0].How != locksteward.EndedReleased {
				t.Errorf("locks %q, endings %+v", names(sweep.Locks), sweep.Endings)
			}
		})
	}
}

// tooz locks with kazoo, and names its member.
func TestTooz(t *testing.T) {
	t.Parallel()
	server := testzk.Start(t, testzk.Standalone)
	s := scan(t, open(t, source.Login{URL: "zookeeper://" + server.Addr()}, zksource.Options{}), "/tooz/locks/*")
	release := testtooz.Hold(t, "zookeeper://"+server.Addr())
	sweep, err := s.Sweep(t.Context())
	if err != nil || len(sweep.Locks) != 1 {
		t.Fatalf("locks %q, %v", names(sweep.Locks), err)
	}
	if l := sweep.Locks[0]; l.Key != "/tooz/locks/"+testtooz.Lock || l.Library != "kazoo" || l.Holder.Host != testtooz.Member || l.Lifetime != locksteward.LifetimeSession {
		t.Errorf("seen %+v", l)
	}
	release()
	if sweep, err = s.Sweep(t.Context()); err != nil || len(sweep.Locks) != 0 {
		t.Errorf("left %q, %v", names(sweep.Locks), err)
	}
}

func TestGoZookeeper(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Shared(t), "/locks/*")
	lock := zk.NewLock(w.app, w.root+"/locks/orders", anybody)
	if err := lock.LockWithData([]byte("10.1.2.3")); err != nil {
		t.Fatal(err)
	}
	second := zk.NewLock(w.app, w.root+"/locks/orders", anybody)
	waited := make(chan error, 1)
	go func() { waited <- second.Lock() }()
	testredis.Eventually(t, soon, func() bool { return w.one().Waiters == 1 }, "nobody waits")
	l := w.one()
	if l.Library != "go-zookeeper" || l.Identity != locksteward.IdentityStrong || l.Holder.Host != "10.1.2.3" {
		t.Errorf("seen %+v", l.Observation)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	if next := w.one(); next.TokenDigest == l.TokenDigest || next.Waiters != 0 {
		t.Errorf("the next hold is %+v", next.Observation)
	}
}

// An acquire whose answer was lost leaves a node that nobody knows of: its session lives on, and
// waits behind it for ever (CURATOR-79, CURATOR-678). Released after approval, its waiter goes on.
func TestOrphanOfCurator(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Shared(t), "/locks/*")
	w.create("/locks/orders/_c_"+uuid()+"-lock-", "192.0.2.7", zk.FlagEphemeralSequential)
	p := start(t, curator(t), w.server.Addr()+w.root, "mutex", "/locks/orders")
	id := p.want("session ")
	testredis.Eventually(t, soon, func() bool { return w.one().Waiters == 1 }, "nobody waits")
	sweep := w.sweep()
	l := sweep.Locks[0]
	if l.Library != "curator" || l.Holder.Host != "192.0.2.7" || len(sweep.Waiters) != 1 || sweep.Waiters[0].Session != "0x"+id || sweep.Waiters[0].Key != l.Key {
		t.Errorf("seen %+v, waiters %+v", l.Observation, sweep.Waiters)
	}
	out, err := w.releaser().Release(t.Context(), request(l))
	if err != nil || out.State != locksteward.RequestReleased {
		t.Fatalf("%+v, %v", out, err)
	}
	p.want("held")
	after := w.sweep()
	if next := after.Locks[0]; next.Session == nil || next.Session.ID != "0x"+id || next.Waiters != 0 {
		t.Errorf("the next hold is %+v", next.Observation)
	}
}

// A kazoo lock taken with ephemeral=False outlives its process: ttl/none finds it, and a
// release frees it.
func TestKazooOutlivesItsSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Shared(t), "/locks/*")
	p := start(t, kazoo(t), w.server.Addr()+w.root, "persistent", "/locks/orders")
	p.want("held")
	p.say("exit")
	if err := p.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	engine, err := rules.New(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	sweep := w.sweep()
	l := sweep.Locks[0]
	if l.Lifetime != locksteward.LifetimePersistent || l.Session != nil || l.TTL != locksteward.NoExpiry {
		t.Errorf("seen %+v", l.Observation)
	}
	engine.Evaluate(sweep)
	later := w.sweep()
	later.At, later.Locks[0].At = later.At.Add(time.Minute), later.Locks[0].At.Add(time.Minute)
	engine.Evaluate(later)
	if fired := engine.Firing(l); !slices.Contains(fired, "ttl/none") {
		t.Errorf("firing %q, want ttl/none", fired)
	}
	if out, err := w.releaser().Release(t.Context(), request(l)); err != nil || out.State != locksteward.RequestReleased {
		t.Errorf("%+v, %v", out, err)
	}
	if left := w.sweep(); len(left.Locks) != 0 {
		t.Errorf("left %q", names(left.Locks))
	}
}
