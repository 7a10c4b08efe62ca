package release_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/release"
)

var (
	admin   = release.Actor{Name: "adm", Roles: []release.Role{release.RoleAdmin}}
	breaker = release.Actor{Name: "bea", Roles: []release.Role{release.RoleBreakGlass}}
)

// fault: 75
func TestCapsBindPeople(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	var last locksteward.Request
	for i := range 3 {
		key := fmt.Sprintf("lock:few:%d", i)
		e.put(t, key, uuid, 1000*minute)
		last = e.request(t, ana, key)
		if i < 2 {
			e.want(t, e.approve(t, ben, last), locksteward.RequestReleased)
		}
	}
	_, err := e.service.Approve(t.Context(), ben, last.ID, yes(last))
	wantError(t, err, locksteward.ErrRefused, "max_per_hour", "at most 2")
	// The count is the store's: a restart does not forget it.
	e.newService(t, release.Config{})
	_, err = e.service.Approve(t.Context(), ben, last.ID, yes(last))
	wantError(t, err, locksteward.ErrRefused, "max_per_hour")
	// Another class is not hindered, until all together are too many.
	e.put(t, "lock:order:1", uuid, minute)
	e.want(t, e.approve(t, ben, e.request(t, ana, "lock:order:1")), locksteward.RequestReleased)
	e.newService(t, release.Config{MaxPerHour: 3})
	e.put(t, "lock:order:1", uuid, minute)
	other := e.request(t, ana, "lock:order:1")
	_, err = e.service.Approve(t.Context(), ben, other.ID, yes(other))
	wantError(t, err, locksteward.ErrRefused, "release.max_per_hour")
	e.clock.add(59 * time.Minute)
	_, err = e.service.Approve(t.Context(), ben, last.ID, yes(last))
	wantError(t, err, locksteward.ErrRefused, "max_per_hour")
}

func TestPauseOfAnAdmin(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.put(t, "lock:order:1", uuid, minute)
	done := e.approve(t, ben, e.request(t, ana, "lock:order:1"))
	e.put(t, "lock:order:2", uuid, minute)
	r := e.request(t, ana, "lock:order:2")
	wantError(t, e.service.Pause(t.Context(), eve, release.PauseAll, time.Time{}, "x"), locksteward.ErrRefused, "admin")
	wantError(t, e.service.Pause(t.Context(), admin, release.PauseAll, time.Time{}, " "), locksteward.ErrInvalid, "reason")
	if err := e.service.Pause(t.Context(), admin, release.PauseAll, time.Time{}, "wrong locks go"); err != nil {
		t.Fatal(err)
	}
	if len(e.reported.of(locksteward.EventPaused)) != 1 || e.service.Enabled(target) {
		t.Error("nobody was notified, or release counts as enabled")
	}
	// It outlives the agent.
	e.newService(t, release.Config{})
	_, err := e.service.Approve(t.Context(), ben, r.ID, yes(r))
	wantError(t, err, locksteward.ErrRefused, "all releases are paused", "adm", "resume")
	_, err = e.service.Request(t.Context(), ana, release.RequestInput{Target: target, Key: "lock:order:2", Reason: "x"})
	wantError(t, err, locksteward.ErrRefused, "paused")
	// What was done wrong can be undone all the same.
	u, err := e.service.Undo(t.Context(), ben, done.ID, "wrong")
	if err != nil {
		t.Fatal(err)
	}
	e.want(t, u, locksteward.RequestReleased)
	if got := e.service.Pauses().All; got == nil || got.By != "adm" {
		t.Errorf("pause %+v", got)
	}
	if err := e.service.Resume(t.Context(), admin, release.PauseAll, "mended"); err != nil {
		t.Fatal(err)
	}
	e.want(t, e.approve(t, ben, r), locksteward.RequestReleased)
}

