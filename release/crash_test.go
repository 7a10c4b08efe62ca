package release_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/releaser"
	"github.com/locksteward/locksteward/store"
)

// childEnv makes this test binary play an agent that approves a request and is
// killed on the way: "approve|undo|lift before|after URL DSN ID HASH".
const childEnv = "LOCKSTEWARD_RELEASE_TEST_CHILD"

// hangs stops for ever right before or right after the act.
type hangs struct {
	source.Releaser
	stage string
}

func (h hangs) Release(ctx context.Context, r locksteward.Request) (source.Outcome, error) {
	if h.stage == "after" {
		if _, err := h.Releaser.Release(ctx, r); err != nil {
			return source.Outcome{}, err
		}
	}
	fmt.Println("reached")
	select {}
}

func child() {
	if err := actAndHang(strings.Fields(os.Getenv(childEnv))); err != nil {
		fmt.Println("error:", err)
	}
}

func actAndHang(args []string) error {
	ctx := context.Background()
	verb, args := args[0], args[1:]
	st, err := store.Open(ctx, args[2])
	if err != nil {
		return err
	}
	digest, err := st.DigestKey(ctx)
	if err != nil {
		return err
	}
	exec, err := releaser.New(releaser.Config{
		Connect: connect.Config{URL: args[1], Username: "releaser", Password: releaserPassword}, Digest: digest,
	})
	if err != nil {
		return err
	}
	classes, err := class.NewSet([]class.Class{{Name: "orders", Match: []string{"lock:order:*"}, Release: class.ReleaseApprove}})
	if err != nil {
		return err
	}
	s, err := release.New(zap.NewNop(), release.Config{}, release.Deps{
		Store: st, Locks: &locks{}, Classes: classes, Releasers: map[string]source.Releaser{target: hangs{exec, args[0]}},
	})
	if err != nil {
		return err
	}
	switch verb {
	case "undo":
		_, err = s.Undo(ctx, ben, args[3], "x")
	case "lift":
		_, err = s.Lift(ctx, ben, args[3], "x")
	default:
		_, err = s.Approve(ctx, ben, args[3], release.Decision{Reason: "x", EvidenceHash: args[4], ConfirmNoIdentity: true})
	}
	return err
}

// killDuring lets another process approve, undo or lift r and kills it at the
// stage, then opens the store again.
func (e *env) killDuring(t *testing.T, verb, stage string, r locksteward.Request) {
	t.Helper()
	if err := e.store.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join([]string{verb, stage, e.url, e.dsn, r.ID, r.EvidenceHash}, " "))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	said := lines.Scan()
	_ = cmd.Process.Kill()
	if _, killed := errors.AsType[*exec.ExitError](cmd.Wait()); !said || lines.Text() != "reached" || !killed {
		t.Fatalf("child said %q", lines.Text())
	}
	e.openStore(t)
	e.newService(t, release.Config{})
}

// TestKilledBetweenIntentAndOutcome is fault 77 of reliability.md §4.7 for the
// act itself: after the restart each intent has its true outcome.
// fault: 77
func TestKilledBetweenIntentAndOutcome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stage     string
		value     string
		ttl       time.Duration
		meanwhile func(t *testing.T, e *env)
		want      locksteward.RequestState
		exists    bool
	}{
		"after the act":      {stage: "after", value: uuid, ttl: time.Minute, want: locksteward.RequestReleased},
		"after, no identity": {stage: "after", value: "1", want: locksteward.RequestReleased},
		"after, and taken anew": {
			stage: "after", value: "1", want: locksteward.RequestReleased, exists: true,
			meanwhile: func(t *testing.T, e *env) { e.do(t, "set", "lock:order:1", "1") },
		},
		"before the act":  {stage: "before", value: uuid, ttl: time.Minute, want: locksteward.RequestFailed, exists: true},
		"before, lineage": {stage: "before", value: "host-1", ttl: time.Minute, want: locksteward.RequestFailed, exists: true},
		"before, renewed": {
			stage: "before", value: uuid, ttl: time.Minute, want: locksteward.RequestFailed, exists: true,
			meanwhile: func(t *testing.T, e *env) { e.do(t, "pexpire", "lock:order:1", minute+5000) },
		},
		"before, no identity": {stage: "before", value: "1", want: locksteward.RequestUnknown, exists: true},
		"before, and gone": {
			stage: "before", value: uuid, ttl: time.Minute, want: locksteward.RequestUnknown,
			meanwhile: func(t *testing.T, e *env) { e.do(t, "del", "lock:order:1") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			if err := e.rdb.Set(t.Context(), "lock:order:1", c.value, c.ttl).Err(); err != nil {
				t.Fatal(err)
			}
			r := e.request(t, ana, "lock:order:1")
			e.killDuring(t, "approve", c.stage, r)
			if c.meanwhile != nil {
				c.meanwhile(t, e)
			}
			r.State = locksteward.RequestExecuting
			e.want(t, r, locksteward.RequestExecuting)
			if err := e.service.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			r, err := e.service.Get(t.Context(), r.ID)
			if err != nil {
				t.Fatal(err)
			}
			e.want(t, r, c.want)
			if c.want == locksteward.RequestReleased {
				e.wantConfirmed(t, r, source.ConfirmedByRecord)
			} else {
				e.wantConfirmed(t, r, "") // the server has no record: the look reported
			}
			if e.exists(t, "lock:order:1") != c.exists {
				t.Errorf("the lock exists: %t, want %t (%s)", !c.exists, c.exists, r.Outcome)
			}
			if e.exec.count() != 0 {
				t.Error("it was executed again")
			}
			// Twice is as once.
			if err := e.service.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			e.want(t, r, c.want)
		})
	}
}

