package release_test

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/release"
)

func TestTwoMustDeny(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.put(t, "lock:three:1", uuid, minute)
	r := e.request(t, ana, "lock:three:1")
	deny := func(who release.Actor) (locksteward.Request, error) {
		return e.service.Deny(t.Context(), who, r.ID, release.Decision{Reason: "they still work"})
	}
	got, err := deny(ben)
	if err != nil || got.State != locksteward.RequestPending {
		t.Fatalf("after one denial of two: %s, %v", got.State, err)
	}
	_, err = deny(ben)
	wantError(t, err, locksteward.ErrConflict, "has decided")
	_, err = e.service.Approve(t.Context(), ben, r.ID, yes(r))
	wantError(t, err, locksteward.ErrConflict, "has decided")
	// Who approved and takes it back counts as a denial, and no more as a yes.
	e.want(t, e.approve(t, cat, r), locksteward.RequestPending)
	if got, err = deny(cat); err != nil {
		t.Fatal(err)
	}
	e.want(t, got, locksteward.RequestDenied)
	if e.exec.count() != 0 || !e.exists(t, "lock:three:1") {
		t.Error("something was executed")
	}
}

func TestApproversOfAClass(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.put(t, "lock:teams:1", uuid, minute)
	r := e.request(t, ana, "lock:teams:1")
	_, err := e.service.Approve(t.Context(), ben, r.ID, yes(r))
	wantError(t, err, locksteward.ErrRefused, "team:checkout")
	if got := e.refusals(t); len(got) != 1 || got[0].Actor != "ben" {
		t.Errorf("refusals %+v", got)
	}
	_, err = e.service.Deny(t.Context(), ben, r.ID, release.Decision{Reason: "no"})
	wantError(t, err, locksteward.ErrRefused, "team:checkout")
	dan := release.Actor{Name: "dan", Roles: ben.Roles, Teams: []string{"checkout"}}
	e.want(t, e.approve(t, dan, r), locksteward.RequestReleased)
	e.put(t, "lock:teams:1", uuid, minute)
	e.want(t, e.approve(t, cat, e.request(t, ana, "lock:teams:1")), locksteward.RequestReleased)
}

func TestSelfApprovalThatIsReported(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.put(t, "lock:loud:1", uuid, minute)
	r := e.request(t, eve, "lock:loud:1")
	_, err := e.service.Approve(t.Context(), eve, r.ID, yes(r))
	wantError(t, err, locksteward.ErrRefused, "no receiver", "alert.receivers")
	e.received.Store(1)
	e.want(t, e.approve(t, eve, r), locksteward.RequestReleased)
	if got := e.reported.of(locksteward.EventSelfApproved); len(got) != 1 || got[0].Actor != "eve" || got[0].Request.ID != r.ID {
		t.Errorf("reported %+v", got)
	}
	// Another person's decision is no such event.
	e.put(t, "lock:loud:1", uuid, minute)
	e.want(t, e.approve(t, ben, e.request(t, eve, "lock:loud:1")), locksteward.RequestReleased)
	if got := e.reported.of(locksteward.EventSelfApproved); len(got) != 1 {
		t.Errorf("reported %d times", len(got))
	}
}

// TestProvenDeathNeedsOneApprover: even where the class asks for two, and even the
// requester, but only where it is proven and the lock can be distinguished from the next.
func TestProvenDeathNeedsOneApprover(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	fire := func(key, value string, proof locksteward.Proof, ms int) locksteward.Request {
		e.locks.fire(key, "holder/dead")
		e.locks.prove(proof)
		e.put(t, key, value, ms)
		return e.request(t, eve, key)
	}
	r := fire("lock:two:1", uuid, locksteward.Proven, minute)
	if r.Evidence.Proof != locksteward.Proven {
		t.Fatalf("evidence %+v", r.Evidence)
	}
	e.want(t, e.approve(t, eve, r), locksteward.RequestReleased)

	r = fire("lock:two:2", uuid, locksteward.Presumed, minute)
	_, err := e.service.Approve(t.Context(), eve, r.ID, yes(r))
	wantError(t, err, locksteward.ErrRefused, "your own")
	r = fire("lock:two:3", "1", locksteward.Proven, 0)
	_, err = e.service.Approve(t.Context(), eve, r.ID, yes(r))
	wantError(t, err, locksteward.ErrRefused, "cannot be distinguished")
	e.want(t, e.approve(t, ben, r), locksteward.RequestPending)
}

