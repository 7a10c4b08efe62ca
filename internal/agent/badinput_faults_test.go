package agent_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/agent"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/users"
	"github.com/locksteward/locksteward/lock"
)

// A store that comes back as it was before requests were made, approved and reported:
// it is said so, nothing is released a second time, and what fires is reported again.
func TestStoreThatIsOlder(t *testing.T) {
	t.Parallel()
	srv, e := testredis.Start(t), newEar(t)
	rdb := srv.Client(t)
	b := newBed(t, target(srv.URL())+orders+receivers("ops", e.url))
	const other = "6f2b8c1e-9d1a-4b6e-8f0a-1c2d3e4f5a6b"
	request := func(key string) api.Request {
		t.Helper()
		set(t, rdb, key, token, 0)
		var r api.Request
		testredis.Eventually(t, within, func() (ok bool) {
			var err error
			r, err = b.ana.CreateRequest(t.Context(), ask(key))
			return err == nil
		}, "no request")
		return r
	}
	again, gone := request("lock:order:again"), request("lock:order:gone")
	copied := b.backup()
	for _, r := range []api.Request{again, gone} {
		r, err := b.bo.Approve(t.Context(), r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash})
		if err != nil || r.State != "released" {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	set(t, rdb, "lock:order:again", other, 0) // somebody works under it by now
	set(t, rdb, "lock:order:later", token, 0) // and here is something that the backup has never seen
	times := func(finding string) (n int) {
		for _, h := range e.of("") {
			if h.finding() == finding {
				n++
			}
		}
		return n
	}
	testredis.Eventually(t, within, func() bool { return times("lock:order:later firing") == 1 }, "it is not reported")
	b.stop()
	b.restore(copied)
	b.start()
	if reported := b.logs.FilterMessageSnippet("the store is older than it was").All(); len(reported) != 1 || reported[0].ContextMap()["entries_missing"].(int64) < 4 {
		t.Errorf("nobody is notified that the store is older: %+v", reported)
	}
	for r, want := range map[*api.Request]string{&again: "changed", &gone: "already_gone"} {
		testredis.Eventually(t, within, func() bool {
			got, err := b.bo.Approve(t.Context(), r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash})
			if err == nil {
				*r = got
			}
			return err == nil
		}, "it cannot be approved")
		if r.State != want {
			t.Errorf("%s: %s (%s), want %s", r.ID, r.State, r.Outcome, want)
		}
	}
	if rdb.Get(t.Context(), "lock:order:again").Val() != other {
		t.Error("released twice")
	}
	testredis.Eventually(t, within, func() bool { return times("lock:order:later firing") == 2 }, "what the store forgot is not reported again")
	b.stop()
	// After an orderly end it is as old as it is.
	b.start()
	if b.logs.FilterMessageSnippet("the store is older than it was").Len() > 0 {
		t.Error("reported again after an orderly end")
	}
	b.stop()
	b.verify()
}

// A second agent on the file of one that runs is refused by name and disturbs
// nothing; after the first was killed it may begin at once.
// fault: 82
func TestTwoAgentsOnOneFile(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	set(t, rdb, "lock:order:1", token, 0)
	b := newBed(t, target(srv.URL())+orders)
	r, err := b.ana.CreateRequest(t.Context(), ask("lock:order:1"))
	for end := time.Now().Add(within); err != nil && time.Now().Before(end); {
		r, err = b.ana.CreateRequest(t.Context(), ask("lock:order:1"))
	}
	if err != nil {
		t.Fatal(err)
	}
	second := func() string {
		a := testagent.New(t, testagent.Options{Name: "second agent", File: b.file})
		a.Begin()
		if code := a.ExitCode(); code != 1 {
			t.Fatalf("it ended with %d: %s", code, a.Tail())
		}
		return a.Tail()
	}
	for _, want := range []string{fmt.Sprintf("another agent (process %d)", os.Getpid()), "stop it first or give this one another store.dsn"} {
		if said := second(); !strings.Contains(said, want) {
			t.Errorf("the second said %q, want %q", said, want)
		}
	}
	if rdb.Exists(t.Context(), "lock:order:1").Val() != 1 {
		t.Error("the second released something")
	}
	if r, err = b.bo.Approve(t.Context(), r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash}); err != nil || r.State != "released" {
		t.Errorf("the first is disturbed: %+v, %v", r, err)
	}
	b.stop()
	// One that is killed leaves nothing that keeps the next one out.
	other := testagent.New(t, testagent.Options{Name: "other agent", File: b.file})
	other.Begin()
	testredis.Eventually(t, within, func() bool {
		raw, err := os.ReadFile(filepath.Join(b.dir, "store.db.lock"))
		return err == nil && strings.HasPrefix(string(raw), fmt.Sprintf("%d\n", other.PID()))
	}, "the other agent does not have the file")
	other.Kill()
	began := time.Now()
	b.start()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the next agent waited %s for one that was killed", took)
	}
}

