package agent_test

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/users"
)

// member adds a user with teams and returns their client.
func (b *bed) member(name string, teams []string, roles ...users.Role) *apiclient.Client {
	b.t.Helper()
	token, err := users.AddUser(filepath.Join(b.dir, "users.yaml"), users.NewUser{Name: name, Roles: roles, Teams: teams})
	if err != nil {
		b.t.Fatal(err)
	}
	b.tokens[name] = token
	testredis.Eventually(b.t, within, func() bool { return b.agent.Reload(b.t.Context()) == nil }, "the users are not read again")
	return b.client(token)
}

// refusedWith wants an error of the API of a kind, in words that help.
func refusedWith(t *testing.T, what string, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: %v, want %v", what, err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q does not say %q", what, err, w)
		}
	}
}

// TestWhoMayDecide: two of three must say yes and two must say no, and only those
// whom the class names by team, role or name. All of it through the API, by people
// of a users file.
func TestWhoMayDecide(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	b := newBed(t, target(srv.URL())+`
classes:
  - {class: pay, match: ["lock:pay:*"], release: approve, approvals: 2, denials: 2, approvers: ["team:checkout", "user:cat", "role:break-glass"]}
`)
	approver := users.RoleApprover
	dan, cat := b.member("dan", []string{"checkout"}, approver), b.member("cat", nil, approver)
	eli := b.member("eli", []string{"search", "checkout"}, approver, users.RoleRequester)
	vic := b.member("vic", []string{"checkout"}, users.RoleViewer)
	gus := b.member("gus", nil, approver, users.RoleBreakGlass)
	set(t, rdb, "lock:pay:1", token, time.Hour)
	r, err := b.ana.CreateRequest(t.Context(), ask("lock:pay:1"))
	if err != nil {
		t.Fatal(err)
	}
	if r.ApprovalsNeeded == nil || *r.ApprovalsNeeded != 2 || r.DenialsNeeded == nil || *r.DenialsNeeded != 2 {
		t.Errorf("it takes %v approvals and %v denials", r.ApprovalsNeeded, r.DenialsNeeded)
	}
	word := func(r api.Request) api.Decide {
		return api.Decide{Reason: "looked, nobody works", EvidenceHash: r.EvidenceHash}
	}
	approve := func(c *apiclient.Client, change func(*api.Decide)) error {
		w := word(r)
		if change != nil {
			change(&w)
		}
		_, err := c.Approve(t.Context(), r.ID, w)
		return err
	}
	refusedWith(t, "an approver of no team", approve(b.bo, nil), locksteward.ErrRefused, "team:checkout", "ask one of them")
	_, err = b.bo.Deny(t.Context(), r.ID, word(r))
	refusedWith(t, "denial by an approver of no team", err, locksteward.ErrRefused, "team:checkout")
	refusedWith(t, "one of the team who only looks", approve(vic, nil), locksteward.ErrRefused, "approve")
	refusedWith(t, "who asked", approve(b.ana, nil), locksteward.ErrRefused, "approve")
	refusedWith(t, "no reason", approve(dan, func(w *api.Decide) { w.Reason = " " }), locksteward.ErrInvalid, "reason")
	if err := approve(dan, func(w *api.Decide) { w.EvidenceHash = strings.Repeat("0", 64) }); !errors.Is(err, locksteward.ErrConflict) && !errors.Is(err, locksteward.ErrInvalid) {
		t.Errorf("other evidence: %v", err)
	}
	if got, err := b.ana.Request(t.Context(), r.ID); err != nil || got.State != "pending" || got.ApprovalsGiven != 0 || got.DenialsGiven != 0 || len(got.Decisions) != 0 {
		t.Errorf("refusals changed it: %+v, %v", got, err)
	}

	if got, err := dan.Approve(t.Context(), r.ID, word(r)); err != nil || got.State != "pending" || got.ApprovalsGiven != 1 {
		t.Fatalf("after one of two: %+v, %v", got, err)
	}
	refusedWith(t, "the same person again", approve(dan, nil), locksteward.ErrConflict, "has decided")
	if got, err := gus.Deny(t.Context(), r.ID, word(r)); err != nil || got.State != "pending" || got.DenialsGiven != 1 {
		t.Fatalf("after one denial of two: %+v, %v", got, err)
	}
	if rdb.Exists(t.Context(), "lock:pay:1").Val() != 1 {
		t.Fatal("one approval released it")
	}
	got, err := cat.Approve(t.Context(), r.ID, word(r))
	if err != nil || got.State != "released" || rdb.Exists(t.Context(), "lock:pay:1").Val() != 0 {
		t.Fatalf("after two of two: %+v, %v", got, err)
	}
	var said []string
	for _, d := range got.Decisions {
		said = append(said, d.By+" "+d.Verdict)
	}
	if want := "dan approve, gus deny, cat approve"; strings.Join(said, ", ") != want {
		t.Errorf("decisions %q, want %q", said, want)
	}
	refusedWith(t, "a request that is over", approve(eli, nil), locksteward.ErrConflict, "released")

	// Denied by two, of whom one had said yes before; the lock stands.
	set(t, rdb, "lock:pay:2", token+"2", time.Hour)
	if r, err = eli.CreateRequest(t.Context(), ask("lock:pay:2")); err != nil {
		t.Fatal(err)
	}
	refusedWith(t, "who asked, with the role", approve(eli, nil), locksteward.ErrRefused, "your own")
	for _, step := range []struct {
		who     *apiclient.Client
		verdict func(*apiclient.Client) (api.Request, error)
		want    string
	}{
		{cat, func(c *apiclient.Client) (api.Request, error) { return c.Approve(t.Context(), r.ID, word(r)) }, "pending 1 0"},
		{dan, func(c *apiclient.Client) (api.Request, error) { return c.Deny(t.Context(), r.ID, word(r)) }, "pending 1 1"},
		{cat, func(c *apiclient.Client) (api.Request, error) { return c.Deny(t.Context(), r.ID, word(r)) }, "denied 0 2"},
	} {
		got, err := step.verdict(step.who)
		if err != nil || fmt.Sprint(got.State, " ", got.ApprovalsGiven, " ", got.DenialsGiven) != step.want {
			t.Fatalf("%s, %d for, %d against, %v; want %s", got.State, got.ApprovalsGiven, got.DenialsGiven, err, step.want)
		}
	}
	refusedWith(t, "what was denied", approve(gus, nil), locksteward.ErrConflict, "denied")
	if rdb.Get(t.Context(), "lock:pay:2").Val() != token+"2" {
		t.Error("a denied release touched the lock")
	}

	// Who was turned away for not being one of them stands in the trail.
	entries, err := b.ana.Audit(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bo", "vic", "eli"} {
		if !slices.ContainsFunc(entries.Entries, func(e api.Entry) bool { return e.Actor == name && strings.Contains(e.Outcome, "refused") }) {
			t.Errorf("no entry says that %s was refused", name)
		}
	}
}