// TestPauseAtAnotherReplica: what an admin said to one replica holds for the next
// word to another, both ways.
func TestPauseAtAnotherReplica(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	other := e.service
	e.newService(t, release.Config{})
	e.put(t, "lock:order:1", uuid, minute)
	r := e.request(t, ana, "lock:order:1")
	e.put(t, "lock:order:2", uuid, minute)
	ask := func() error {
		_, err := e.service.Request(t.Context(), ana, release.RequestInput{Target: target, Key: "lock:order:2", Reason: "x"})
		return err
	}
	if err := other.Pause(t.Context(), admin, release.PauseAll, time.Time{}, "wrong locks go"); err != nil {
		t.Fatal(err)
	}
	wantError(t, ask(), locksteward.ErrRefused, "all releases are paused")
	_, err := e.service.Approve(t.Context(), ben, r.ID, yes(r))
	wantError(t, err, locksteward.ErrRefused, "all releases are paused")
	if err := other.Resume(t.Context(), admin, release.PauseAll, "mended"); err != nil {
		t.Fatal(err)
	}
	e.want(t, e.approve(t, ben, r), locksteward.RequestReleased)
	if err := other.Pause(t.Context(), admin, release.PauseAll, time.Time{}, "again"); err != nil {
		t.Fatal(err)
	}
	if err := other.Resume(t.Context(), admin, release.PauseAll, "mended"); err != nil {
		t.Fatal(err)
	}
	if err := ask(); err != nil {
		t.Errorf("after the resume: %v", err)
	}
}

// TestUnknownPauseIsOn: until it is known that nobody paused all releases,
// nothing is released.
func TestUnknownPauseIsOn(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.put(t, "lock:order:1", uuid, minute)
	e.settingsFail.Store(true)
	e.newService(t, release.Config{})
	_, err := e.service.Request(t.Context(), ana, release.RequestInput{Target: target, Key: "lock:order:1", Reason: "x"})
	wantError(t, err, locksteward.ErrRefused, "not known", "log")
	if err := e.service.Recover(t.Context()); !errors.Is(err, errSettings) {
		t.Errorf("recover: %v", err)
	}
	e.settingsFail.Store(false)
	e.want(t, e.approve(t, ben, e.request(t, ana, "lock:order:1")), locksteward.RequestReleased)
}

func TestBreakGlass(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	in := release.RequestInput{Target: target, Key: "lock:two:1", Reason: "the shop is down"}
	e.put(t, in.Key, uuid, minute)
	_, err := e.service.BreakGlass(t.Context(), eve, in, release.Decision{})
	wantError(t, err, locksteward.ErrRefused, "break-glass")
	_, err = e.service.BreakGlass(t.Context(), breaker, in, release.Decision{})
	wantError(t, err, locksteward.ErrRefused, "no receiver")
	e.received.Store(1)
	waits := e.request(t, ana, in.Key) // gives way
	noReason := in
	noReason.Reason = ""
	_, err = e.service.BreakGlass(t.Context(), breaker, noReason, release.Decision{})
	wantError(t, err, locksteward.ErrInvalid, "reason")
	r, err := e.service.BreakGlass(t.Context(), breaker, in, release.Decision{})
	if err != nil {
		t.Fatal(err)
	}
	e.want(t, r, locksteward.RequestReleased)
	waits.State = locksteward.RequestSuperseded
	e.want(t, waits, locksteward.RequestSuperseded)
	reported := e.reported.of(locksteward.EventBreakGlass)
	if len(reported) != 1 || !reported[0].Loud || !r.Evidence.BreakGlass {
		t.Errorf("reported %+v", reported)
	}
	// Not past what makes a release safe.
	e.put(t, "lock:order:1", "1", 0)
	in.Key = "lock:order:1"
	_, err = e.service.BreakGlass(t.Context(), breaker, in, release.Decision{})
	wantError(t, err, locksteward.ErrInvalid, "confirm")
	in.Key = "lock:off:1"
	e.put(t, in.Key, uuid, minute)
	_, err = e.service.BreakGlass(t.Context(), breaker, in, release.Decision{})
	wantError(t, err, locksteward.ErrRefused, "does not allow")
}

// fault: 29
func TestResurrectionIsReported(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	e.put(t, "lock:order:1", uuid, minute)
	r := e.approve(t, ben, e.request(t, ana, "lock:order:1"))
	look := func() int {
		t.Helper()
		if err := e.service.WatchReleased(t.Context()); err != nil {
			t.Fatal(err)
		}
		return len(e.reported.of(locksteward.EventResurrected))
	}
	if n := look(); n != 0 {
		t.Fatalf("%d reports of a lock that is gone", n)
	}
	e.newService(t, release.Config{}) // survives a restart
	e.put(t, "lock:order:1", uuid, minute)
	if n := look(); n != 1 {
		t.Fatalf("%d reports, want 1", n)
	}
	if n := look(); n != 1 {
		t.Errorf("reported again")
	}
	got := e.trail(t, r.ID)
	if got[len(got)-1] != "agent release.resurrected resurrected" {
		t.Errorf("trail %q", got)
	}
	// The next holder is no resurrection, and an undo neither.
	e.put(t, "lock:order:2", uuid, minute)
	e.approve(t, ben, e.request(t, ana, "lock:order:2"))
	e.put(t, "lock:order:2", "somebody else", minute)
	e.put(t, "lock:order:3", uuid, minute)
	undone := e.approve(t, ben, e.request(t, ana, "lock:order:3"))
	if _, err := e.service.Undo(t.Context(), ben, undone.ID, "wrong"); err != nil {
		t.Fatal(err)
	}
	if n := look(); n != 1 {
		t.Errorf("%d reports", n)
	}
}

