package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// hostile is a key that wants to be markup, a line break, another key.
const hostile = "lock:\xff\n\"'><script>alert(1)</script>\x00\u202e{{.}}"

// world is every dependency of the console, in memory.
type world struct {
	mu       sync.Mutex
	locks    []locksteward.Lock
	findings []locksteward.Finding
	targets  []api.Target
	requests []locksteward.Request
	entries  []locksteward.Entry
	actors   []Actor
	inputs   []ReleaseInput
	words    []Word
	reloads  int
	pauses   []locksteward.Pause
	resumes  []string
	reports  []time.Duration
	// fail is what every change returns if set; gate holds a change up.
	fail error
	gate chan struct{}
}

func (w *world) Locks() []locksteward.Lock       { return slices.Clone(w.locks) }
func (w *world) Findings() []locksteward.Finding { return slices.Clone(w.findings) }
func (w *world) Targets() []api.Target           { return slices.Clone(w.targets) }

func (w *world) Classes() []api.Class {
	return []api.Class{{
		Class: "orders", Match: []string{"lock:order:*"}, Team: "checkout", RunbookURL: "https://wiki/locks", ExpectMs: new(int64(30_000)),
		TTL: "required", MaxTTLMs: 86_400_000, MaxWaitMs: new(int64(60_000)), MaxFailures: 0.5, DeadWhen: []string{"ttl/none"}, Release: "approve", Approvals: 1, SelfApproval: "deny",
	}}
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
			out = append(out, api.NewVerdict(f.Rule, "fires", f.Summary.EN, &f, lang))
		}
	}
	return out
}

func (w *world) List(_ context.Context, f RequestFilter) ([]locksteward.Request, error) {
	var out []locksteward.Request
	for _, r := range w.requests {
		if (len(f.States) == 0 || slices.Contains(f.States, r.State)) && (f.Target == "" || f.Target == r.Evidence.Target) {
			out = append(out, r)
		}
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
	return api.Preview{
		Request: api.NewRequest(r), Found: true, Differences: []string{"expiry"}, Warnings: []string{}, Keys: []string{}, Args: []string{},
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

func (w *world) Approve(ctx context.Context, actor Actor, id string, word Word) (locksteward.Request, error) {
	return w.decide(ctx, actor, id, word, true)
}

func (w *world) Deny(ctx context.Context, actor Actor, id string, word Word) (locksteward.Request, error) {
	return w.decide(ctx, actor, id, word, false)
}

func (w *world) decide(ctx context.Context, actor Actor, id string, word Word, approve bool) (locksteward.Request, error) {
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

func (w *world) Entries(_ context.Context, limit int) ([]locksteward.Entry, error) {
	return w.entries[:min(limit, len(w.entries))], nil
}

func (w *world) Reload(context.Context) error {
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
			Target: "orders", Key: "lock:order:42", Class: "orders", Dialect: "token", Type: "string", Identity: locksteward.IdentityLineage,
			TokenDigest: "hmac-sha256:00", ExpireAt: locksteward.NoExpireAt, Count: 1, Findings: []string{"ttl/none"}, At: at,
		},
	}
}

func aLock(key string, held time.Duration) locksteward.Lock {
	return locksteward.Lock{
		Observation: locksteward.Observation{
			Target: "orders", Node: "127.0.0.1:6379", Key: key, Type: "string", At: at, TTL: 20 * time.Second, Idle: -1,
			Kind: locksteward.KindLock, Class: "orders", Configured: true, Dialect: "token", Confidence: locksteward.ConfidenceHigh,
			Identity: locksteward.IdentityStrong, TokenDigest: "hmac-sha256:00", Count: 1, Waiters: -1,
		},
		History: locksteward.History{FirstSeen: at.Add(-held), LastSeen: at, Looks: 2},
	}
}

func aFinding(key string) locksteward.Finding {
	return locksteward.Finding{
		Rule: "ttl/none", Severity: locksteward.SeverityCritical, Risk: locksteward.RiskDeadlock, Status: locksteward.StatusFiring,
		Target: "orders", Class: "orders", Key: key, Dialect: "token",
		Summary: locksteward.Text{EN: "The lock never expires", ZH: "锁永不过期"}, Evidence: []string{"PTTL is -1"}, CounterEvidence: []string{"seen for 1m only"},
		Cause: locksteward.Text{EN: "a crash between SETNX and EXPIRE"}, Remedy: locksteward.Text{EN: "request its release"},
		Since: at, FiredAt: at,
	}
}

func newWorld() *world {
	stuck := aLock("lock:order:42", time.Hour)
	stuck.TTL, stuck.ExpireAt, stuck.Identity = locksteward.NoExpiry, locksteward.NoExpireAt, locksteward.IdentityLineage
	fresh := aLock("lock:order:43", 0)
	fresh.Dialect = "locksteward"
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
				MaxServerShare: 0.02, Degraded: []string{},
				ThrottledMs: map[string]int64{"share": 5400, "latency": 0, "loading": 0, "busy": 0, "memory": 0, "paused": 0},
			},
		}},
		requests: []locksteward.Request{pending(), released},
		entries:  []locksteward.Entry{{Seq: 1, At: at, Actor: "ann", Action: "release.request", Target: "orders", Key: "lock:order:42", Subject: "r1", Reason: "queue is stuck", Outcome: "ok", Hash: "h1"}},
	}
}

