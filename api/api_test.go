package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/locksteward/locksteward"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var at = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("CET", 3600))

func golden(t *testing.T, name string, v any) {
	t.Helper()
	got, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	path := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test ./api -update rewrites it):\n%s", path, got)
	}
}

// forever is the lock of the example in docs/cli.md: no TTL, no known age.
func forever() locksteward.Lock {
	return locksteward.Lock{Observation: locksteward.Observation{
		Target: "redis", Key: "lock:order:42", Type: "string", At: at, TTL: locksteward.NoExpiry,
		ExpireAt: locksteward.NoExpireAt, Kind: locksteward.KindLock, Class: "default", Library: "token",
		Identity: locksteward.IdentityNone, TokenDigest: "hmac-sha256:00", Count: 1, Waiters: -1, Idle: -1,
	}}
}

func ours() locksteward.Lock {
	return locksteward.Lock{
		Observation: locksteward.Observation{
			Target: "redis", DB: 3, Node: "127.0.0.1:6379", Key: "lock:\xff", Type: "string", At: at,
			TTL: 29500 * time.Millisecond, ExpireAt: at.Add(29500 * time.Millisecond).UnixMilli(), Size: 60,
			Kind: locksteward.KindLock, Class: "orders", Configured: true, Library: "locksteward",
			Confidence: locksteward.ConfidenceHigh, Identity: locksteward.IdentityStrong,
			TokenDigest: "hmac-sha256:11", Count: 2, Fence: 77, Waiters: 4,
			Holder: locksteward.Holder{App: "billing", Host: "h1", PID: 7, Session: "s", Instance: "i"},
			Claim: &locksteward.Claim{
				ID: "id", Class: "orders", Purpose: "charge card", Acquired: at.Add(-time.Minute), Renewed: at,
				TTL: 30 * time.Second, RenewEvery: 10 * time.Second, Expect: 5 * time.Second, Renewals: 6,
			},
			Instance: &locksteward.Instance{ID: "i", App: "billing", Host: "h1", PID: 7, Started: at.Add(-time.Hour), Beat: at},
		},
		History: locksteward.History{FirstSeen: at.Add(-time.Minute), LastSeen: at, Looks: 3, Renewals: 2, LastRenewal: at},
	}
}

