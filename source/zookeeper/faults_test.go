package zksource_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/testkit/testzk"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
	zksource "github.com/locksteward/locksteward/source/zookeeper"
)

// curatorNode is the beginning of a node of Curator's mutex.
func curatorNode(lock string) string { return lock + "/_c_" + uuid() + "-lock-" }

// away makes sweeps, which must fail with a reason and end nothing, until the reason has the
// words: a request under way breaks before it is known why.
func away(t *testing.T, s *scanner.Scanner, words ...string) {
	t.Helper()
	testredis.Eventually(t, soon, func() bool {
		sweep, err := s.Sweep(t.Context())
		reason := s.State().Reason
		if err == nil || sweep.Complete() || len(sweep.Endings) > 0 || reason == "" {
			t.Fatalf("complete %v, endings %+v, reason %q, %v", sweep.Complete(), sweep.Endings, reason, err)
		}
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(reason, word) })
	}, "a reason with the words "+strings.Join(words, ", "))
}

// back waits for a complete sweep that has the lock, with the history that it had.
func back(t *testing.T, s *scanner.Scanner, name string, since time.Time) {
	t.Helper()
	testredis.Eventually(t, soon, func() bool {
		sweep, _ := s.Sweep(t.Context())
		l := find(sweep.Locks, name)
		return sweep.Complete() && l != nil && l.History.FirstSeen.Equal(since)
	}, "the lock is not seen as before")
}

// A server that is paused, cut off or killed ends no lock, and is swept again when it is back.
func TestServerAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Start(t, testzk.Standalone), "/locks/*")
	proxy := testredis.NewProxy(t, w.server.Addr())
	s := scan(t, open(t, source.Login{URL: "zookeeper://" + proxy.Addr() + w.root}, zksource.Options{Digest: w.digest, Timeout: 3 * time.Second}), "/locks/*")
	w.create(curatorNode("/locks/orders"), "", zk.FlagEphemeralSequential)
	first, err := s.Sweep(t.Context())
	if err != nil || len(first.Locks) != 1 {
		t.Fatalf("%d locks, %v", len(first.Locks), err)
	}
	since := first.Locks[0].History.FirstSeen

	proxy.Cut()
	away(t, s, "no server serves us", proxy.Addr())
	proxy.Heal()
	back(t, s, "/locks/orders", since)

	proxy.DropReplies(true)
	away(t, s)
	proxy.Heal()
	back(t, s, "/locks/orders", since)

	w.server.Pause()
	away(t, s)
	w.server.Resume()
	back(t, s, "/locks/orders", since)

	w.server.Kill()
	away(t, s, "no server serves us")
	w.server.Restart()
	back(t, s, "/locks/orders", since)
}

// An ensemble without a leader is told from a server that is away, and so is a read-only one.
func TestNoLeader(t *testing.T) {
	t.Parallel()
	for mode, words := range map[testzk.Mode]string{testzk.Lonely: "no leader", testzk.ReadOnly: "read-only"} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			server := testzk.Start(t, mode)
			src := open(t, source.Login{URL: "zookeeper://" + server.Addr()}, zksource.Options{Timeout: time.Second})
			s := scan(t, src, "/locks/*")
			away(t, s, words)
			for _, c := range src.Check(t.Context()) {
				if c.Status == source.StatusOK || !strings.Contains(c.Found, words) || c.Name == "session" && c.Todo == "" {
					t.Errorf("check %+v", c)
				}
			}
			r := openReleaser(t, source.Login{URL: "zookeeper://" + server.Addr()}, locksteward.NewDigestKey())
			if _, err := r.Preview(t.Context(), locksteward.Request{Evidence: locksteward.Evidence{Key: "/locks/a"}}); err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("preview: %v", err)
			}
		})
	}
}

// watched collects what a watch passes on.
type watched struct {
	mu      sync.Mutex
	locks   map[string]locksteward.Lock
	endings []locksteward.Ending
}

// watch runs the watch of a scanner until the end of the test.
func watch(t *testing.T, s *scanner.Scanner) *watched {
	t.Helper()
	w := &watched{locks: map[string]locksteward.Lock{}}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- s.Watch(ctx, func(_ context.Context, u locksteward.Update) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, l := range u.Locks {
				w.locks[l.Key] = l
			}
			w.endings = append(w.endings, u.Endings...)
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("watch: %v", err)
		}
	})
	s.AwaitWatch(ctx)
	return w
}

func (w *watched) held(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.locks[name]
	return ok
}

func (w *watched) ended(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.endings {
		if e.Lock.Key == name {
			return true
		}
	}
	return false
}