// bed is a console with its world and a client.
type bed struct {
	t      *testing.T
	world  *world
	server *Server
	url    string
	logs   *observer.ObservedLogs
	file   string
	tokens map[string]string // by user name, which is the role
}

// setup starts a console; each role gets a user of its name, and "all" has all.
func setup(t *testing.T, roles ...string) *bed {
	t.Helper()
	b := &bed{t: t, world: newWorld(), tokens: map[string]string{}, file: filepath.Join(t.TempDir(), "users.yaml")}
	for _, r := range roles {
		b.addUser(r)
	}
	core, logs := observer.New(zapcore.DebugLevel)
	b.logs = logs
	s, err := NewServer(zap.New(core), Config{Listen: "127.0.0.1:0", UsersFile: b.file}, b.world.deps())
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
	return Deps{Locks: w, Findings: w, Targets: w, Requests: w, Releases: w, Audit: w, Reloader: w, Pauser: w, Reports: w}
}

func (b *bed) addUser(name string) {
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

// answer is a response that was read.
type answer struct {
	status int
	head   http.Header
	body   string
}

func (a answer) problem(t *testing.T) api.Problem {
	t.Helper()
	var p api.Problem
	if a.head.Get("Content-Type") != api.ProblemType {
		t.Fatalf("status %d, content type %q: %s", a.status, a.head.Get("Content-Type"), a.body)
	}
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatal(err)
	}
	if p.Status != a.status || p.Detail == "" || p.Title == "" || p.Type != "urn:locksteward:problem:"+string(p.Code) {
		t.Errorf("status %d, problem %+v", a.status, p)
	}
	return p
}

// do sends a request as the user ("" is nobody); edits change it before.
func (b *bed) do(user, method, path, body string, edits ...func(*http.Request)) answer {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if user != "" {
		req.Header.Set("Authorization", "Bearer "+b.tokens[user])
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, edit := range edits {
		edit(req)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(raw)}
}

// get decodes the answer of a GET by a nobody or a viewer.
func get[T any](b *bed, user, path string) T {
	b.t.Helper()
	var out T
	a := b.do(user, http.MethodGet, path, "")
	dec := json.NewDecoder(bytes.NewReader([]byte(a.body)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&out); err != nil || a.status != http.StatusOK {
		b.t.Fatalf("GET %s: status %d, %v: %s", path, a.status, err, a.body)
	}
	return out
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var errInner = errors.New("dial tcp 10.0.0.1: password hunter2")
