package zksource_test

import (
	"context"
	"errors"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/testkit/testzk"
	"github.com/locksteward/locksteward/source"
	zksource "github.com/locksteward/locksteward/source/zookeeper"
)

func release(t *testing.T, r source.Releaser, req locksteward.Request, want locksteward.RequestState) source.Outcome {
	t.Helper()
	out, err := r.Release(t.Context(), req)
	if err != nil || out.State != want {
		t.Errorf("%+v, %v, want %s", out, err, want)
	}
	return out
}

// One reader of several is freed, and one lease.
func TestReleaseOfSharedHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Shared(t), "/locks/*")
	for _, node := range []string{"/locks/rw/_c_" + uuid() + "-__READ__", "/locks/rw/_c_" + uuid() + "-__READ__", "/locks/sem/leases/_c_" + uuid() + "-lease-", "/locks/sem/leases/_c_" + uuid() + "-lease-"} {
		w.create(node, "", zk.FlagEphemeralSequential)
	}
	w.create("/locks/sem/locks", "", zk.FlagPersistent)
	locks := w.sweep().Locks
	if len(locks) != 4 {
		t.Fatalf("locks %q", names(locks))
	}
	for _, i := range []int{1, 3} {
		release(t, w.releaser(), request(locks[i]), locksteward.RequestReleased)
	}
	left := names(w.sweep().Locks)
	if len(left) != 2 || left[0] != locks[0].Key || left[1] != locks[2].Key {
		t.Errorf("left %q, want %q and %q", left, locks[0].Key, locks[2].Key)
	}
}

// A fixed node and a name without a GUID are for people to decide, and compared by the
// transaction that made them: a new node of the same name is another hold.
func TestReleaseOfWeakIdentity(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Shared(t), "/locks/*", "/controller")
	r := w.releaser()
	w.create("/controller", "kafka-1", zk.FlagEphemeral)
	w.create("/locks/a/lock-", "", zk.FlagEphemeralSequential)
	for _, l := range w.sweep().Locks {
		req := request(l)
		limits := r.Limits(req.Evidence)
		if limits.Release != nil || !strings.Contains(limits.Decision, "milliseconds") || limits.Undo == "" || limits.Placeholder == "" {
			t.Errorf("%s: %+v", l.Key, limits)
		}
	}
	old := request(*find(w.sweep().Locks, "/controller"))
	w.delete("/controller")
	w.create("/controller", "kafka-1", zk.FlagEphemeral)
	if out := release(t, r, old, locksteward.RequestChanged); len(out.Differences) == 0 {
		t.Error("no differences")
	}
	for _, l := range w.sweep().Locks {
		release(t, r, request(l), locksteward.RequestReleased)
	}
	if left := w.sweep().Locks; len(left) != 0 {
		t.Errorf("left %q", names(left))
	}
}

// What no library is known of is refused, and what cannot be done is not tried.
func TestRefusedReleases(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Shared(t), "/locks/*")
	r := w.releaser()
	w.create("/locks/a/n_", "", zk.FlagEphemeralSequential)
	req := request(w.one())
	if why := r.Limits(req.Evidence).Release; !errors.Is(why, locksteward.ErrRefused) {
		t.Errorf("limits: %v", why)
	}
	if seen, err := r.Preview(t.Context(), req); err != nil || !seen.Found || !errors.Is(seen.Refusal, locksteward.ErrRefused) {
		t.Errorf("preview: %+v, %v", seen, err)
	}
	release(t, r, req, locksteward.RequestFailed)
	if why := r.Limits(locksteward.Evidence{Key: "/locks/a", Library: "curator"}).Release; !errors.Is(why, locksteward.ErrRefused) {
		t.Errorf("without a token: %v", why)
	}

	w.create(curatorNode("/locks/b"), "", zk.FlagEphemeralSequential)
	for _, change := range []func(*locksteward.Evidence){
		func(e *locksteward.Evidence) { e.Act = locksteward.ActTakeOver },
		func(e *locksteward.Evidence) { e.Act = locksteward.ActUndo },
		func(e *locksteward.Evidence) { e.Placeholder = time.Minute },
		func(e *locksteward.Evidence) { e.Undo = time.Minute },
	} {
		req := request(*find(w.sweep().Locks, "/locks/b"))
		change(&req.Evidence)
		release(t, r, req, locksteward.RequestFailed)
	}
	if find(w.sweep().Locks, "/locks/b") == nil {
		t.Error("the lock is gone")
	}
}

