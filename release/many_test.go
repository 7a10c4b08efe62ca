package release_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/store"
)

// many takes locks of a class and asks for them, one after the other.
func (e *env) many(t *testing.T, class string, from, n int) (list []locksteward.Request) {
	t.Helper()
	for i := range n {
		key := fmt.Sprintf("lock:%s:%d", class, from+i)
		e.put(t, key, uuid, 1000*minute)
		list = append(list, e.request(t, ana, key))
	}
	return list
}

// wantBeyond checks whether requests need one approval more than the one of their
// class, and that all who look are informed why.
func (e *env) wantBeyond(t *testing.T, beyond bool, list ...locksteward.Request) {
	t.Helper()
	for _, r := range list {
		now, err := e.service.Get(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		want, needed := 0, 1
		if beyond {
			want, needed = 3, 2
		}
		standing := e.service.ApprovalStatus(now)
		reported := strings.Contains(strings.Join(standing.Warnings, " "), "more than 3 of class")
		if now.Evidence.BeyondPerMinute != want || standing.Approvals != needed || reported != beyond {
			t.Fatalf("%s: beyond %d, needs %d, warnings %q; want beyond: %t", r.Evidence.Key, now.Evidence.BeyondPerMinute, standing.Approvals, standing.Warnings, beyond)
		}
	}
}

// TestManyNeedOneApprovalMore is fault 75: beyond many_per_minute another person has to
// approve too, also after a restart.
// fault: 75
func TestManyNeedOneApprovalMore(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	list := e.many(t, "many", 0, 4)
	e.wantBeyond(t, false, list[:3]...)
	e.wantBeyond(t, true, list[3])
	e.wantBeyond(t, false, e.many(t, "order", 0, 4)...) // another class is not concerned

	last := list[3]
	e.want(t, e.approve(t, ben, last), locksteward.RequestPending)
	if e.exec.count() != 0 {
		t.Fatal("one approval released it")
	}
	big := release.Actor{Name: "BEN", Roles: ben.Roles}
	_, err := e.service.Approve(t.Context(), big, last.ID, yes(last))
	wantError(t, err, locksteward.ErrConflict, "another person")
	e.newService(t, release.Config{})
	e.clock.add(59 * time.Minute) // it was frozen: waiting does not help
	e.wantBeyond(t, true, last)
	e.want(t, e.approve(t, cat, last), locksteward.RequestReleased)
	for _, r := range list[:3] {
		e.want(t, e.approve(t, ben, r), locksteward.RequestReleased)
	}
}

// TestManyAskedSlowly: what is open counts however long ago it was asked for, and what
// was released counts for a minute, by the store.
// fault: 75
func TestManyAskedSlowly(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	var list []locksteward.Request
	for i := range 3 {
		list = append(list, e.many(t, "many", i, 1)...)
		e.clock.add(5 * time.Minute)
	}
	e.wantBeyond(t, false, list...)
	// Asked for anew after it changed, a lock counts once.
	e.renew(t, list[2].Evidence.Key, 900*minute)
	list[2] = e.request(t, ana, list[2].Evidence.Key)
	e.wantBeyond(t, false, list[2])
	e.wantBeyond(t, true, e.many(t, "many", 3, 1)...)

	for _, r := range append(list, e.pending(t, 4)[0])[:3] {
		e.want(t, e.approve(t, ben, r), locksteward.RequestReleased)
	}
	if _, err := e.service.Deny(t.Context(), ben, e.pending(t, 1)[0].ID, release.Decision{Reason: "they work"}); err != nil {
		t.Fatal(err)
	}
	e.newService(t, release.Config{}) // a restart forgets none of them
	e.clock.add(time.Minute)
	e.wantBeyond(t, true, e.many(t, "many", 4, 1)...)
	if _, err := e.service.Deny(t.Context(), ben, e.pending(t, 1)[0].ID, release.Decision{Reason: "they work"}); err != nil {
		t.Fatal(err)
	}
	e.clock.add(time.Millisecond) // a minute is over, and what was denied counts no more
	e.wantBeyond(t, false, e.many(t, "many", 5, 3)...)
	// What expired counts no more either, though nobody wrote that down yet.
	e.clock.add(release.DefaultRequestTTL)
	e.wantBeyond(t, false, e.many(t, "many", 8, 3)...)
}

// TestManyAtOnce: people who ask in the same moment, of one replica or of two, do not all
// come just before the edge.
// fault: 75
func TestManyAtOnce(t *testing.T) {
	forEachPlace(t, func(t *testing.T, e *env, stores []*store.Store) {
		const people = 24
		replicas := e.replicas(t, stores, release.Config{}, target)
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range people {
			key := fmt.Sprintf("lock:many:%d", i)
			e.put(t, key, uuid, minute)
			wg.Go(func() {
				<-start
				in := release.RequestInput{Target: target, Key: key, Reason: "x"}
				if _, err := replicas[i%len(replicas)].Request(t.Context(), ana, in); err != nil {
					t.Error(err)
				}
			})
		}
		close(start)
		wg.Wait()
		beyond := 0
		for _, r := range e.pending(t, people) {
			if r.Evidence.BeyondPerMinute > 0 {
				beyond++
			}
		}
		if beyond != people-3 {
			t.Errorf("%d of %d need one approval more, want %d", beyond, people, people-3)
		}
	})
}

// TestManyInABundle: a bundle counts as many as it has, and all of them need both.
// fault: 75
func TestManyInABundle(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	ask := func(keys []string) release.Bundle {
		t.Helper()
		b, err := e.service.RequestBundle(t.Context(), ana, release.BundleInput{Target: target, Host: "web-3", Keys: keys, Reason: "gone"})
		if err != nil || len(b.Requests) != len(keys) {
			t.Fatalf("%+v, %v", b, err)
		}
		return b
	}
	keys := e.dead(t, "many", 5)
	first := ask(keys[:3])
	e.wantBeyond(t, false, first.Requests...)
	if _, err := e.service.DenyBundle(t.Context(), ben, first.ID, bundleWord(first)); err != nil {
		t.Fatal(err)
	}
	b := ask(keys[:4])
	e.wantBeyond(t, true, b.Requests...)
	for _, step := range []struct {
		who  release.Actor
		want locksteward.RequestState
	}{{ben, locksteward.RequestPending}, {cat, locksteward.RequestReleased}} {
		after, err := e.service.ApproveBundle(t.Context(), step.who, b.ID, bundleWord(b))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range after.Requests {
			e.want(t, r, step.want)
		}
	}
	// With what was released just now, two are too many.
	e.wantBeyond(t, true, ask(keys[4:]).Requests...)
}

// TestManyAndTheAgent: what is beyond the rate the agent does not release by itself.
// fault: 75
func TestManyAndTheAgent(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	for i := range 4 {
		key := fmt.Sprintf("lock:manyauto:%d", i)
		e.put(t, key, uuid, 1000*minute)
		e.sweep(t, "holder/dead", locksteward.Proven, key)
	}
	left := e.pending(t, 1)[0]
	if e.exec.count() != 3 {
		t.Fatalf("executed %d times, want 3", e.exec.count())
	}
	e.wantBeyond(t, true, left)
	e.clock.add(10 * time.Minute)
	e.sweep(t, "holder/dead", locksteward.Proven, left.Evidence.Key)
	if e.exec.count() != 3 {
		t.Fatal("the agent released it later")
	}
	e.want(t, e.approve(t, ben, left), locksteward.RequestPending)
	e.want(t, e.approve(t, cat, left), locksteward.RequestReleased)
}

// named says of each lock that it is of the target that was asked for.
type named struct{ *locks }

func (n named) ReadLock(ctx context.Context, name, key string) (locksteward.Lock, []string, error) {
	lock, firing, err := n.locks.ReadLock(ctx, name, key)
	lock.Target = name
	return lock, firing, err
}

// TestManyOnSeveralTargets: a class is one, on however many targets its locks are.
// fault: 75
func TestManyOnSeveralTargets(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	var err error
	e.service, err = release.New(zap.NewNop(), release.Config{}, release.Deps{
		Store: e.store, Locks: named{e.locks}, Classes: testClasses(t), Now: e.clock.now,
		Releasers: map[string]source.Releaser{"a": e.exec, "b": e.exec},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		in := release.RequestInput{Target: []string{"a", "b"}[i%2], Key: fmt.Sprintf("lock:many:%d", i/2), Reason: "x"}
		e.put(t, in.Key, uuid, 1000*minute)
		r, err := e.service.Request(t.Context(), ana, in)
		if err != nil || r.Evidence.Target != in.Target {
			t.Fatalf("%+v, %v", r, err)
		}
		e.wantBeyond(t, i == 3, r)
	}
}
