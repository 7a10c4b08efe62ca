package release_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/store"
)

// refusals returns the audited refusals, newest first.
func (e *env) refusals(t testing.TB) []locksteward.Entry {
	t.Helper()
	entries, err := e.store.Entries(t.Context(), store.EntryQuery{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(entries, func(e locksteward.Entry) bool { return e.Outcome != release.OutcomeRefused })
}

func TestWithoutCredentialsEveryVerbIsRefused(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.put(t, "lock:order:1", uuid, minute)
	r := e.request(t, ana, "lock:order:1")

	// The same store, without credentials now.
	e.exec = nil
	e.newService(t, release.Config{})
	const sentence = "this agent cannot delete: no release credentials configured"
	_, err := e.service.Request(t.Context(), ana, release.RequestInput{Target: target, Key: "lock:order:1", Reason: "x"})
	wantError(t, err, locksteward.ErrRefused, sentence)
	_, err = e.service.Approve(t.Context(), ben, r.ID, yes(r))
	wantError(t, err, locksteward.ErrRefused, sentence)
	_, err = e.service.Deny(t.Context(), ben, r.ID, yes(r))
	wantError(t, err, locksteward.ErrRefused, sentence)
	if got := e.refusals(t); len(got) != 3 || got[0].Action != release.ActionDeny || got[0].Key != "lock:order:1" || got[2].Actor != "ana" {
		t.Errorf("refusals %+v", got)
	}
	// Reading works.
	if list, err := e.store.ListRequests(t.Context(), nil, "", 0); err != nil || len(list) != 1 {
		t.Errorf("list %v, %v", list, err)
	}
	if got, err := e.service.Get(t.Context(), r.ID); err != nil || got.State != locksteward.RequestPending {
		t.Errorf("get %v, %v", got.State, err)
	}
	if e.service.Enabled(target) {
		t.Error("release counts as enabled")
	}
	if err := e.service.Recover(t.Context()); err != nil {
		t.Error(err)
	}
	if !e.exists(t, "lock:order:1") {
		t.Error("the lock is gone")
	}
}

func TestRequestIsRefused(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.put(t, "lock:order:1", uuid, minute)
	e.put(t, "lock:off:1", uuid, minute)
	e.put(t, "my:lock", uuid, minute) // no class claims it
	e.do(t, "rpush", "lock:order:list", uuid)
	e.put(t, "lock:order:big", strings.Repeat("x", 5000), minute)
	before := len(e.refusals(t))
	for name, c := range map[string]struct {
		actor    release.Actor
		in       release.RequestInput
		sentinel error
		words    []string
	}{
		"role":       {ben, release.RequestInput{Target: target, Key: "lock:order:1", Reason: "x"}, locksteward.ErrRefused, []string{"requester", "users file"}},
		"no roles":   {release.Actor{Name: "dan"}, release.RequestInput{Target: target, Key: "lock:order:1", Reason: "x"}, locksteward.ErrRefused, []string{"requester"}},
		"agent name": {release.Actor{Name: "Agent", Roles: ana.Roles}, release.RequestInput{Target: target, Key: "lock:order:1", Reason: "x"}, locksteward.ErrRefused, []string{"another name"}},
		"class off":  {ana, release.RequestInput{Target: target, Key: "lock:off:1", Reason: "x"}, locksteward.ErrRefused, []string{"release: approve"}},
		"no class":   {ana, release.RequestInput{Target: target, Key: "my:lock", Reason: "x"}, locksteward.ErrRefused, []string{"no configured class", "release: approve"}},
		"library":    {ana, release.RequestInput{Target: target, Key: "lock:order:list", Reason: "x"}, locksteward.ErrRefused, []string{"nobody can say", "docs/libraries/unknown.md"}},
		"too large":  {ana, release.RequestInput{Target: target, Key: "lock:order:big", Reason: "x"}, locksteward.ErrRefused, []string{"too large"}},
	} {
		_, err := e.service.Request(t.Context(), c.actor, c.in)
		t.Log(name, err)
		wantError(t, err, c.sentinel, c.words...)
		if got := e.refusals(t); len(got) != before+1 || got[0].Actor != c.actor.Name || got[0].Key != c.in.Key {
			t.Errorf("%s: not in the audit trail", name)
		}
		before++
	}
	// Mistakes are no events.
	for name, c := range map[string]struct {
		actor    release.Actor
		in       release.RequestInput
		sentinel error
		words    []string
	}{
		"no reason":      {ana, release.RequestInput{Target: target, Key: "lock:order:1", Reason: " \n"}, locksteward.ErrInvalid, []string{"reason is empty"}},
		"long reason":    {ana, release.RequestInput{Target: target, Key: "lock:order:1", Reason: strings.Repeat("x", 1001)}, locksteward.ErrInvalid, []string{"1000"}},
		"binary reason":  {ana, release.RequestInput{Target: target, Key: "lock:order:1", Reason: "a\xff"}, locksteward.ErrInvalid, []string{"UTF-8"}},
		"control reason": {ana, release.RequestInput{Target: target, Key: "lock:order:1", Reason: "a\x1b[2J"}, locksteward.ErrInvalid, []string{"control"}},
		"nobody":         {release.Actor{Roles: ana.Roles}, release.RequestInput{Target: target, Key: "lock:order:1", Reason: "x"}, locksteward.ErrInvalid, []string{"sign in"}},
		"target":         {ana, release.RequestInput{Target: "nowhere", Key: "lock:order:1", Reason: "x"}, locksteward.ErrNotFound, []string{`"nowhere"`}},
		"lock":           {ana, release.RequestInput{Target: target, Key: "lock:order:none", Reason: "x"}, locksteward.ErrNotFound, []string{"lock:order:none", "locks list"}},
	} {
		_, err := e.service.Request(t.Context(), c.actor, c.in)
		t.Log(name, err)
		wantError(t, err, c.sentinel, c.words...)
	}
	if got := len(e.refusals(t)); got != before {
		t.Errorf("%d more refusals for mistakes", got-before)
	}
	if list, err := e.store.ListRequests(t.Context(), nil, "", 0); err != nil || len(list) != 0 {
		t.Errorf("requests were made: %v, %v", list, err)
	}
}

// fault: 72
func TestDecisionIsRefused(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.put(t, "lock:order:1", uuid, minute)
	r := e.request(t, eve, "lock:order:1")
	hash := func(h string) release.Decision { return release.Decision{Reason: "x", EvidenceHash: h} }

	approve := func(actor release.Actor, id string, w release.Decision) error {
		_, err := e.service.Approve(t.Context(), actor, id, w)
		return err
	}
	wantError(t, approve(eve, r.ID, yes(r)), locksteward.ErrRefused, "your own", "another approver")
	wantError(t, approve(release.Actor{Name: "EVE", Roles: eve.Roles}, r.ID, yes(r)), locksteward.ErrRefused, "your own")
	wantError(t, approve(ana, r.ID, yes(r)), locksteward.ErrRefused, "approver")
	if got := e.refusals(t); len(got) != 3 || got[0].Subject != r.ID {
		t.Errorf("refusals %+v", got)
	}
	wantError(t, approve(ben, r.ID, hash("")), locksteward.ErrInvalid, "evidence hash is missing")
	wantError(t, approve(ben, r.ID, hash(strings.Repeat("0", 64))), locksteward.ErrConflict, "evidence hash is not that")
	wantError(t, approve(ben, r.ID, release.Decision{EvidenceHash: r.EvidenceHash}), locksteward.ErrInvalid, "reason is empty")
	wantError(t, approve(ben, "r-none", yes(r)), locksteward.ErrNotFound, "r-none")
	_, err := e.service.Deny(t.Context(), ana, r.ID, yes(r))
	wantError(t, err, locksteward.ErrRefused, "approver")
	_, err = e.service.Deny(t.Context(), ben, r.ID, hash("other"))
	wantError(t, err, locksteward.ErrConflict)
	e.want(t, r, locksteward.RequestPending)
	if e.exec.count() != 0 || !e.exists(t, "lock:order:1") {
		t.Error("something was executed")
	}

	denied, err := e.service.Deny(t.Context(), ben, r.ID, release.Decision{Reason: "they still work"})
	if err != nil {
		t.Fatal(err)
	}
	e.want(t, denied, locksteward.RequestDenied)
	wantError(t, approve(cat, r.ID, yes(r)), locksteward.ErrConflict, "denied already", "final")
	_, err = e.service.Deny(t.Context(), cat, r.ID, yes(r))
	wantError(t, err, locksteward.ErrConflict, "final")
}

func TestTwoApprovals(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.put(t, "lock:two:1", uuid, minute)
	r := e.approve(t, ben, e.request(t, ana, "lock:two:1"))
	e.want(t, r, locksteward.RequestPending)
	for _, name := range []string{"ben", "BEN"} {
		_, err := e.service.Approve(t.Context(), release.Actor{Name: name, Roles: ben.Roles}, r.ID, yes(r))
		wantError(t, err, locksteward.ErrConflict, "another person")
	}
	if r = e.approve(t, cat, r); r.State != locksteward.RequestReleased || len(r.Decisions) != 2 {
		t.Fatalf("%s, decisions %+v", r.State, r.Decisions)
	}
	_, err := e.service.Approve(t.Context(), cat, r.ID, yes(r))
	wantError(t, err, locksteward.ErrConflict, "released already")

	// Who approved may still take fright.
	e.put(t, "lock:two:2", uuid, minute)
	r = e.approve(t, ben, e.request(t, ana, "lock:two:2"))
	r, err = e.service.Deny(t.Context(), ben, r.ID, release.Decision{Reason: "on second thought"})
	if err != nil {
		t.Fatal(err)
	}
	e.want(t, r, locksteward.RequestDenied)
}

func TestSelfApproval(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	// Where the class allows it.
	e.put(t, "lock:self:1", uuid, minute)
	e.want(t, e.approve(t, eve, e.request(t, eve, "lock:self:1")), locksteward.RequestReleased)
	// But never without identity.
	e.put(t, "lock:self:2", "1", 0)
	r := e.request(t, eve, "lock:self:2")
	_, err := e.service.Approve(t.Context(), eve, r.ID, yes(r))
	wantError(t, err, locksteward.ErrRefused, "cannot be distinguished from the next")
	// Where a rule of dead_when fired at the time of the request.
	e.put(t, "lock:dead:1", uuid, minute)
	r = e.request(t, eve, "lock:dead:1")
	_, err = e.service.Approve(t.Context(), eve, r.ID, yes(r))
	wantError(t, err, locksteward.ErrRefused, "your own")
	e.locks.fire("lock:dead:2", "hold/too-long", "holder/dead")
	e.put(t, "lock:dead:2", uuid, minute)
	e.want(t, e.approve(t, eve, e.request(t, eve, "lock:dead:2")), locksteward.RequestReleased)
	e.locks.fire("lock:dead:3", "ttl/none")
	e.put(t, "lock:dead:3", "1", 0)
	r = e.request(t, eve, "lock:dead:3")
	_, err = e.service.Approve(t.Context(), eve, r.ID, yes(r))
	wantError(t, err, locksteward.ErrRefused, "your own")
}

func TestOpenRequestIsNamedOrSuperseded(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.put(t, "lock:order:1", uuid, minute)
	first := e.request(t, ana, "lock:order:1")
	_, err := e.service.Request(t.Context(), eve, release.RequestInput{Target: target, Key: "lock:order:1", Reason: "x"})
	wantError(t, err, locksteward.ErrConflict, first.ID, "ana")

	e.put(t, "lock:order:1", "7d0c5b1e-28fa-4c96-b3e1-90ad4f6c2b75", minute)
	second := e.request(t, eve, "lock:order:1")
	first, err = e.service.Get(t.Context(), first.ID)
	if err != nil {
		t.Fatal(err)
	}
	e.want(t, first, locksteward.RequestSuperseded)
	if got := <-e.finals; got.ID != first.ID {
		t.Errorf("OnFinal was notified of %s", got.ID)
	}
	_, err = e.service.Approve(t.Context(), ben, first.ID, yes(first))
	wantError(t, err, locksteward.ErrConflict, "superseded already")
	e.want(t, e.approve(t, ben, second), locksteward.RequestReleased)
}

// fault: 72
func TestExpiry(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.put(t, "lock:order:1", uuid, 0)
	e.put(t, "lock:order:2", uuid, 0)
	e.put(t, "lock:order:3", uuid, 0)
	late, due, again := e.request(t, ana, "lock:order:1"), e.request(t, ana, "lock:order:2"), e.request(t, ana, "lock:order:3")
	e.clock.add(release.DefaultRequestTTL - time.Second)
	if n, err := e.service.ExpireDue(t.Context()); n != 0 || err != nil {
		t.Fatalf("%d expired too early, %v", n, err)
	}
	e.clock.add(time.Second)
	_, err := e.service.Approve(t.Context(), ben, late.ID, yes(late))
	wantError(t, err, locksteward.ErrConflict, "expired")
	late.State = locksteward.RequestExpired
	e.want(t, late, locksteward.RequestExpired)
	e.wantLast(t, late, "agent release.expire expired")
	// A new request takes the place of one whose time is over.
	e.want(t, e.request(t, ana, "lock:order:3"), locksteward.RequestPending)
	again.State = locksteward.RequestExpired
	e.want(t, again, locksteward.RequestExpired)
	e.wantLast(t, again, "agent release.expire expired")
	if n, err := e.service.ExpireDue(t.Context()); n != 1 || err != nil {
		t.Fatalf("%d expired, %v; want 1", n, err)
	}
	due.State = locksteward.RequestExpired
	e.want(t, due, locksteward.RequestExpired)
	e.wantLast(t, due, "agent release.expire expired")
	if !e.exists(t, "lock:order:1") || e.exec.count() != 0 {
		t.Error("something was executed")
	}
}

func TestConfiguredPause(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.put(t, "lock:order:1", uuid, minute)
	r := e.request(t, ana, "lock:order:1")
	e.newService(t, release.Config{Paused: true})
	_, err := e.service.Request(t.Context(), ana, release.RequestInput{Target: target, Key: "lock:order:1", Reason: "x"})
	wantError(t, err, locksteward.ErrRefused, "paused", "release.paused")
	_, err = e.service.Approve(t.Context(), ben, r.ID, yes(r))
	wantError(t, err, locksteward.ErrRefused, "paused")
	if e.service.Enabled(target) {
		t.Error("release counts as enabled")
	}
	if r, err = e.service.Deny(t.Context(), ben, r.ID, yes(r)); err != nil {
		t.Fatal(err)
	}
	e.want(t, r, locksteward.RequestDenied)
}

func TestPolicyThatChangedSinceTheRequest(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.put(t, "lock:order:1", uuid, minute)
	r := e.request(t, ana, "lock:order:1")
	off, err := class.NewSet([]class.Class{{Name: "orders", Match: []string{"lock:order:*"}}})
	if err != nil {
		t.Fatal(err)
	}
	e.reloadClasses(t, off)
	_, err = e.service.Approve(t.Context(), ben, r.ID, yes(r))
	wantError(t, err, locksteward.ErrRefused, "does not allow releases")
	e.reloadClasses(t, new(class.Set))
	_, err = e.service.Approve(t.Context(), ben, r.ID, yes(r))
	wantError(t, err, locksteward.ErrRefused, "not configured any more")
	e.want(t, r, locksteward.RequestPending)
}

// fault: 71
func TestConcurrentApprovalsExecuteOnce(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	for range 10 {
		e.put(t, "lock:order:1", uuid, minute)
		r := e.request(t, ana, "lock:order:1")
		before := e.exec.count()
		var mu sync.Mutex
		var released, conflicts int
		var wg sync.WaitGroup
		for _, name := range []string{"p1", "p2", "p3", "p4"} {
			wg.Go(func() {
				got, err := e.service.Approve(t.Context(), release.Actor{Name: name, Roles: ben.Roles}, r.ID, yes(r))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && got.State == locksteward.RequestReleased:
					released++
				case err != nil:
					wantError(t, err, locksteward.ErrConflict)
					conflicts++
				default:
					t.Errorf("state %s", got.State)
				}
			})
		}
		wg.Wait()
		if released != 1 || conflicts != 3 || e.exec.count() != before+1 {
			t.Fatalf("released %d, conflicts %d, executed %d times", released, conflicts, e.exec.count()-before)
		}
	}
}

func TestPropose(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	propose := func(key string, rules ...string) *locksteward.Request {
		t.Helper()
		lock, _, err := e.locks.ReadLock(t.Context(), target, key)
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.service.Propose(t.Context(), lock, rules)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	e.put(t, "lock:dead:1", uuid, 0)
	e.put(t, "lock:order:1", uuid, 0)
	if r := propose("lock:order:1", "ttl/none"); r != nil {
		t.Errorf("a class without dead_when: %+v", r)
	}
	if r := propose("lock:dead:1", "hold/too-long"); r != nil {
		t.Errorf("a rule that is not in dead_when: %+v", r)
	}
	r := propose("lock:dead:1", "hold/too-long", "ttl/none")
	if r == nil || r.Requester != release.AgentName || !slices.Equal(r.Evidence.Findings, []string{"hold/too-long", "ttl/none"}) || !strings.Contains(r.Reason, "ttl/none") {
		t.Fatalf("proposed %+v", r)
	}
	if again := propose("lock:dead:1", "ttl/none"); again != nil {
		t.Errorf("proposed twice: %+v", again)
	}
	if _, err := e.service.Deny(t.Context(), ben, r.ID, yes(*r)); err != nil {
		t.Fatal(err)
	}
	if again := propose("lock:dead:1", "ttl/none"); again != nil {
		t.Errorf("proposed after a denial: %+v", again)
	}
	// Another hold is another matter.
	e.put(t, "lock:dead:1", "7d0c5b1e-28fa-4c96-b3e1-90ad4f6c2b75", 0)
	r = propose("lock:dead:1", "ttl/none")
	if r == nil {
		t.Fatal("nothing proposed for a new hold")
	}
	e.want(t, e.approve(t, ben, *r), locksteward.RequestReleased)
	if got := e.trail(t, r.ID); got[0] != "agent release.propose pending" {
		t.Errorf("trail %q", got)
	}
	if got := e.refusals(t); len(got) != 0 {
		t.Errorf("refusals %+v", got)
	}
	// The expired proposal is not repeated either.
	e.put(t, "lock:dead:2", uuid, 0)
	if r = propose("lock:dead:2", "ttl/none"); r == nil {
		t.Fatal("nothing proposed")
	}
	e.clock.add(2 * time.Hour)
	if _, err := e.service.ExpireDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again := propose("lock:dead:2", "ttl/none"); again != nil {
		t.Errorf("proposed after expiry: %+v", again)
	}
}

// TestRefusalKeepsTheBeginningOfAKey: the trail is kept for ever, and anyone who has a
// token of any role can be refused as often as they like.
func TestRefusalKeepsTheBeginningOfAKey(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	key := "lock:order:" + strings.Repeat("\x00", 900_000)
	_, err := e.service.Request(t.Context(), ben, release.RequestInput{Target: target, Key: key, Reason: "x"})
	wantError(t, err, locksteward.ErrRefused, "requester")
	got := e.refusals(t)
	if len(got) != 1 || !strings.HasPrefix(key, got[0].Key) || !strings.HasPrefix(got[0].Key, "lock:order:") {
		t.Fatalf("refusals: %d, key of %d bytes", len(got), len(got[0].Key))
	}
	if size := len(got[0].Key) + len(got[0].Detail); size > 16<<10 {
		t.Errorf("the entry has %d bytes", size)
	}
	if want := fmt.Sprintf(`"key_bytes":%d`, len(key)); !strings.Contains(string(got[0].Detail), want) {
		t.Errorf("detail %s lacks %s", got[0].Detail, want)
	}
}