func TestPreview(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Shared(t), "/locks/*")
	node := w.create(curatorNode("/locks/a"), "10.0.0.1", zk.FlagEphemeralSequential)
	req := request(w.one())
	seen, err := w.releaser().Preview(t.Context(), req)
	if err != nil || !seen.Found || len(seen.Differences) != 0 || seen.Refusal != nil || seen.Keys[0] != w.root+node || !strings.Contains(seen.Script, "delete "+w.root+node+" version 0") {
		t.Errorf("%+v, %v", seen, err)
	}
	// Data that is written does not make it another hold.
	if _, err := w.app.Set(w.root+node, []byte("__REVOKE__"), -1); err != nil {
		t.Fatal(err)
	}
	release(t, w.releaser(), req, locksteward.RequestReleased)
	req.ID += "-again"
	release(t, w.releaser(), req, locksteward.RequestAlreadyGone)
	if seen, err := w.releaser().Preview(t.Context(), req); err != nil || seen.Found {
		t.Errorf("%+v, %v", seen, err)
	}
}

// A release whose answer is lost is resolved by its record; one whose request is lost did
// nothing and never will.
func TestReleaseThroughABrokenNetwork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Shared(t), "/locks/*")
	proxy := testredis.NewProxy(t, w.server.Addr())
	r, err := zksource.OpenReleaser(source.Login{URL: "zookeeper://" + proxy.Addr() + w.root}, zksource.ReleaserOptions{Digest: w.digest, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	released := 0
	for replies := range 8 { // the transaction is one of them
		w.create(curatorNode("/locks/a"), "", zk.FlagEphemeralSequential)
		req := request(w.one())
		proxy.CutAfterReplies(replies)
		done := make(chan source.Outcome, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), soon)
			defer cancel()
			out, err := r.Release(ctx, req)
			if err != nil {
				t.Errorf("after %d replies: %v", replies, err)
			}
			done <- out
		}()
		var out source.Outcome
		select {
		case out = <-done:
			proxy.Heal()
		case <-time.After(500 * time.Millisecond):
			proxy.Heal()
			out = <-done
		}
		left := w.sweep().Locks
		switch out.State {
		case locksteward.RequestReleased:
			released++
			if len(left) != 0 {
				t.Errorf("after %d replies: released, and it is there", replies)
			}
		case locksteward.RequestFailed:
			if len(left) != 1 || out.Reason == "" {
				t.Errorf("after %d replies: %+v, left %q", replies, out, names(left))
			}
			req.ID += "-again"
			release(t, r, req, locksteward.RequestReleased)
		default:
			t.Errorf("after %d replies: %+v", replies, out)
		}
	}
	t.Logf("%d of 8 released", released)
}