// The server's clock is an hour ahead of the agent's, or behind it: ages, deadlines
// and verdicts are by the server's, and a release does what it says.
// fault: 9
func TestClocksAnHourApart(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, clock := testredis.StartClocked(t)
			clock.Set(off)
			e := newEar(t)
			rdb := srv.Client(t)
			c, err := lock.New(rdb, lock.Options{App: "billing"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			asked := time.Now() // the server counts from some time between asked and taken
			h, err := c.Acquire(t.Context(), "lock:order:1", lock.Lease{TTL: 2 * time.Minute, Expect: 4 * time.Second, NoRenew: true})
			if err != nil {
				t.Fatal(err)
			}
			taken := time.Now()
			b := newBed(t, target(srv.URL())+orders+receivers("ops", e.url))
			var d api.LockDetail
			aged := func() {
				t.Helper()
				var least time.Duration
				testredis.Eventually(t, within, func() (ok bool) {
					least = time.Since(taken)
					d, err = b.ana.Lock(t.Context(), "main", nil, "lock:order:1", "en")
					return err == nil && d.AgeMs != nil
				}, "the lock is not known")
				held := time.Since(asked)
				if age := time.Duration(*d.AgeMs) * time.Millisecond; age < least-time.Second || age > held+time.Second {
					t.Errorf("%s old after %s to %s", age, least, held)
				}
			}
			aged()
			if left := time.Duration(d.TTLMs) * time.Millisecond; left <= 100*time.Second || left > 2*time.Minute {
				t.Errorf("%s left of two minutes", left)
			}
			got := e.await(1)[0]
			if late := got.at.Sub(asked); len(got.Findings) != 1 || got.Findings[0].Rule != "hold/too-long" || late < 3900*time.Millisecond {
				t.Errorf("reported %s after %s: %s", got.finding(), late, got.body)
			}
			aged() // of an age from which a second could be missing
			r, err := b.ana.CreateRequest(t.Context(), ask("lock:order:1"))
			if err != nil {
				t.Fatal(err)
			}
			if r, err = b.bo.Approve(t.Context(), r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash}); err != nil || r.State != "released" {
				t.Fatalf("%+v, %v", r, err)
			}
			select {
			case <-h.Context().Done():
			case <-time.After(5 * time.Second):
				t.Error("the holder is not reported")
			}
			testredis.Eventually(t, within, func() bool {
				all := e.of("")
				return all[len(all)-1].Status == "resolved"
			}, "it does not resolve")
			b.stop()
			b.verify()
		})
	}
}