func finding() locksteward.Finding {
	return locksteward.Finding{
		Rule: "ttl/none", Severity: locksteward.SeverityCritical, Risk: locksteward.RiskDeadlock,
		Status: locksteward.StatusFiring, Target: "redis", Class: "default", Key: "lock:order:42",
		Summary: locksteward.Literal("never expires", "永不过期"), Evidence: []locksteward.Message{locksteward.Literal("PTTL is -1", "PTTL 为 -1")},
		Cause: locksteward.Literal("crash"), Remedy: locksteward.Literal("set a TTL"), Since: at, FiredAt: at,
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	sweep := locksteward.Sweep{
		Target: "redis", At: at, Duration: 612400 * time.Microsecond, Candidates: 12,
		Masters: []locksteward.MasterPass{{Node: "a:1", Complete: true, Keys: 999}, {Node: "b:1", Reason: "cut off", Keys: 1}},
		Locks:   []locksteward.Lock{forever(), ours()},
	}
	golden(t, "scan", NewScan(sweep, []locksteward.Finding{finding()}, "en"))
	golden(t, "scan_empty", NewScan(locksteward.Sweep{Target: "redis"}, nil, "en"))
	golden(t, "lock_detail", NewLockDetail(ours(), []Verdict{
		NewVerdict("hold/too-long", "clear", "held for 1s of 5s", nil, "zh"),
		NewVerdict("ttl/none", "fires", "the lock never expires", new(finding()), "zh"),
	}))
	golden(t, "request", NewRequest(locksteward.Request{
		ID: "r1", State: locksteward.RequestReleased, EvidenceHash: "e", Requester: "ann", Reason: "stuck",
		Evidence: locksteward.Evidence{
			Target: "redis", Key: "lock:order:42", Class: "default", Library: "token", Type: "string",
			Identity: locksteward.IdentityLineage, TokenDigest: "hmac-sha256:00", ExpireAt: -1, Count: 1, At: at,
			Findings: []string{"ttl/none"},
		},
		CreatedAt: at, ExpiresAt: at.Add(time.Hour), FinishedAt: at, Outcome: "released", WaitersWoken: 2,
		Decisions: []locksteward.Decision{{By: "bob", Approve: true, Reason: "seen", At: at, EvidenceHash: "e"}},
	}))
	golden(t, "entry", NewEntry(locksteward.Entry{
		Seq: 9, At: at, Actor: "ann", Action: "release.request", Target: "redis", Key: "k", Subject: "r1",
		Detail: json.RawMessage(`{"a":1}`), Hash: "h",
	}))
	golden(t, "target", NewTarget(locksteward.TargetState{
		Target: locksteward.Target{Name: "redis", Mode: locksteward.ModeStandalone}, Up: true,
		Nodes: []locksteward.NodeState{{Addr: "a:1", Version: "7.0.15", ConnectedClients: 4, MaxClients: -1, EvictedKeys: 0, CPUSys: -1}},
	}))
	watched := NewTarget(locksteward.TargetState{Target: locksteward.Target{Name: "orders", Mode: locksteward.ModeCluster}, Up: true})
	watched.Watch = &Watch{Mode: "sweep", Reason: "refused", BlindMs: 7, Missed: 1, Waiting: 2, Classes: []ClassWatch{{Class: "a", Coverage: "partly", Reason: "x"}}}
	watched.Budget = &Budget{Idle: 0.1, Busy: 0.01, Servers: []Pace{{Addr: "127.0.0.1:6379", Share: 0.081, Use: 0.1, Bound: "idle", Reason: "headroom"}}, ThrottledMs: map[string]int64{"headroom": 1500, "delayed": 20}, Degraded: []string{"d"}}
	golden(t, "target_watched", watched)
	if total, reason := watched.Budget.Waited(); total != 1520*time.Millisecond || reason != "headroom" {
		t.Errorf("waited %s, mostly for %q", total, reason)
	}
	written := forever()
	written.Library, written.Acquired, written.Mode = "shedlock", at.Add(-time.Hour), "read"
	golden(t, "lock_written", NewLock(written, nil, written.At))
	written.Asked = true
	if l := NewLock(written, nil, written.At); l.AgeMs != nil || !strings.Contains(l.AcquiredDoubt, "may have waited") {
		t.Errorf("in doubt: %+v", l)
	}
	golden(t, "class", Class{
		Class: "orders", Match: []string{"lock:order:*"}, ExpectMs: new(int64(30_000)), MaxTTLMs: 86_400_000,
		DeadWhen: []string{}, Release: "approve", Approvals: 1, SelfApproval: "deny",
	})
	golden(t, "problem", NewProblem(CodeRefused, "no release credentials configured"))
}

// The names of docs/cli.md, which other programs rely on.
func TestScanKeepsTheContract(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(NewScan(locksteward.Sweep{
		Target: "redis", Locks: []locksteward.Lock{forever()}, Masters: []locksteward.MasterPass{{Complete: true}},
	}, []locksteward.Finding{finding()}, "en"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Locks    []map[string]any
		Findings []map[string]any
	}
	top := map[string]any{}
	if err := errors.Join(json.Unmarshal(raw, &doc), json.Unmarshal(raw, &top)); err != nil {
		t.Fatal(err)
	}
	wantFields(t, top, "target complete keys_scanned duration_ms locks candidates findings")
	wantFields(t, doc.Locks[0], "key class library type ttl_ms age_ms age_basis age_is_minimum identity token_digest fence waiters holder findings")
	wantFields(t, doc.Locks[0]["holder"].(map[string]any), "app host pid session instance")
	wantFields(t, doc.Findings[0], "rule severity key class status risk summary evidence counter_evidence cause remedy fingerprint")
	l := doc.Locks[0]
	if l["ttl_ms"] != -1.0 || l["age_ms"] != nil || l["age_basis"] != "none" || fmt.Sprint(l["findings"]) != "[ttl/none]" {
		t.Errorf("lock is %v", l)
	}
	if _, has := l["key_b64"]; has {
		t.Error("key_b64 is given for a key that is valid UTF-8")
	}
}

func TestReplicasOfASweep(t *testing.T) {
	t.Parallel()
	sweep := locksteward.Sweep{Masters: []locksteward.MasterPass{
		{Node: "a:1", Complete: true}, {Node: "b:1", Complete: true, Replica: "b:2", AsOf: 77},
	}}
	want := []OnReplica{{Node: "b:1", Replica: "b:2", AsOfOffset: 77}}
	if got := NewScan(sweep, nil, "en").OnReplicas; !slices.Equal(got, want) {
		t.Errorf("scan: %+v", got)
	}
	if got := NewSwept(sweep).OnReplicas; !slices.Equal(got, want) {
		t.Errorf("swept: %+v", got)
	}
	for _, doc := range []any{NewScan(locksteward.Sweep{}, nil, "en"), NewSwept(locksteward.Sweep{})} {
		if raw, err := json.Marshal(doc); err != nil || strings.Contains(string(raw), "on_replicas") {
			t.Errorf("%s, %v", raw, err)
		}
	}
}

func wantFields(t *testing.T, obj map[string]any, names string) {
	t.Helper()
	for name := range strings.FieldsSeq(names) {
		if _, ok := obj[name]; !ok {
			t.Errorf("field %q is missing in %v", name, obj)
		}
	}
}

func TestKeysSurviveJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := string(rapid.SliceOf(rapid.Byte()).Draw(t, "key"))
		raw, err := json.Marshal(NewKey(key))
		if err != nil {
			t.Fatal(err)
		}
		var back Key
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatal(err)
		}
		if got, err := back.Bytes(); err != nil || got != key {
			t.Fatalf("got %q, %v; want %q", got, err, key)
		}
	})
}

func TestKeyRejectsBadBase64(t *testing.T) {
	t.Parallel()
	if _, err := (Key{KeyB64: "!"}).Bytes(); !errors.Is(err, locksteward.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
}

func TestShortTTLIsNotNoTTL(t *testing.T) {
	t.Parallel()
	l := forever()
	l.TTL = 300 * time.Microsecond
	if got := NewLock(l, nil, l.At).TTLMs; got != 0 {
		t.Errorf("ttl_ms is %d, want 0", got)
	}
}

func TestProblemForKeepsSentinels(t *testing.T) {
	t.Parallel()
	for sentinel, status := range map[error]int{
		locksteward.ErrInvalid: 400, locksteward.ErrRefused: 403, locksteward.ErrNotFound: 404, locksteward.ErrConflict: 409,
	} {
		p := ProblemFor(fmt.Errorf("approve request %q: %w", "r1", sentinel))
		if p.Status != status || !errors.Is(p, sentinel) || !strings.Contains(p.Detail, "r1") {
			t.Errorf("%v became %+v", sentinel, p)
		}
	}
	if p := ProblemFor(errors.New("dial tcp: password hunter2")); p.Status != 500 || strings.Contains(p.Detail, "hunter2") {
		t.Errorf("an inner error became %+v", p)
	}
}