// The rights that Rights prints suffice, and with less a release says what is missing.
func TestRightsOfTheReleaser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Shared(t), "/locks/*")
	w.create(curatorNode("/locks/a"), "", zk.FlagEphemeralSequential)
	login := source.Login{URL: "zookeeper://" + w.server.Addr() + w.root, Username: "releaser", Password: password("its-secret")}
	r := openReleaser(t, login, w.digest)
	acl := func(path string, list []zk.ACL) {
		t.Helper()
		if _, err := w.app.SetACL(w.root+path, list, -1); err != nil {
			t.Fatal(err)
		}
	}
	both := func(perms int32) []zk.ACL {
		return append(zk.WorldACL(zk.PermRead|zk.PermCreate|zk.PermAdmin), zk.DigestACL(perms, "releaser", "its-secret")...)
	}
	failed := func(words string) {
		t.Helper()
		out := release(t, r, request(w.one()), locksteward.RequestFailed)
		if !strings.Contains(out.Reason, words) || strings.Contains(out.Reason, "its-secret") {
			t.Errorf("reason %q, want %q in it", out.Reason, words)
		}
	}
	acl("", both(zk.PermRead)[:1])
	acl("", zk.WorldACL(zk.PermRead|zk.PermAdmin))
	failed("lacks CREATE")
	if c := r.Check(t.Context())[0]; c.Status == source.StatusOK || c.Todo == "" {
		t.Errorf("check %+v", c)
	}
	acl("", zk.WorldACL(zk.PermAll))
	if _, err := w.app.Create(w.root+zksource.DefaultRecords, nil, zk.FlagPersistent, append(zk.WorldACL(zk.PermAdmin), zk.DigestACL(zk.PermRead|zk.PermDelete, "releaser", "its-secret")...)); err != nil {
		t.Fatal(err)
	}
	acl("/locks/a", both(zk.PermRead|zk.PermDelete))
	failed("lacks CREATE on /locksteward-releases")
	acl(zksource.DefaultRecords, zk.DigestACL(zk.PermCreate|zk.PermRead|zk.PermDelete|zk.PermAdmin, "releaser", "its-secret"))
	acl("/locks/a", both(zk.PermRead))
	failed("lacks DELETE on /locks/a")
	acl("/locks/a", both(zk.PermRead|zk.PermDelete))
	if c := r.Check(t.Context())[0]; c.Status != source.StatusOK {
		t.Errorf("check %+v", c)
	}
	release(t, r, request(w.one()), locksteward.RequestReleased)
	wrong := openReleaser(t, source.Login{URL: login.URL, Username: "releaser", Password: password("another")}, w.digest)
	if _, err := wrong.Resolve(t.Context(), locksteward.Request{ID: "r"}); err == nil || strings.Contains(err.Error(), "another") {
		t.Errorf("a wrong password: %v", err)
	}
}

// What Limits says of fixed nodes is measured here: how often a release deletes a hold that was
// taken in the very milliseconds between its look and its deletion.
func TestResidualRaceOfFixedNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testzk.Shared(t), "/controller")
	r := w.releaser()
	races, wrong := min(*conformanceRaces/10, 10_000), 0
	for range races {
		w.create("/controller", "", zk.FlagEphemeral)
		seen, err := r.Preview(t.Context(), locksteward.Request{Evidence: locksteward.Evidence{Key: "/controller"}})
		if err != nil || !seen.Found {
			t.Fatalf("%+v, %v", seen, err)
		}
		var next sync.WaitGroup
		next.Go(func() {
			<-time.After(mathrand.N(15 * time.Millisecond)) // about as long as a release takes
			if err := w.app.Delete(w.root+"/controller", -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
				t.Error(err)
			}
			if _, err := w.app.Create(w.root+"/controller", nil, zk.FlagEphemeral, anybody); err != nil {
				t.Error(err)
			}
		})
		out, err := r.Release(t.Context(), locksteward.Request{ID: "r-" + uuid(), Evidence: seen.Now})
		next.Wait()
		if err != nil {
			t.Fatal(err)
		}
		there, _, err := w.app.Exists(w.root + "/controller")
		switch {
		case err != nil:
			t.Fatal(err)
		case there:
			w.delete("/controller")
		case out.State != locksteward.RequestReleased:
			t.Fatalf("%+v, and the next hold is gone", out)
		default:
			wrong++
		}
	}
	t.Logf("%d of %d releases that raced against a new hold of a fixed node deleted the new one", wrong, races)
}