// TestKilledBetweenApprovalAndIntent: an approval is not lost, and not older
// than it may be.
// fault: 72
func TestKilledBetweenApprovalAndIntent(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("late=", late), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.do(t, "set", "lock:order:1", uuid, "px", minute)
			r := e.request(t, ana, "lock:order:1")
			// What the store holds when the agent dies between the two.
			_, err := e.store.UpdateRequest(t.Context(), r.ID, func(r *locksteward.Request) ([]locksteward.Entry, error) {
				r.State, r.ApprovedUntil = locksteward.RequestApproved, e.clock.now().Add(release.DefaultApprovalTTL)
				r.Decisions = []locksteward.Decision{{By: "ben", Approve: true, Reason: "x", At: e.clock.now(), EvidenceHash: r.EvidenceHash}}
				return []locksteward.Entry{{At: e.clock.now(), Actor: "ben", Action: release.ActionApprove, Subject: r.ID, Outcome: "approved"}}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			want, line := locksteward.RequestReleased, "agent release.execute released"
			if late {
				e.clock.add(release.DefaultApprovalTTL)
				want, line = locksteward.RequestExpired, "agent release.expire expired"
			}
			if err := e.service.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			if r, err = e.service.Get(t.Context(), r.ID); err != nil {
				t.Fatal(err)
			}
			e.want(t, r, want)
			e.wantLast(t, r, line)
			if e.exists(t, "lock:order:1") != late {
				t.Errorf("late %t, the lock exists: %t", late, !late)
			}
		})
	}
}