// TestUndoAndTakeOverThroughTheAPI: an approver takes a lock over, puts it back,
// takes it over once more and ends that; the class's approvers hold for these too.
func TestUndoAndTakeOverThroughTheAPI(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	e := newEar(t)
	b := newBed(t, target(srv.URL())+`
classes:
  - {class: pay, match: ["lock:pay:*"], release: approve, approvers: ["team:checkout"]}
`+receivers("ops", e.url))
	dan := b.member("dan", []string{"checkout"}, users.RoleApprover)
	const key = "lock:pay:1"
	set(t, rdb, key, token, time.Hour)
	at := rdb.PExpireTime(t.Context(), key).Val()
	takeOver := func() api.Request {
		in := ask(key)
		in.TakeOverMs = time.Hour.Milliseconds()
		r, err := b.ana.CreateRequest(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if r, err = dan.Approve(t.Context(), r.ID, api.Decide{Reason: "let us look", EvidenceHash: r.EvidenceHash}); err != nil || r.State != "released" || r.Evidence.Act != "take-over" {
			t.Fatalf("%+v, %v", r, err)
		}
		if got := rdb.Get(t.Context(), key).Val(); got == "" || got == token {
			t.Fatalf("%q stands there", got)
		}
		return r
	}
	r := takeOver()
	_, err := b.bo.Undo(t.Context(), r.ID, api.Follow{Reason: "x"})
	refusedWith(t, "undo by one of no team", err, locksteward.ErrRefused, "team:checkout")
	_, err = b.ana.Lift(t.Context(), r.ID, api.Follow{Reason: "x"})
	refusedWith(t, "lift by one who may only ask", err, locksteward.ErrRefused)
	_, err = dan.Undo(t.Context(), r.ID, api.Follow{})
	refusedWith(t, "undo without a reason", err, locksteward.ErrInvalid, "reason")
	if u, err := dan.Undo(t.Context(), r.ID, api.Follow{Reason: "it works after all"}); err != nil || u.State != "released" || u.Evidence.Of != r.ID || u.Evidence.Act != "undo" {
		t.Fatalf("%+v, %v", u, err)
	}
	if rdb.Get(t.Context(), key).Val() != token || rdb.PExpireTime(t.Context(), key).Val() != at {
		t.Error("the lock is not as it was")
	}
	r = takeOver()
	l, err := dan.Lift(t.Context(), r.ID, api.Follow{Reason: "looked"})
	if err != nil || l.State != "released" || rdb.Exists(t.Context(), key).Val() != 0 {
		t.Fatalf("%+v, %v", l, err)
	}
	if l, err = dan.Lift(t.Context(), r.ID, api.Follow{Reason: "once more"}); err != nil || l.State != "already_gone" {
		t.Errorf("%+v, %v", l, err)
	}
	testredis.Eventually(t, within, func() bool { return len(e.of("release.final")) == 5 }, "five acts, but not five messages")
	if got := b.visit(http.MethodPost, "/api/v1/requests/"+r.ID+"/undo", "", nil).StatusCode; got != http.StatusUnauthorized {
		t.Errorf("undo by nobody: status %d", got)
	}
}