// TestDryRunTouchesNothing: what would be sent is shown, with everything but the
// token, and neither server nor store has changed.
func TestDryRunTouchesNothing(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	key := "lock:order:1"
	e.put(t, key, uuid, minute)
	before := e.rdb.Dump(t.Context(), key).Val()
	in := release.RequestInput{Target: target, Key: key, Reason: "look first"}
	r, preview, err := e.service.DryRun(t.Context(), ana, in)
	if err != nil {
		t.Fatal(err)
	}
	if !preview.Found || len(preview.Keys) != 3 || preview.Keys[0] != key || !strings.Contains(preview.Script, "carry_out") || r.Evidence.Key != key {
		t.Errorf("preview %+v", preview)
	}
	if all := fmt.Sprintf("%+v %+v", r, preview); strings.Contains(all, uuid) || !strings.Contains(all, "•••") {
		t.Errorf("the token is shown, or nothing masks it: %s", all)
	}
	keys, err := e.rdb.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) != 1 || e.rdb.Dump(t.Context(), key).Val() != before {
		t.Errorf("keys %q, %v", keys, err)
	}
	if list, err := e.store.ListRequests(t.Context(), nil, "", 0); err != nil || len(list) != 0 {
		t.Errorf("requests %+v, %v", list, err)
	}
	_, _, err = e.service.DryRun(t.Context(), ben, in)
	wantError(t, err, locksteward.ErrRefused, "requester")

	// Of a request it says what changed since.
	r = e.request(t, ana, key)
	e.renew(t, key, 2*minute)
	if preview, err = e.service.PreviewRequest(t.Context(), r.ID); err != nil || len(preview.Differences) != 1 || preview.Script != "" {
		t.Errorf("preview %+v, %v", preview, err)
	}
}

// TestRequestForWhatCannotBeReleased names the reason when it is asked for, not
// when it was approved.
func TestRequestForWhatCannotBeReleased(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	const a, b = "WEB_01_4711_0f8fad5bd9cb469fa16570867728950e", "WEB_02_17_9f86d081884c7d659a2feaa0c55ad015"
	e.do(t, "sadd", "lock:order:doc.readers", a, b)
	e.renew(t, "lock:order:doc.readers", minute)
	_, err := e.service.Request(t.Context(), ana, release.RequestInput{Target: target, Key: "lock:order:doc.readers", Reason: "x"})
	wantError(t, err, locksteward.ErrRefused, "2 hold it together", "docs/libraries/distributedlock-readers.md")
	if got := e.refusals(t); len(got) != 1 {
		t.Errorf("refusals %+v", got)
	}
}

// TestExecutionIsOneRoundTrip: after the look, one script is all that is sent.
func TestExecutionIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL(releaserLine(), "scanner on >"+scannerPassword+" ~* &* +@all"))
	proxy := testredis.NewProxy(t, srv.Addr())
	e := newEnvOn(t, srv.URL(), srv.Client(t), options{url: "redis://" + proxy.Addr(), username: "releaser"})
	e.put(t, "lock:order:1", uuid, minute)
	r := e.request(t, ana, "lock:order:1")
	looked := proxy.Replies()
	if _, err := e.service.PreviewRequest(t.Context(), r.ID); err != nil { // a look, and a script that does nothing
		t.Fatal(err)
	}
	looked = proxy.Replies() - looked
	e.do(t, "config", "resetstat")
	acted := proxy.Replies()
	e.want(t, e.approve(t, ben, r), locksteward.RequestReleased)
	acted = proxy.Replies() - acted
	evals := 0
	for line := range strings.Lines(e.rdb.Info(t.Context(), "commandstats").Val()) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_eval:calls="); ok {
			_, _ = fmt.Sscanf(rest, "%d", &evals)
		}
	}
	if acted != looked || evals != 1 {
		t.Errorf("a look with a script is %d replies, an act %d, with %d scripts; want as many, and one", looked, acted, evals)
	}
	t.Logf("connection and look %d replies, script 1", looked)
}