// TestWithdrawnRequestNeverRuns: a script that the server receives after the
// request was withdrawn touches nothing.
func TestWithdrawnRequestNeverRuns(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.do(t, "set", "lock:order:1", uuid, "px", minute)
	r := e.request(t, ana, "lock:order:1")
	e.exec.set(func(g *gate) { g.loseBefore = true })
	r = e.approve(t, ben, r)
	e.want(t, r, locksteward.RequestExecuting)
	if !strings.Contains(r.Outcome, "nothing is sent again") {
		t.Errorf("outcome %q", r.Outcome)
	}
	// While it is open nobody can decide on it or open another.
	_, err := e.service.Deny(t.Context(), cat, r.ID, yes(r))
	wantError(t, err, locksteward.ErrConflict, "executing")
	_, err = e.service.Request(t.Context(), ana, release.RequestInput{Target: target, Key: "lock:order:1", Reason: "x"})
	wantError(t, err, locksteward.ErrConflict, r.ID)

	late := r
	if err := e.service.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err = e.service.Get(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	e.want(t, r, locksteward.RequestFailed)
	result, err := e.exec.Releaser.Release(t.Context(), late)
	if err != nil || result.State != locksteward.RequestChanged || !e.exists(t, "lock:order:1") {
		t.Errorf("the late script: %+v, %v; the lock exists: %t", result, err, e.exists(t, "lock:order:1"))
	}
	// The next request is not hindered by that.
	e.exec.set(func(g *gate) { g.loseBefore = false })
	e.want(t, e.approve(t, ben, e.request(t, ana, "lock:order:1")), locksteward.RequestReleased)
}

func TestOutcomeThatNobodyCanFindOutBecomesUnknown(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.do(t, "set", "lock:order:1", uuid, "px", minute)
	r := e.request(t, ana, "lock:order:1")
	e.exec.set(func(g *gate) { g.loseAfter, g.deafResolve = true, true })
	r = e.approve(t, ben, r)
	e.clock.add(23 * time.Hour)
	if err := e.service.Recover(t.Context()); err == nil || !strings.Contains(err.Error(), r.ID) {
		t.Fatalf("got %v", err)
	}
	e.want(t, r, locksteward.RequestExecuting)
	e.clock.add(2 * time.Hour)
	if err := e.service.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.State = locksteward.RequestUnknown
	e.want(t, r, locksteward.RequestUnknown)
	if e.exec.count() != 1 {
		t.Error("it was executed again")
	}
}

func TestRunSettlesWhatWasLeftOpen(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.do(t, "set", "lock:order:1", uuid, "px", minute)
	r := e.request(t, ana, "lock:order:1")
	e.exec.set(func(g *gate) { g.loseAfter = true })
	e.approve(t, ben, r)
	e.do(t, "set", "lock:order:2", uuid, "px", minute)
	waits := e.request(t, ana, "lock:order:2")
	e.clock.add(2 * time.Hour)

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.service.Run(ctx) }()
	for range 2 {
		got := <-e.finals
		switch {
		case got.ID == r.ID && got.State == locksteward.RequestReleased:
		case got.ID == waits.ID && got.State == locksteward.RequestExpired:
		default:
			t.Errorf("%s became %s", got.ID, got.State)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestReplyLostAnywhere cuts the connection after each reply of an act in turn
// (fault 74): whatever was lost, the recorded outcome is what happened, and the trail
// says what reported it.
// fault: 74
func TestReplyLostAnywhere(t *testing.T) {
	t.Parallel()
	var proxy *testredis.Proxy
	srv := testredis.Start(t, testredis.WithACL(releaserLine(), "scanner on >"+scannerPassword+" ~* &* +@all"))
	proxy = testredis.NewProxy(t, srv.Addr())
	e := newEnvOn(t, srv.URL(), srv.Client(t), options{url: "redis://" + proxy.Addr(), username: "releaser"})

	before := 0
	act := func(cutAfter int) (locksteward.Request, bool) {
		e.do(t, "set", "lock:order:1", uuid, "px", minute)
		r := e.request(t, ana, "lock:order:1") // looks itself
		before = proxy.Replies()
		if cutAfter >= 0 {
			proxy.CutAfterReplies(cutAfter)
		}
		r = e.approve(t, ben, r)
		proxy.Heal()
		return r, e.exists(t, "lock:order:1")
	}
	r, exists := act(-1)
	if r.State != locksteward.RequestReleased || exists {
		t.Fatalf("undisturbed: %s", r.State)
	}
	e.wantConfirmed(t, r, source.ConfirmedByAnswer)
	replies := proxy.Replies() - before
	outcomes := map[locksteward.RequestState]int{}
	for n := range replies {
		r, exists := act(n)
		outcomes[r.State]++
		e.wantLast(t, r, "agent release.execute "+string(r.State))
		switch r.State {
		case locksteward.RequestReleased:
			if exists {
				t.Errorf("cut after %d: %s, but the lock is there", n, r.State)
			}
		case locksteward.RequestFailed:
			if !exists {
				t.Errorf("cut after %d: %s, but the lock is gone", n, r.State)
			}
		default:
			t.Errorf("cut after %d: %s (%s)", n, r.State, r.Outcome)
		}
	}
	// The last reply is the script's own.
	r, exists = act(replies - 1)
	if r.State != locksteward.RequestReleased || exists {
		t.Errorf("reply of the script lost: %s", r.State)
	}
	e.wantReleasedOnce(t, r)
	t.Logf("%d replies, outcomes %v", replies, outcomes)
}

func TestServerAwayIsACertainFailure(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL(releaserLine(), "scanner on >"+scannerPassword+" ~* &* +@all"))
	e := newEnvOn(t, srv.URL(), srv.Client(t), options{username: "releaser"})
	e.do(t, "set", "lock:order:1", uuid, "px", minute)
	r := e.request(t, ana, "lock:order:1")
	srv.Kill()
	r = e.approve(t, ben, r)
	e.want(t, r, locksteward.RequestFailed)
	if !strings.HasSuffix(r.Outcome, "Nothing was touched.") {
		t.Errorf("outcome %q", r.Outcome)
	}
}

// TestServerUnreachableAfterTheAct: the reply is lost and so is the server, for a
// while. The act asks on until it can be known what it did.
// fault: 74
func TestServerUnreachableAfterTheAct(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL(releaserLine(), "scanner on >"+scannerPassword+" ~* &* +@all"))
	proxy := testredis.NewProxy(t, srv.Addr())
	e := newEnvOn(t, srv.URL(), srv.Client(t), options{url: "redis://" + proxy.Addr(), username: "releaser"})
	e.do(t, "set", "lock:order:1", uuid, "px", minute)
	first := e.request(t, ana, "lock:order:1") // looks itself
	replies := proxy.Replies()
	e.want(t, e.approve(t, ben, first), locksteward.RequestReleased)
	replies = proxy.Replies() - replies

	e.do(t, "set", "lock:order:1", uuid, "px", minute)
	r := e.request(t, ana, "lock:order:1")
	proxy.CutAfterReplies(replies - 1)
	done := make(chan locksteward.Request, 1)
	go func() {
		r, err := e.service.Approve(t.Context(), ben, r.ID, yes(r))
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	testredis.Eventually(t, 5*time.Second, func() bool { return !e.exists(t, "lock:order:1") }, "the script runs")
	proxy.Cut()
	refused := proxy.Accepted()
	testredis.Eventually(t, 5*time.Second, func() bool { return len(done) == 1 || proxy.Accepted() > refused+2 }, "the agent asks again and again")
	proxy.Heal()
	r = <-done
	e.want(t, r, locksteward.RequestReleased)
	e.wantReleasedOnce(t, r)
}

// wantReleasedOnce checks what the trail and the server say of a release whose answer
// was lost: one intent and its outcome, which says that the record of the execution
// reported it, and in the server that record.
func (e *env) wantReleasedOnce(t testing.TB, r locksteward.Request) {
	t.Helper()
	last := e.wantLast(t, r, "agent release.execute released")
	want := []string{"ana release.request pending", "ben release.approve approved", "agent release.execute intent", "agent release.execute released"}
	if got := e.trail(t, r.ID); !slices.Equal(got, want) {
		t.Errorf("trail %q, want %q", got, want)
	}
	if !strings.Contains(string(last.Detail), "the hold was ended") {
		t.Errorf("the trail says %s", last.Detail)
	}
	e.wantConfirmed(t, r, source.ConfirmedByRecord)
	exec := record.Companion(record.DefaultPrefix, record.KindExec, r.Evidence.Key)
	if id := e.rdb.HGet(t.Context(), exec, "request").Val(); id != r.ID {
		t.Errorf("the record in the server is of %q, want %s", id, r.ID)
	}
}

// wantConfirmed checks what reported the outcome of a release: the last line of its
// trail says it, and so does the outcome that pages, API and command line show.
func (e *env) wantConfirmed(t testing.TB, r locksteward.Request, by source.Confirmation) {
	t.Helper()
	var said struct {
		ConfirmedBy source.Confirmation `json:"confirmed_by"`
		Sentence    string              `json:"sentence"`
	}
	last := e.wantLast(t, r, "agent release.execute "+string(r.State))
	if err := json.Unmarshal(last.Detail, &said); err != nil {
		t.Fatal(err)
	}
	if said.ConfirmedBy != by || said.Sentence != r.Outcome ||
		strings.HasSuffix(r.Outcome, "confirmed by the execution record.") != (by == source.ConfirmedByRecord) {
		t.Errorf("the trail says %s and the request %q, want that the %s reported", last.Detail, r.Outcome, by)
	}
}

// fault: 59
func TestAnotherDatabaseThanAtTheRequest(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.do(t, "set", "lock:order:1", uuid, "px", minute)
	r := e.request(t, ana, "lock:order:1")
	e.exec.set(func(g *gate) { g.Releaser = newExecutor(t, strings.TrimSuffix(e.url, "/0")+"/3", "releaser", e.digest) })
	r = e.approve(t, ben, r)
	e.want(t, r, locksteward.RequestFailed)
	if !strings.Contains(r.Outcome, "database 3") {
		t.Errorf("outcome %q", r.Outcome)
	}
}
