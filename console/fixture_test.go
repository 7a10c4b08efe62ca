package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/internal/signin"
	"github.com/locksteward/locksteward/internal/users"
)

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// hostile is a key that wants to be markup, a line break, another key.
const hostile = "lock:\xff\n\"'><script>alert(1)</script>\x00\u202e{{.}}"

// world is every dependency of the console, in memory.
type world struct {
	mu       sync.Mutex
	locks    []locksteward.Lock
	now      time.Time // by the server's clock
	findings []locksteward.Finding
	targets  []api.Target
	requests []locksteward.Request
	entries  []locksteward.Entry
	actors   []Actor
	inputs   []ReleaseInput
	words    []Decision
	reloads  int
	pauses   []locksteward.Pause
	resumes  []string
	reports  []time.Duration
	past     map[api.LockKey][]api.LockEvent
	// fired are findings that fired, newest first; firedFails is why they cannot be read.
	fired      []api.LockEvent
	firedFails error
	advice     advice
	graph      *api.Graph
	bundles    []BundleInput
	pause      api.ReleasePause
	hushed     hushed
	partly     error  // beside a bundle that was decided on
	refusal    string // of previews
	// trails and imports are what was asked of the audit trail.
	trails    []AuditQuery
	imports   []api.AuditImport
	importers []string
	// fail is what every change returns if set; gate holds a change up.
	fail error
	gate chan struct{}
}

// ListLocks is the obvious way to make a page.
func (w *world) ListLocks(f LockFilter) (LockPage, error) {
	if strings.Contains(f.Match, "[") {
		return LockPage{}, fmt.Errorf("match: %w: has no character sets", locksteward.ErrInvalid)
	}
	var rows []LockRow
	var at []LockPosition
	for _, l := range w.locks {
		row := LockRow{Lock: l, Now: w.now, Rules: api.RulesByLock(w.findings)[keyOf(l)]}
		for _, finding := range w.findings {
			if finding.Target == l.Target && finding.DB == l.DB && finding.Key == l.Key && row.State != locksteward.StatusFiring {
				row.State = finding.Status
			}
		}
		glob, _ := path.Match(f.Match, l.Key)
		if differs(f.Target, l.Target) || differs(f.Sum, KeySum(l.Key)) || differs(f.Class, l.Class) || differs(f.Library, l.Library) ||
			f.State == "no-ttl" && l.TTL != locksteward.NoExpiry || f.State == "clear" && row.State != "" ||
			(f.State == "firing" || f.State == "pending") && f.State != string(row.State) ||
			!strings.Contains(l.Holder.App+"\x00"+l.Holder.Host, f.Holder) || !strings.Contains(l.Key, f.Text) || f.Match != "" && !glob {
			continue
		}
		rows = append(rows, row)
	}
	value := func(l locksteward.Lock) int64 {
		switch f.Sort {
		case "age":
			age, _, _ := l.Age()
			return l.At.Add(-age).UnixMicro()
		case "ttl":
			if l.TTL == locksteward.NoExpiry {
				return math.MaxInt64
			}
			return l.At.Add(l.TTL).UnixMilli()
		}
		return 0
	}
	place := func(r LockRow) LockPosition {
		return LockPosition{Value: value(r.Lock), Target: r.Target, DB: r.DB, Key: r.Key}
	}
	order := func(a, b LockPosition) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.Target, b.Target), cmp.Compare(a.DB, b.DB), cmp.Compare(a.Key, b.Key))
	}
	slices.SortFunc(rows, func(a, b LockRow) int { return order(place(a), place(b)) })
	page := LockPage{Total: len(rows)}
	for _, r := range rows {
		if f.After == nil || order(place(r), *f.After) > 0 {
			page.Rows, at = append(page.Rows, r), append(at, place(r))
		}
	}
	if len(page.Rows) > f.Limit {
		page.Rows, page.Next = page.Rows[:f.Limit], &at[f.Limit-1]
	}
	return page, nil
}

func (w *world) Findings() []locksteward.Finding { return slices.Clone(w.findings) }
func (w *world) Targets() []api.Target           { return slices.Clone(w.targets) }

