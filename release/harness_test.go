package release_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/memory"
	redissource "github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/releaser"
	"github.com/locksteward/locksteward/store"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
		return
	}
	goleak.VerifyTestMain(testredis.Settled{M: m})
}

const target = "redis"

// Users of the Redis server: the agent's two, with no more rights than we
// document.
const (
	releaserPassword = "releaser-pw"
	scannerPassword  = "scanner-pw"
)

func testClasses(t testing.TB) *class.Set {
	t.Helper()
	set, err := class.NewSet([]class.Class{
		{Name: "orders", Match: []string{"lock:order:*"}, Release: class.ReleaseApprove},
		{Name: "two", Match: []string{"lock:two:*"}, Release: class.ReleaseApprove, Approvals: 2},
		{Name: "self", Match: []string{"lock:self:*"}, Release: class.ReleaseApprove, SelfApproval: class.SelfApprovalAllow},
		{Name: "dead", Match: []string{"lock:dead:*"}, Release: class.ReleaseApprove, DeadWhen: []string{"holder/dead", "ttl/none"}},
		{Name: "off", Match: []string{"lock:off:*"}},
		{Name: "three", Match: []string{"lock:three:*"}, Release: class.ReleaseApprove, Approvals: 2, Denials: 2},
		{Name: "teams", Match: []string{"lock:teams:*"}, Release: class.ReleaseApprove, Approvers: []string{"team:checkout", "user:cat"}},
		{Name: "loud", Match: []string{"lock:loud:*"}, Release: class.ReleaseApprove, SelfApproval: class.SelfApprovalAlert},
		{Name: "few", Match: []string{"lock:few:*"}, Release: class.ReleaseApprove, MaxPerHour: 2},
		{Name: "first", Match: []string{"lock:first:*"}, Release: class.ReleaseApprove, MaxPerHour: 7, ManyPerMinute: 1 << 20},
		{Name: "second", Match: []string{"lock:second:*"}, Release: class.ReleaseApprove, MaxPerHour: 7, ManyPerMinute: 1 << 20},
		{Name: "many", Match: []string{"lock:many:*"}, Release: class.ReleaseApprove, ManyPerMinute: 3},
		{Name: "manyauto", Match: []string{"lock:manyauto:*"}, Release: class.ReleaseAuto, DeadWhen: []string{"holder/dead"}, ManyPerMinute: 3},
		{Name: "delay", Match: []string{"lock:delay:*"}, Release: class.ReleaseApprove, LockDelay: time.Minute},
		{Name: "auto", Match: []string{"lock:auto:*"}, Release: class.ReleaseAuto, DeadWhen: []string{"holder/dead"}},
		{
			Name: "rule", Match: []string{"lock:rule:*"}, Release: class.ReleaseAuto, Proof: class.ProofRule,
			AutoAfter: 10 * time.Minute, DeadWhen: []string{"ttl/none", "hold/too-long"},
		},
		{
			Name: "silent", Match: []string{"lock:silent:*"}, Release: class.ReleaseAuto, Proof: class.ProofRule,
			AutoAfter: 10 * time.Minute, DeadWhen: []string{"holder/dead", "hold/too-long"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func releaserLine() string {
	rules := releaser.ACL([]string{"lock:*", "{lock}:*"}, nil)
	return "releaser on >" + releaserPassword + " resetkeys " + strings.Join(rules, " ")
}

// env is an agent's release side, on a real server or on a store in memory.
type env struct {
	url      string
	rdb      redis.UniversalClient // may do everything; nil in memory
	memory   *memory.Store         // nil on a server
	dsn      string
	store    *store.Store
	digest   locksteward.DigestKey
	logs     *observer.ObservedLogs
	clock    *clock
	locks    *locks
	exec     *gate
	service  *release.Service
	reload   func(*class.Set) error // of the service's classes
	finals   chan locksteward.Request
	reported *events
	received atomic.Int64 // receivers of alerts

	settingsFail atomic.Bool
	beforeSwap   func() // before a pause is written
}

// settingsOf is the store of pauses, which can fail.
type settingsOf struct{ *env }

var errSettings = errors.New("the store is away")

func (s settingsOf) LoadSetting(ctx context.Context, name string) (string, error) {
	if s.settingsFail.Load() {
		return "", errSettings
	}
	return s.store.LoadSetting(ctx, name)
}

func (s settingsOf) SwapSetting(ctx context.Context, name, was, value string, entries ...locksteward.Entry) (bool, error) {
	if s.beforeSwap != nil {
		s.beforeSwap()
	}
	return s.store.SwapSetting(ctx, name, was, value, entries...)
}

// events are those that were written with entries.
type events struct {
	mu   sync.Mutex
	list []locksteward.Event
}

func (e *events) add(event locksteward.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, event)
}

// of returns the events of a kind.
func (e *events) of(kind locksteward.EventKind) (out []locksteward.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.list {
		if event.Kind == kind {
			out = append(out, event)
		}
	}
	return out
}

// options change what newEnv builds.
type options struct {
	url      string // of the releaser; "" is the server's
	redis    []testredis.Option
	cfg      release.Config
	noCreds  bool
	username string // of the releaser
	dsn      string // of the store; "" is a file of its own
}

func newEnv(t *testing.T, change ...func(*options)) *env {
	t.Helper()
	o := options{username: "releaser"}
	for _, c := range change {
		c(&o)
	}
	srv := testredis.Start(t, append([]testredis.Option{testredis.WithACL(
		releaserLine(),
		"scanner on >"+scannerPassword+" resetkeys resetchannels "+strings.Join(redissource.ACL("*"), " "),
	)}, o.redis...)...)
	return newEnvOn(t, srv.URL(), srv.Client(t), o)
}

func newEnvOn(t *testing.T, url string, rdb redis.UniversalClient, o options) *env {
	t.Helper()
	e := openEnv(t, o)
	e.url, e.rdb = url, rdb
	conn := openConn(t, connect.Config{URL: url, Username: "scanner", Password: scannerPassword})
	src, err := redissource.New(conn, redissource.Options{
		Log: zap.NewNop(), Digest: e.digest,
		Placeholder: func(key, requestID string) bool { return e.service.Placeholder(target, 0, key, requestID) },
	})
	if err != nil {
		t.Fatal(err)
	}
	sc, err := scanner.New(zap.NewNop(), locksteward.Target{Name: target}, src, testClasses(t), scanner.Config{}, scanner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e.locks = &locks{read: sc.Table().Refresh, firing: map[string][]string{}}
	if !o.noCreds {
		if o.url == "" {
			o.url = url
		}
		e.exec = &gate{Releaser: newExecutor(t, o.url, o.username, e.digest)}
	}
	e.newService(t, o.cfg)
	return e
}

// newMemoryEnv is newEnv for what needs no server: policy, people, and what the store of
// requests remembers.
func newMemoryEnv(t testing.TB, change ...func(*options)) *env {
	t.Helper()
	var o options
	for _, c := range change {
		c(&o)
	}
	e := openEnv(t, o)
	e.memory = memory.New(e.digest)
	classes := testClasses(t)
	e.locks = &locks{firing: map[string][]string{}, read: func(_ context.Context, key string) (locksteward.Lock, error) {
		lock, ok := e.memory.Read(target, key)
		if !ok {
			return lock, locksteward.ErrNotFound
		}
		m := classes.Classify(key)
		lock.Class, lock.Configured = m.Class, m.Configured
		return lock, nil
	}}
	if !o.noCreds {
		e.exec = &gate{Releaser: e.memory}
	}
	e.newService(t, o.cfg)
	return e
}

func openEnv(t testing.TB, o options) *env {
	t.Helper()
	e := &env{
		dsn:   cmp.Or(o.dsn, "sqlite:"+filepath.Join(t.TempDir(), "locksteward.db")),
		clock: &clock{at: time.Now()}, finals: make(chan locksteward.Request, 1000), reported: &events{},
	}
	e.openStore(t)
	return e
}

func openConn(t testing.TB, cfg connect.Config) *connect.Conn {
	t.Helper()
	conn, err := connect.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func newExecutor(t testing.TB, url, user string, digest locksteward.DigestKey) *releaser.Releaser {
	t.Helper()
	exec, err := releaser.New(releaser.Config{
		Connect: connect.Config{URL: url, Username: user, Password: releaserPassword, ReadTimeout: 5 * time.Second},
		Digest:  digest,
	})
	if err != nil {
		t.Fatal(err)
	}
	return exec
}

func (e *env) openStore(t testing.TB) {
	t.Helper()
	var err error
	if e.store, err = store.Open(t.Context(), e.dsn); err != nil {
		t.Fatal(err)
	}
	e.store.Compose(func(w store.Written) []locksteward.Notification {
		for _, entry := range w.Entries {
			if entry.Event != nil {
				e.reported.add(*entry.Event)
			}
		}
		return nil
	})
	opened := e.store
	t.Cleanup(func() { _ = opened.Close() })
	if e.digest, err = e.store.DigestKey(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// newService builds the service anew, as a restart of the agent does.
func (e *env) newService(t testing.TB, cfg release.Config) {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	e.logs = logs
	releasers := map[string]source.Releaser{target: nil}
	if e.exec != nil {
		releasers[target] = e.exec
	}
	var err error
	e.service, err = release.New(zap.New(core), cfg, release.Deps{
		Store: e.store, Locks: e.locks, Classes: testClasses(t), Releasers: releasers, Now: e.clock.now,
		OnFinal:   func(r locksteward.Request) { e.finals <- r },
		Receivers: func() int { return int(e.received.Load()) }, Settings: settingsOf{e},
		Reminded: func(ctx context.Context, id string) (bool, error) {
			list, err := e.store.Entries(ctx, store.EntryQuery{Subject: id, Action: release.ActionRemind, Limit: 1})
			return len(list) > 0, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	e.reload = func(classes *class.Set) error { return e.service.Reload(cfg, classes, releasers) }
}

// locks reads by the real scanner, or in memory; which rules fire is the test's to say.
type locks struct {
	read func(ctx context.Context, key string) (locksteward.Lock, error)

	mu     sync.Mutex
	firing map[string][]string
	proof  locksteward.Proof
}

func (l *locks) ProofOf(locksteward.Lock) locksteward.Proof {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.proof
}

func (l *locks) prove(p locksteward.Proof) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proof = p
}

func (l *locks) ReadLock(ctx context.Context, name, key string) (locksteward.Lock, []string, error) {
	lock, err := l.read(ctx, key)
	l.mu.Lock()
	defer l.mu.Unlock()
	return lock, l.firing[key], err
}

func (l *locks) fire(key string, rules ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.firing[key] = rules
}

// gate is a releaser that counts, and can lose what happens before or after
// the real act as a crash does.
type gate struct {
	source.Releaser

	mu          sync.Mutex
	executed    int
	loseBefore  bool
	loseAfter   bool
	deafResolve bool
}

var errLost = errors.New("the agent was killed here")

func (g *gate) set(change func(*gate)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(g)
}

func (g *gate) Release(ctx context.Context, r locksteward.Request) (source.Outcome, error) {
	g.mu.Lock()
	g.executed++
	before, after := g.loseBefore, g.loseAfter
	g.mu.Unlock()
	if before {
		return source.Outcome{}, errLost
	}
	result, err := g.Releaser.Release(ctx, r)
	if after {
		return source.Outcome{}, errLost
	}
	return result, err
}

func (g *gate) Resolve(ctx context.Context, r locksteward.Request) (source.Outcome, error) {
	g.mu.Lock()
	deaf := g.deafResolve
	g.mu.Unlock()
	if deaf {
		return source.Outcome{}, errLost
	}
	return g.Releaser.Resolve(ctx, r)
}

func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.executed
}

type clock struct {
	mu   sync.Mutex
	at   time.Time
	runs bool
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs {
		return time.Now()
	}
	return c.at
}

// real makes it the clock of the machine.
func (c *clock) real() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs = true
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

var (
	ana = release.Actor{Name: "ana", Roles: []release.Role{release.RoleRequester}}
	ben = release.Actor{Name: "ben", Roles: []release.Role{release.RoleApprover}}
	cat = release.Actor{Name: "cat", Roles: []release.Role{release.RoleApprover}}
	// eve may do both, so only policy stands between her and a release alone.
	eve = release.Actor{Name: "eve", Roles: []release.Role{release.RoleRequester, release.RoleApprover}}
)

const uuid = "0f8e4c2a-93b1-4d77-a2f5-6b1c9d0e3f48"

func (e *env) request(t testing.TB, actor release.Actor, key string) locksteward.Request {
	t.Helper()
	r, err := e.service.Request(t.Context(), actor, release.RequestInput{Target: target, Key: key, Reason: "the queue stands still"})
	if err != nil {
		t.Fatalf("request: %v", err)
	}
	return r
}

func (e *env) approve(t testing.TB, actor release.Actor, r locksteward.Request) locksteward.Request {
	t.Helper()
	r, err := e.service.Approve(t.Context(), actor, r.ID, yes(r))
	if err != nil {
		t.Fatalf("approve: %v", err)
	}
	return r
}

func yes(r locksteward.Request) release.Decision {
	return release.Decision{
		Reason: "looked, nobody works", EvidenceHash: r.EvidenceHash,
		ConfirmNoIdentity: r.Evidence.WeakIdentity(), ConfirmHolderAlive: r.Evidence.HolderAlive,
	}
}

// want checks the state, that the stored request says the same, and the chain.
func (e *env) want(t testing.TB, r locksteward.Request, state locksteward.RequestState) {
	t.Helper()
	if r.State != state {
		t.Fatalf("state %s (%s), want %s", r.State, r.Outcome, state)
	}
	stored, err := e.service.Get(t.Context(), r.ID)
	if err != nil || stored.State != state {
		t.Fatalf("stored state %s, %v; want %s", stored.State, err, state)
	}
	if state.Final() && (stored.Outcome == "" || stored.FinishedAt.IsZero()) {
		t.Errorf("final without a sentence or time: %+v", stored)
	}
	if _, err := e.store.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// lines returns the entries about a subject, oldest first.
func (e *env) lines(t testing.TB, subject string) []locksteward.Entry {
	t.Helper()
	entries, err := e.store.Entries(t.Context(), store.EntryQuery{Subject: subject})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(entries)
	return entries
}

// trail returns "action outcome" of the entries about a subject, oldest first.
func (e *env) trail(t testing.TB, subject string) []string {
	t.Helper()
	var out []string
	for _, entry := range e.lines(t, subject) {
		out = append(out, entry.Actor+" "+entry.Action+" "+entry.Outcome)
	}
	return out
}

// wantLast checks the last line about a request, as trail has it, and returns it.
func (e *env) wantLast(t testing.TB, r locksteward.Request, line string) locksteward.Entry {
	t.Helper()
	lines, said := e.lines(t, r.ID), e.trail(t, r.ID)
	if len(said) == 0 || said[len(said)-1] != line {
		t.Fatalf("the trail of %s is %q, want %q at its end", r.ID, said, line)
	}
	return lines[len(lines)-1]
}

// put has a holder take the lock at key, anyone who has it, for so many ms; 0: for ever.
func (e *env) put(t testing.TB, key, value string, ms int) {
	t.Helper()
	switch {
	case e.memory == nil && ms == 0:
		e.do(t, "set", key, value)
	case e.memory == nil:
		e.do(t, "set", key, value, "px", ms)
	default:
		h := memory.Hold{Library: "token", Token: value, Identity: locksteward.IdentityStrong, Expires: inMs(ms)}
		if host, _, ok := strings.Cut(value, "_"); ok {
			h.Holder.Host = host
		}
		if len(value) < 20 { // a constant or a name
			if h.Identity, h.SharedToken = locksteward.IdentityLineage, true; ms == 0 {
				h.Identity = locksteward.IdentityNone
			}
		}
		e.memory.Put(key, h)
	}
}

// renew has the holder of key renew its lease.
func (e *env) renew(t testing.TB, key string, ms int) {
	t.Helper()
	if e.memory == nil {
		e.do(t, "pexpire", key, ms)
	} else {
		e.memory.Renew(key, inMs(ms))
	}
}

// free has the holder of key release it.
func (e *env) free(t testing.TB, key string) {
	t.Helper()
	if e.memory == nil {
		e.do(t, "del", key)
	} else {
		e.memory.Delete(key)
	}
}

func inMs(ms int) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(ms) * time.Millisecond)
}

func (e *env) exists(t testing.TB, key string) bool {
	t.Helper()
	if e.memory != nil {
		_, ok := e.memory.Read(target, key)
		return ok
	}
	n, err := e.rdb.Exists(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n == 1
}

// do runs a Redis command as the user who may do everything.
func (e *env) do(t testing.TB, args ...any) {
	t.Helper()
	if err := e.rdb.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args[0], err)
	}
}

// wantError checks the sentinel and that the sentence holds the words.
func wantError(t testing.TB, err, sentinel error, words ...string) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Errorf("got %v, want %v", err, sentinel)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

// reloadClasses replaces the classes, as a reload of the configuration does.
func (e *env) reloadClasses(t testing.TB, classes *class.Set) {
	t.Helper()
	if err := e.reload(classes); err != nil {
		t.Fatal(err)
	}
}