// TestEvidenceThatWasChangedInTheStore: anyone who can write there cannot turn an
// approval into another one.
func TestEvidenceThatWasChangedInTheStore(t *testing.T) {
	t.Parallel()
	r := locksteward.Request{Evidence: locksteward.Evidence{Key: "lock:order:1", TokenDigest: "a", At: time.Unix(1, 0)}}
	r.EvidenceHash = release.EvidenceHash(r.Evidence)
	r.Decisions = []locksteward.Decision{{By: "ben", Approve: true, EvidenceHash: r.EvidenceHash}}
	if !release.Intact(r) {
		t.Error("a request as it was approved counts as changed")
	}
	for name, change := range map[string]func(*locksteward.Request){
		"key":              func(r *locksteward.Request) { r.Evidence.Key = "lock:order:2" },
		"act":              func(r *locksteward.Request) { r.Evidence.Act = locksteward.ActTakeOver },
		"holder alive":     func(r *locksteward.Request) { r.Evidence.HolderAlive = true },
		"evidence, hashed": func(r *locksteward.Request) { r.Evidence.Key = "k"; r.EvidenceHash = release.EvidenceHash(r.Evidence) },
	} {
		other := r
		change(&other)
		if release.Intact(other) {
			t.Errorf("%s: not seen", name)
		}
	}
}

// TestApprovalsRaisedWhileTheAgentWasAway: what was approved under a weaker policy
// is not executed after the restart.
// fault: 72
func TestApprovalsRaisedWhileTheAgentWasAway(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.put(t, "lock:order:1", uuid, minute)
	r := e.request(t, ana, "lock:order:1")
	_, err := e.store.UpdateRequest(t.Context(), r.ID, func(r *locksteward.Request) ([]locksteward.Entry, error) {
		r.State, r.ApprovedUntil = locksteward.RequestApproved, e.clock.now().Add(release.DefaultApprovalTTL)
		r.Decisions = []locksteward.Decision{{By: "ben", Approve: true, Reason: "x", At: e.clock.now(), EvidenceHash: r.EvidenceHash}}
		return []locksteward.Entry{{At: e.clock.now(), Actor: "ben", Action: release.ActionApprove, Subject: r.ID}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	set, err := class.NewSet([]class.Class{{Name: "orders", Match: []string{"lock:order:*"}, Release: class.ReleaseApprove, Approvals: 2}})
	if err != nil {
		t.Fatal(err)
	}
	e.reloadClasses(t, set)
	if err := e.service.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e.exec.count() != 0 || !e.exists(t, "lock:order:1") {
		t.Error("it was executed")
	}
	e.clock.add(release.DefaultApprovalTTL)
	if n, err := e.service.ExpireDue(t.Context()); n != 1 || err != nil {
		t.Errorf("%d expired, %v", n, err)
	}
	e.wantLast(t, r, "agent release.expire expired")
	// Nor does anybody bring it back.
	_, err = e.service.Approve(t.Context(), cat, r.ID, yes(r))
	wantError(t, err, locksteward.ErrConflict, "expired")
	if e.exec.count() != 0 || !e.exists(t, "lock:order:1") {
		t.Error("it was executed after its time")
	}
}

func TestReminderBeforeTheEnd(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.put(t, "lock:order:1", uuid, 0)
	r := e.request(t, ana, "lock:order:1")
	remind := func() int {
		t.Helper()
		if err := e.service.Remind(t.Context()); err != nil {
			t.Fatal(err)
		}
		return len(e.reported.of(locksteward.EventReminder))
	}
	if n := remind(); n != 0 {
		t.Fatalf("%d reminders at once", n)
	}
	e.clock.add(release.DefaultRequestTTL - release.DefaultRemindBefore)
	if n := remind(); n != 1 {
		t.Fatalf("%d reminders before the end", n)
	}
	if n := remind(); n != 1 {
		t.Errorf("reminded again: %d", n)
	}
	e.newService(t, release.Config{})
	if n := remind(); n != 1 {
		t.Errorf("reminded again after a restart: %d", n)
	}
	if got := e.reported.of(locksteward.EventReminder)[0]; got.Request.ID != r.ID || got.ID != r.ID+"/release.reminder" {
		t.Errorf("reported %+v", got)
	}
}

// The store gets each event in the transaction that writes its entry.
func TestEventsAreWrittenWithTheirEntries(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.put(t, "lock:order:1", uuid, minute)
	e.approve(t, ben, e.request(t, ana, "lock:order:1"))
	if got := e.reported.list; len(got) != 2 || got[0].Kind != locksteward.EventRequested || got[1].Kind != locksteward.EventFinal {
		t.Errorf("events %+v", got)
	}
}