func (w *world) Classes() []api.Class {
	return []api.Class{{
		Class: "orders", Match: []string{"lock:order:*"}, Team: "checkout", RunbookURL: "https://wiki/locks", ExpectMs: new(int64(30_000)),
		TTL: "required", MaxTTLMs: 86_400_000, MaxWaitMs: new(int64(60_000)), MaxFailures: 0.5, DeadWhen: []string{"ttl/none"}, Release: "approve", Approvals: 1, SelfApproval: "deny",
	}}
}

func (w *world) LockEvents(_ context.Context, target string, db int, key string, limit int) ([]api.LockEvent, error) {
	events := w.past[api.LockKey{Target: target, DB: db, Key: key}]
	return slices.Clone(events[:min(limit, len(events))]), nil
}

func (w *world) Fired(_ context.Context, since time.Time, limit int) ([]api.LockEvent, error) {
	out := slices.DeleteFunc(slices.Clone(w.fired), func(e api.LockEvent) bool { return e.At.Before(since) })
	return out[:min(limit, len(out))], w.firedFails
}

func (w *world) Lock(_ context.Context, target string, db int, key string) (locksteward.Lock, error) {
	for _, l := range w.locks {
		if l.Target == target && l.DB == db && l.Key == key {
			return l, nil
		}
	}
	return locksteward.Lock{}, fmt.Errorf("lock %q: %w", key, locksteward.ErrNotFound)
}

func (w *world) Explain(l locksteward.Lock, lang string) []api.Verdict {
	var out []api.Verdict
	for _, f := range w.findings {
		if f.Target == l.Target && f.DB == l.DB && f.Key == l.Key {
			out = append(out, api.NewVerdict(f.Rule, "fires", catalogue.Text("en", f.Summary), &f, lang))
		}
	}
	return out
}

func (w *world) List(_ context.Context, f RequestFilter) ([]locksteward.Request, error) {
	var out []locksteward.Request
	behind := f.After == nil
	for _, r := range w.requests {
		if behind && (len(f.States) == 0 || slices.Contains(f.States, r.State)) && !differs(f.Target, r.Evidence.Target) &&
			!differs(f.Class, r.Evidence.Class) && !differs(f.Requester, r.Requester) && !r.CreatedAt.Before(f.Since) &&
			(f.Key == nil || *f.Key == r.Evidence.Key) {
			out = append(out, r)
		}
		behind = behind || r.ID == f.After.ID
	}
	return out[:min(f.Limit, len(out))], w.fail
}

func (w *world) Get(_ context.Context, id string) (locksteward.Request, error) {
	for _, r := range w.requests {
		if r.ID == id {
			return r, nil
		}
	}
	return locksteward.Request{}, fmt.Errorf("request %q: %w", id, locksteward.ErrNotFound)
}

func (w *world) ApprovalStatus(r locksteward.Request) ApprovalStatus {
	out := ApprovalStatus{ApprovalsNeeded: 1, DenialsNeeded: 1}
	if !r.State.Final() {
		out.Warnings = []string{"There is a freeze: black friday."}
	}
	return out
}

func (w *world) Bundle(_ context.Context, id string) (Bundle, error) {
	if id != "b1" {
		return Bundle{}, fmt.Errorf("bundle %q: %w", id, locksteward.ErrNotFound)
	}
	r := pending()
	r.ID, r.Evidence.Bundle, r.Evidence.Holder.Host = "b1.1", 1, "app-7"
	return Bundle{ID: "b1", Hash: "sha256:b1", Requests: []locksteward.Request{r}}, nil
}