// A program on a store with a schema of another version does not start, and says which one
// to run.
func TestAgentOnAnotherSchema(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	set(t, rdb, "lock:order:1", token, 0)
	b := newBed(t, target(srv.URL())+orders)
	b.awaitMetric(`locksteward_sweep_complete{target="main"} 1`)
	b.stop()
	shell, err := sql.Open("sqlite", "file:"+filepath.Join(b.dir, "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shell.ExecContext(t.Context(), `INSERT INTO schema_version (version, applied_at) VALUES (999, 0)`); err != nil {
		t.Fatal(err)
	}
	if err := shell.Close(); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(b.file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = agent.New(t.Context(), zap.NewNop(), cfg, agent.Options{})
	if err == nil || !strings.Contains(err.Error(), "version 999") || !strings.Contains(err.Error(), "run the locksteward that wrote it") {
		t.Errorf("got %v", err)
	}
	if rdb.Exists(t.Context(), "lock:order:1").Val() != 1 {
		t.Error("something was released")
	}
}

// Who gave or is to give a word, and lost the role meanwhile, is refused, and the
// trail says so; so is who was taken out.
// fault: 72
func TestApproverWhoLostTheRole(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	set(t, rdb, "lock:order:1", token, 0)
	b := newBed(t, target(srv.URL())+orders)
	cy := b.person("cy", users.RoleApprover)
	var r api.Request
	testredis.Eventually(t, within, func() (ok bool) {
		var err error
		r, err = b.ana.CreateRequest(t.Context(), ask("lock:order:1"))
		return err == nil
	}, "no request")
	word := api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash}
	file := filepath.Join(b.dir, "users.yaml")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// bo may look only from now on; cy is nobody any more.
	text := strings.Replace(string(raw), "[approver]", "[viewer]", 1)
	if text == string(raw) {
		text = strings.Replace(string(raw), "- approver", "- viewer", 1)
	}
	if text == string(raw) {
		t.Fatalf("no role in %s", text)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := users.SetDisabled(file, "cy", true); err != nil {
		t.Fatal(err)
	}
	if err := b.agent.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.bo.Approve(t.Context(), r.ID, word); !errors.Is(err, locksteward.ErrRefused) || !strings.Contains(err.Error(), "approver") {
		t.Errorf("without the role: %v", err)
	}
	if _, err := cy.Approve(t.Context(), r.ID, word); err == nil {
		t.Error("who was disabled may approve")
	}
	if _, err := b.ana.Approve(t.Context(), r.ID, word); !errors.Is(err, locksteward.ErrRefused) {
		t.Errorf("who asked: %v", err)
	}
	list, err := b.ana.Audit(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, entry := range list.Entries {
		if entry.Action == "release.approve" && entry.Outcome == "refused" && entry.Actor == "bo" {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("%d refusals of bo in the trail", refused)
	}
	if got, err := b.ana.Request(t.Context(), r.ID); err != nil || got.State != "pending" || rdb.Exists(t.Context(), "lock:order:1").Val() != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Names that are made to break things, all the way: found, listed, measured, reported,
// asked for, approved and released, byte for byte, and no other lock is touched.
// fault: 53
func TestHostileNamesAllTheWay(t *testing.T) {
	t.Parallel()
	srv, e := testredis.Start(t), newEar(t)
	rdb := srv.Client(t)
	const prefix = "lock:order:"
	names := []string{
		"", " ", "\n", "\r\nSET x y\r\n", "\x00", "\xff\xfe\x80", `"}],"`, `'; DROP TABLE entries; --`, "{", "}", "{}", "{a}{b}",
		"*", "?[a-z]*", `\`, "</script><script>", "\x1b[31m", "锁", "\u202eevil", strings.Repeat("x", 64<<10-len(prefix)), strings.Repeat("\xff", 64<<10), "a\tb", "%s%n", "../../etc",
	}
	keys := make([]string, 0, len(names))
	for _, name := range names {
		keys = append(keys, prefix+name)
	}
	for _, key := range keys {
		set(t, rdb, key, token, 0)
	}
	// Nor is a key without any name touched: what classes match has a literal part.
	set(t, rdb, "", token, 0)
	// As many at once need one approval more, which is another test's.
	many := strings.Replace(orders, "release: approve", "release: approve, many_per_minute: 100", 1)
	b := newBed(t, target(srv.URL())+many+receivers("ops", e.url))
	reported := map[string]bool{}
	testredis.Eventually(t, within, func() bool {
		for _, h := range e.of("") {
			if key, err := h.Findings[0].Key.Bytes(); err == nil && h.Status == "firing" {
				reported[key] = true
			}
		}
		return len(reported) >= len(keys)
	}, "not all are reported")
	list, err := b.ana.Locks(t.Context(), apiclient.LocksQuery{})
	if err != nil || list.Total != len(keys) {
		t.Fatalf("%d locks, %v", list.Total, err)
	}
	listed := map[string]bool{}
	for _, l := range list.Locks {
		key, err := l.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		listed[key] = true
	}
	b.awaitMetric(fmt.Sprintf(`locksteward_locks_without_ttl{class="orders",target="main"} %d`, len(names)))
	for i, key := range keys {
		if !reported[key] || !listed[key] {
			t.Errorf("%.40q: reported %t, listed %t", key, reported[key], listed[key])
		}
		r, err := b.ana.CreateRequest(t.Context(), api.CreateRequest{Target: "main", Key: api.NewKey(key), Reason: "stuck"})
		if err != nil {
			t.Errorf("%.40q: %v", key, err)
			continue
		}
		r, err = b.bo.Approve(t.Context(), r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash})
		if err != nil || r.State != "released" {
			t.Errorf("%.40q: %s %s, %v", key, r.State, r.Outcome, err)
		}
		left, err := rdb.Exists(t.Context(), keys...).Result()
		if err != nil || int(left) != len(keys)-i-1 || rdb.Exists(t.Context(), key).Val() != 0 {
			t.Fatalf("%.40q: %d locks are left, %v", key, left, err)
		}
	}
	if rdb.Get(t.Context(), "").Val() != token {
		t.Error("the key without a name was touched")
	}
}
