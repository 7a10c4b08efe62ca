package release_test

import (
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// redis-mutex writes when its lock ends, by the holder's clock and without a TTL:
// ttl/none is its layout and proves nothing. No rule asks for its release, nor lets
// one person do all.
func TestRedisMutexNeedsAPerson(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	if err := e.reload(mutexClasses(t)); err != nil {
		t.Fatal(err)
	}
	const key = "RedisMutex:lock:order:1"
	e.do(t, "set", key, "1794970000.1251")
	lock, _, err := e.locks.ReadLock(t.Context(), target, key)
	if err != nil || lock.Library != "redis-mutex" {
		t.Fatalf("read %+v, %v", lock, err)
	}
	lock.Configured, lock.Class = true, "mutexes"
	r, err := e.service.Propose(t.Context(), lock, []string{"ttl/none"})
	if err != nil || r != nil {
		t.Errorf("proposed %+v, %v", r, err)
	}
	// The same key as another library's is proposed: the class does allow it.
	e.do(t, "set", "RedisMutex:lock:order:2", uuid)
	other, _, err := e.locks.ReadLock(t.Context(), target, "RedisMutex:lock:order:2")
	if err != nil {
		t.Fatal(err)
	}
	other.Configured, other.Class = true, "mutexes"
	if r, err := e.service.Propose(t.Context(), other, []string{"ttl/none"}); err != nil || r == nil {
		t.Errorf("not proposed: %v", err)
	}
}

func TestSelfApprovalNeedsAnotherPersonForRedisMutex(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	c := class.Class{Name: "mutexes", Release: class.ReleaseApprove, SelfApproval: class.SelfApprovalAllow, DeadWhen: []string{"ttl/none"}}
	r := locksteward.Request{ID: "r1", Evidence: locksteward.Evidence{
		Target:  target,
		Library: "redis-mutex", Identity: locksteward.IdentityStrong, Findings: []string{"ttl/none"},
	}}
	wantError(t, e.service.SelfApproval(r, c), locksteward.ErrRefused, "redis-mutex", "another approver")
	r.Evidence.Library = "token"
	if err := e.service.SelfApproval(r, c); err != nil {
		t.Error(err)
	}
}

func mutexClasses(t *testing.T) *class.Set {
	t.Helper()
	set, err := class.NewSet([]class.Class{{
		Name: "mutexes", Match: []string{"RedisMutex:*"}, Release: class.ReleaseApprove, DeadWhen: []string{"ttl/none"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}