func (w *world) BreakGlass(ctx context.Context, actor Actor, in ReleaseInput, word Decision) (locksteward.Request, error) {
	if err := w.judge(ctx, actor, "break-glass"); err != nil {
		return locksteward.Request{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inputs, w.words = append(w.inputs, in), append(w.words, word)
	r := pending()
	r.ID, r.State, r.Evidence.BreakGlass, r.Evidence.Key = "r9", locksteward.RequestReleased, true, in.Key
	r.Requester, r.Reason, r.FinishedAt, r.Outcome = actor.Name, in.Reason, at, "Released; 0 waiters woken."
	r.Decisions = []locksteward.Decision{{By: actor.Name, Approve: true, Reason: in.Reason, At: at, EvidenceHash: r.EvidenceHash}}
	return r, nil
}

func (w *world) RequestBundle(ctx context.Context, actor Actor, in BundleInput) (Bundle, error) {
	if err := w.judge(ctx, actor, "requester"); err != nil {
		return Bundle{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bundles = append(w.bundles, in)
	b, err := w.Bundle(ctx, "b1")
	b.LeftOut = []api.LeftOut{{Key: api.NewKey("lock:order:9"), Why: "refused by policy: its holder is not on host"}}
	return b, err
}

func (w *world) ApproveBundle(ctx context.Context, actor Actor, id string, word Decision) (Bundle, error) {
	return w.decideBundle(ctx, actor, id, word, locksteward.RequestReleased)
}

func (w *world) DenyBundle(ctx context.Context, actor Actor, id string, word Decision) (Bundle, error) {
	return w.decideBundle(ctx, actor, id, word, locksteward.RequestDenied)
}

func (w *world) decideBundle(ctx context.Context, actor Actor, id string, word Decision, state locksteward.RequestState) (Bundle, error) {
	if err := w.judge(ctx, actor, "approver"); err != nil {
		return Bundle{}, err
	}
	b, err := w.Bundle(ctx, id)
	if err != nil {
		return b, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.words = append(w.words, word)
	b.Requests[0].State, b.Requests[0].FinishedAt, b.Requests[0].Outcome = state, at, "Over."
	return b, w.partly
}

func (w *world) ReleasePause() api.ReleasePause {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pause
}

func (w *world) PauseReleases(ctx context.Context, actor Actor, scope string, until time.Time, reason string) error {
	return w.setPause(ctx, actor, scope, api.PauseOfScope{Paused: true, By: actor.Name, Since: at, Until: until, Reason: reason})
}

func (w *world) ResumeReleases(ctx context.Context, actor Actor, scope, _ string) error {
	return w.setPause(ctx, actor, scope, api.PauseOfScope{})
}

func (w *world) setPause(ctx context.Context, actor Actor, scope string, p api.PauseOfScope) error {
	if err := w.judge(ctx, actor, "admin"); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if scope == api.PauseAutomatic {
		w.pause.Automatic = p
	} else {
		w.pause.All = p
	}
	return nil
}

func (w *world) Graph(target string) (api.Graph, error) {
	if target != "" && target != "orders" {
		return api.Graph{}, fmt.Errorf("%w: no target is named %q", locksteward.ErrNotFound, target)
	}
	if w.graph != nil {
		return *w.graph, nil
	}
	return api.Graph{
		Target: target,
		Nodes: []api.GraphNode{
			{ID: "lock orders/0/lock:order:42", Kind: api.NodeLock, Lock: &api.GraphLock{
				Target: "orders", Key: api.NewKey("lock:order:42"), Class: "orders", Held: true, Waiters: 1, Firing: []string{"wait/starved"},
			}},
			{ID: "session a", Kind: api.NodeSession, Session: &api.GraphSession{Session: "a", Holder: api.Holder{App: "checkout", Host: "app-7", PID: 7}}},
			{ID: "session b", Kind: api.NodeSession, Session: &api.GraphSession{Session: "b", Waiting: 1}},
		},
		Edges: []api.GraphEdge{
			{From: "session a", To: "lock orders/0/lock:order:42", Kind: api.EdgeHolds, Since: at, Calls: 1},
			{From: "session b", To: "lock orders/0/lock:order:42", Kind: api.EdgeWaitsFor, Since: at, Calls: 1},
		},
		Cycles: []api.GraphCycle{},
	}, nil
}

func (w *world) judge(ctx context.Context, actor Actor, role string) error {
	w.mu.Lock()
	w.actors = append(w.actors, actor)
	w.mu.Unlock()
	if w.gate != nil {
		<-w.gate
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !slices.Contains(actor.Roles, role) {
		return fmt.Errorf("%w: %q does not have the role %s", locksteward.ErrRefused, actor.Name, role)
	}
	return w.fail
}

func (w *world) Undo(ctx context.Context, actor Actor, id, reason string) (locksteward.Request, error) {
	return w.follow(ctx, actor, id, reason, locksteward.ActUndo)
}

func (w *world) Lift(ctx context.Context, actor Actor, id, reason string) (locksteward.Request, error) {
	return w.follow(ctx, actor, id, reason, locksteward.ActLift)
}

func (w *world) follow(ctx context.Context, actor Actor, id, reason string, act locksteward.Act) (locksteward.Request, error) {
	if err := w.judge(ctx, actor, "approver"); err != nil {
		return locksteward.Request{}, err
	}
	r, err := w.Get(ctx, id)
	r.ID, r.Evidence.Of, r.Evidence.Act, r.Reason, r.Requester = id+"-next", id, act, reason, actor.Name
	return r, err
}

func (w *world) DryRun(ctx context.Context, actor Actor, in ReleaseInput) (api.Preview, error) {
	r, err := w.Request(ctx, actor, in)
	return api.Preview{
		Request: api.NewRequest(r), Found: true, Differences: []string{}, Warnings: []string{}, Keys: []string{in.Key}, Script: "return 1", Args: []string{"•••"},
	}, err
}

func (w *world) Preview(ctx context.Context, id string) (api.Preview, error) {
	r, err := w.Get(ctx, id)
	if w.refusal != "" { // of a request that is not kept, too
		err = nil
	}
	return api.Preview{
		Request: api.NewRequest(r), Found: true, Differences: []string{"expiry"}, Refusal: w.refusal, Warnings: []string{}, Keys: []string{}, Args: []string{},
	}, err
}

func (w *world) Request(ctx context.Context, actor Actor, in ReleaseInput) (locksteward.Request, error) {
	if err := w.judge(ctx, actor, "requester"); err != nil {
		return locksteward.Request{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inputs = append(w.inputs, in)
	r := pending()
	r.Requester, r.Reason, r.Evidence.Key, r.Evidence.DB, r.Evidence.Target = actor.Name, in.Reason, in.Key, in.DB, in.Target
	return r, nil
}

func (w *world) Approve(ctx context.Context, actor Actor, id string, word Decision) (locksteward.Request, error) {
	return w.decide(ctx, actor, id, word, true)
}

func (w *world) Deny(ctx context.Context, actor Actor, id string, word Decision) (locksteward.Request, error) {
	return w.decide(ctx, actor, id, word, false)
}

func (w *world) decide(ctx context.Context, actor Actor, id string, word Decision, approve bool) (locksteward.Request, error) {
	if err := w.judge(ctx, actor, "approver"); err != nil {
		return locksteward.Request{}, err
	}
	r, err := w.Get(ctx, id)
	if err != nil {
		return r, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.words = append(w.words, word)
	r.Decisions = []locksteward.Decision{{By: actor.Name, Approve: approve, Reason: word.Reason, At: at, EvidenceHash: word.EvidenceHash}}
	r.State, r.FinishedAt, r.Outcome = locksteward.RequestDenied, at, "Denied by "+actor.Name+"."
	if approve {
		r.State, r.Outcome, r.WaitersWoken = locksteward.RequestReleased, "Released; 2 waiters woken.", 2
	}
	return r, nil
}

func (w *world) Reload(context.Context, string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reloads++
	return w.fail
}

func (w *world) Pause(_ context.Context, target string, p locksteward.Pause) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if target != "" && target != "orders" {
		return nil, fmt.Errorf("%w: no target is named %q", locksteward.ErrNotFound, target)
	}
	w.pauses = append(w.pauses, p)
	return []string{"orders"}, w.fail
}

func (w *world) Resume(_ context.Context, _, by string) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resumes = append(w.resumes, by)
	return []string{"orders"}, w.fail
}

func (w *world) Report(_ context.Context, target, class string, since time.Time) (api.Report, error) {
	if target != "" && target != "orders" || class != "" && class != "orders" {
		return api.Report{}, fmt.Errorf("%w: neither target nor class", locksteward.ErrNotFound)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = append(w.reports, time.Since(since).Round(time.Minute))
	stuck := api.HeldKey{
		Key: api.NewKey("lock:order:42"), HoldBounds: api.HoldBounds{AtLeastMs: 3_600_000}, How: "held",
	}
	return api.Report{
		Since: at.Add(-24 * time.Hour), Until: at, Notes: []string{},
		Classes: []api.ClassReport{{
			Target: "orders", Class: "orders", Team: "checkout", Match: []string{"lock:order:*"}, Holds: 1200,
			P50:     &api.HoldBounds{AtLeastMs: 180, AtMostMs: new(int64(2200))},
			P95:     &api.HoldBounds{AtLeastMs: 900, AtMostMs: new(int64(2900))},
			P99:     &api.HoldBounds{AtLeastMs: 1400, AtMostMs: new(int64(3400))},
			Longest: &stuck, Ended: api.HoldEndings{Released: 1198, Expired: 2}, Open: api.OpenHolds{Locks: 1, WithoutTTL: 1},
			TTL:        &api.HoldBounds{AtLeastMs: 29_500, AtMostMs: new(int64(30_000))},
			Contention: &api.Contention{Acquired: new(int64(1300)), Contended: new(int64(70)), Failed: new(int64(3)), MaxWaiters: new(int64(4)), LongestWaitMs: new(int64(1900))},
			Worst:      []api.HeldKey{stuck}, ExpectMs: new(int64(30_000)),
			Suggested: api.SuggestedPolicy{
				ExpectMs: new(int64(10_000)), ExpectReason: "2 x the 99th percentile of 1200 holds, at most 3.4s",
				TTLMs: new(int64(15_000)), TTLReason: "3 x the 99th percentile of 1200 holds, at most 3.4s",
			},
			Notes: []string{},
		}},
	}, nil
}

func pending() locksteward.Request {
	return locksteward.Request{
		ID: "r1", State: locksteward.RequestPending, EvidenceHash: "sha256:e1", Requester: "ann", Reason: "queue is stuck",
		CreatedAt: at, ExpiresAt: at.Add(time.Hour),
		Evidence: locksteward.Evidence{
			Target: "orders", Key: "lock:order:42", Class: "orders", Library: "token", Type: "string", Identity: locksteward.IdentityLineage,
			TokenDigest: "hmac-sha256:00", ExpireAt: locksteward.NoExpireAt, Count: 1, Findings: []string{"ttl/none"}, At: at,
		},
	}
}

func aLock(key string, held time.Duration) locksteward.Lock {
	return locksteward.Lock{
		Observation: locksteward.Observation{
			Target: "orders", Node: "127.0.0.1:6379", Key: key, Type: "string", At: at, TTL: 20 * time.Second, Idle: -1,
			Kind: locksteward.KindLock, Class: "orders", Configured: true, Library: "token", Confidence: locksteward.ConfidenceHigh,
			Identity: locksteward.IdentityStrong, TokenDigest: "hmac-sha256:00", Count: 1, Waiters: -1,
		},
		History: locksteward.History{FirstSeen: at.Add(-held), LastSeen: at, Looks: 2},
	}
}

func aFinding(key string) locksteward.Finding {
	return locksteward.Finding{
		Rule: "ttl/none", Severity: locksteward.SeverityCritical, Risk: locksteward.RiskDeadlock, Status: locksteward.StatusFiring,
		Target: "orders", Class: "orders", Key: key, Library: "token",
		Summary: locksteward.Literal("The lock never expires", "锁永不过期"), Evidence: []locksteward.Message{locksteward.Literal("PTTL is -1", "PTTL 为 -1")}, CounterEvidence: []locksteward.Message{locksteward.Literal("seen for 1m only")},
		Cause: locksteward.Literal("a crash between SETNX and EXPIRE"), Remedy: locksteward.Literal("request its release"),
		Since: at, FiredAt: at,
	}
}

func newWorld() *world {
	stuck := aLock("lock:order:42", time.Hour)
	stuck.TTL, stuck.ExpireAt, stuck.Identity = locksteward.NoExpiry, locksteward.NoExpireAt, locksteward.IdentityLineage
	fresh := aLock("lock:order:43", 0)
	fresh.Library = "locksteward"
	info := aFinding("lock:order:43")
	info.Rule, info.Severity, info.Status, info.Risk = "ttl/too-long", locksteward.SeverityInfo, locksteward.StatusPending, ""
	released := pending()
	released.ID, released.State, released.Outcome, released.FinishedAt = "r0", locksteward.RequestReleased, "Released; 0 waiters woken.", at
	return &world{
		locks:    []locksteward.Lock{fresh, stuck},
		findings: []locksteward.Finding{info, aFinding("lock:order:42")},
		targets: []api.Target{{
			Name: "orders", Mode: "standalone", Up: true, ReleaseEnabled: true, Nodes: []api.Node{},
			LastSweep: &api.Swept{At: at, Complete: true, Keys: 1000, Locks: 2, Candidates: 3, DurationMs: 12},
			Watch: &api.Watch{
				Mode: "tracking", BlindMs: 1200, Classes: []api.ClassWatch{
					{Class: "orders", Coverage: "watched"},
					{Class: "default", Coverage: "partly", Reason: "only what begins with lock:, locks:, mutex: or redlock: is watched"},
				},
			},
			Budget: &api.Budget{
				Idle: 0.1, Busy: 0.01, Servers: []api.Pace{{Addr: "10.0.0.1:6379", Share: 0.025, Use: 0.5, Bound: "idle", Reason: "headroom"}}, Degraded: []string{},
				ThrottledMs: map[string]int64{"headroom": 5400, "delayed": 0, "loading": 0, "busy": 0, "memory": 0, "paused": 0},
			},
		}},
		requests: []locksteward.Request{pending(), released},
		past: map[api.LockKey][]api.LockEvent{
			{Target: "orders", Key: "lock:order:42"}: {
				{At: at, Kind: "firing", Rule: "ttl/none", Severity: "critical", Summary: "The lock never expires"},
				{At: at.Add(-time.Hour), Kind: "acquired", TokenDigest: "hmac-sha256:00"},
				{At: at.Add(-2 * time.Hour), Kind: "released", HeldMs: 1200, HeldIsMinimum: true, TokenDigest: "hmac-sha256:01"},
			},
		},
		entries: []locksteward.Entry{{Seq: 1, At: at, Actor: "ann", Action: "release.request", Target: "orders", Key: "lock:order:42", Subject: "r1", Reason: "queue is stuck", Outcome: "ok", Hash: "h1"}},
	}
}

// fixture is a console with its world and a client.
type fixture struct {
	t      *testing.T
	world  *world
	server *Server
	url    string
	logs   *observer.ObservedLogs
	file   string
	tokens map[string]string // by user name, which is the role
	edit   func(*signin.Config)
	began  time.Time
	ahead  atomic.Int64 // of the clock, for sign-ins
}

// setup starts a console; each role gets a user of its name, and "all" has all.
func setup(t *testing.T, roles ...string) *fixture {
	t.Helper()
	return setupAs(t, nil, roles...)
}

// setupAs is setup with another configuration of signing in.
func setupAs(t *testing.T, edit func(*signin.Config), roles ...string) *fixture {
	t.Helper()
	b := &fixture{t: t, world: newWorld(), tokens: map[string]string{}, file: filepath.Join(t.TempDir(), "users.yaml"), edit: edit, began: time.Now()}
	for _, r := range roles {
		b.addUser(r)
	}
	if len(roles) > 0 {
		b.cheapen()
	}
	core, logs := observer.New(zapcore.DebugLevel)
	b.logs = logs
	s, err := newServer(zap.New(core), b.config(), b.world.deps(), b.now)
	if err != nil {
		t.Fatal(err)
	}
	b.server = s
	srv := httptest.NewServer(s.handler())
	t.Cleanup(func() {
		srv.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	b.url = srv.URL
	return b
}

func (w *world) deps() Deps {
	return Deps{Locks: w, Findings: w, Targets: w, Requests: w, Releases: w, Audit: w, Reloader: w, Pauser: w, Reports: w, History: w, ReleasePause: w, Graphs: w, Advisor: w, Notifications: w, Silences: w, Sessions: newSessionStore()}
}

func (b *fixture) addUser(name string) {
	b.t.Helper()
	roles := []users.Role{users.Role(name)}
	if name == "all" {
		roles = users.Roles()
	}
	token, err := users.Add(b.file, name, roles)
	if err != nil {
		b.t.Fatal(err)
	}
	b.tokens[name] = token.Reveal()
}

var errInner = errors.New("dial tcp 10.0.0.1: password hunter2")