// A lock ends with the session of its holder. Our own session may expire, too: the watch
// begins anew.
func TestSessionsExpire(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Shared(t), "/locks/*")
	theirs, ours := testredis.NewProxy(t, w.server.Addr()), testredis.NewProxy(t, w.server.Addr())
	src := open(t, source.Login{URL: "zookeeper://" + ours.Addr() + w.root}, zksource.Options{Digest: w.digest, Timeout: 3 * time.Second})
	s := scan(t, src, "/locks/*")
	holder := testzk.Connect(t, theirs.Addr(), 5*time.Second)
	create(t, holder, w.root, curatorNode("/locks/orders"), "", zk.FlagEphemeralSequential)
	if sweep, err := s.Sweep(t.Context()); err != nil || len(sweep.Locks) != 1 {
		t.Fatalf("%d locks, %v", len(sweep.Locks), err)
	}
	seen := watch(t, s)
	theirs.Cut()
	testredis.Eventually(t, soon, func() bool { return seen.ended("/locks/orders") }, "the end of an expired session is not passed")

	ours.Cut()
	testredis.Eventually(t, soon, func() bool { return src.WatchState().Mode == source.WatchSweep }, "a cut watch counts as one")
	w.create(curatorNode("/locks/meanwhile"), "", zk.FlagEphemeralSequential)
	wait := time.NewTimer(8 * time.Second) // our session, of twice the timeout, expires
	<-wait.C
	if state := src.WatchState(); state.Mode != source.WatchSweep || state.Reason == "" {
		t.Errorf("a cut watch is %+v", state)
	}
	ours.Heal()
	testredis.Eventually(t, soon, func() bool { return seen.held("/locks/meanwhile") }, "what happened meanwhile is not passed")
	w.create(curatorNode("/locks/later"), "", zk.FlagEphemeralSequential)
	testredis.Eventually(t, soon, func() bool { return seen.held("/locks/later") }, "a new directory is not passed")
}

// An ensemble is one store: a server that dies costs nothing while a majority is left, without
// one nothing ends, and a release at a follower is as exact as at the leader.
func TestEnsemble(t *testing.T) {
	t.Parallel()
	servers := testzk.Ensemble(t)
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	url := "zookeeper://" + strings.Join(addrs, ",")
	app, events, err := zk.Connect(addrs, time.Minute, zk.WithLogInfo(false), zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		app.Close()
		for range events {
		}
	})
	digest := locksteward.NewDigestKey()
	src := open(t, source.Login{URL: url}, zksource.Options{Digest: digest, Timeout: 5 * time.Second})
	s := scan(t, src, "/locks/*")
	create(t, app, "", curatorNode("/locks/orders"), "", zk.FlagEphemeralSequential)
	first, err := s.Sweep(t.Context())
	if err != nil || len(first.Locks) != 1 {
		t.Fatalf("%d locks, %v", len(first.Locks), err)
	}
	since := first.Locks[0].History.FirstSeen
	seen := watch(t, s)

	leader := slices.IndexFunc(servers, (*testzk.Server).Leads)
	for i, server := range servers {
		create(t, app, "", curatorNode("/locks/one"), "", zk.FlagEphemeralSequential)
		r := openReleaser(t, source.Login{URL: "zookeeper://" + server.Addr()}, digest)
		seen, err := r.Preview(t.Context(), locksteward.Request{Evidence: locksteward.Evidence{Key: "/locks/one"}})
		if err != nil || !seen.Found && i == leader {
			t.Fatalf("%+v, %v", seen, err)
		}
		testredis.Eventually(t, soon, func() bool { // a follower may be behind
			seen, err = r.Preview(t.Context(), locksteward.Request{Evidence: locksteward.Evidence{Key: "/locks/one"}})
			return err == nil && seen.Found
		}, "the follower does not see the lock")
		release(t, r, locksteward.Request{ID: "r-" + server.Addr(), Evidence: seen.Now}, locksteward.RequestReleased)
	}

	servers[leader].Kill()
	back(t, s, "/locks/orders", since)
	retry(t, func() error {
		_, err := app.Create("/locks/later", nil, zk.FlagPersistent, anybody)
		if errors.Is(err, zk.ErrNodeExists) {
			return nil
		}
		return err
	})
	create(t, app, "", curatorNode("/locks/later"), "", zk.FlagEphemeralSequential)
	testredis.Eventually(t, soon, func() bool { return seen.held("/locks/later") }, "the watch sees nothing more")

	other := (leader + 1) % len(servers)
	servers[other].Kill()
	testredis.Eventually(t, soon, func() bool { // until the last server notices that it is alone
		sweep, _ := s.Sweep(t.Context())
		if len(sweep.Endings) > 0 {
			t.Errorf("endings %+v", sweep.Endings)
		}
		return !sweep.Complete() && strings.Contains(s.State().Reason, "no leader")
	}, "one server of three is swept")
	servers[other].Restart()
	back(t, s, "/locks/orders", since)
	var checks []source.Check
	testredis.Eventually(t, soon, func() bool { // of two servers, one may serve before the other
		checks = src.Check(t.Context())
		return !slices.ContainsFunc(checks, func(c source.Check) bool {
			return (c.Status == source.StatusOK) == strings.HasPrefix(c.Found, servers[leader].Addr())
		})
	}, "the checks name the dead server alone")
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
