package release_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/source"
)

func TestEvidenceHashCoversEveryField(t *testing.T) {
	t.Parallel()
	base := locksteward.Evidence{
		Target: "redis", DB: 1, Key: "lock:\xff", Class: "orders", Library: "token", Type: "string",
		Identity: locksteward.IdentityStrong, TokenDigest: "hmac-sha256:1", ExpireAt: 7, Count: 1,
		Holder:  locksteward.Holder{App: "a", Host: "h", PID: 2, Session: "s", Instance: "i"},
		ClaimID: "c", Fence: 3, Findings: []string{"a/b"}, At: time.Unix(1, 2).UTC(),
	}
	hash := release.EvidenceHash(base)
	// What was stored before there were further fields keeps its hash.
	const first = `{"v":1,"target":"redis","db":1,"key_b64":"bG9jazr/","class":"orders","library":"token","type":"string","identity":"strong",` +
		`"token_digest":"hmac-sha256:1","expire_at":7,"count":1,"holder":["a","h","2","s","i"],"claim_id":"c","fence":3,"findings":["a/b"],` +
		`"at":"1970-01-01T00:00:01.000000002Z"}`
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte(first))); hash != want {
		t.Errorf("hash %s, want %s as it ever was", hash, want)
	}
	if again := release.EvidenceHash(base); again != hash {
		t.Error("the same evidence has two hashes")
	}
	local := base
	local.At = base.At.In(time.FixedZone("x", 3600))
	if release.EvidenceHash(local) != hash {
		t.Error("the time zone is part of the hash")
	}
	seen := map[string]string{hash: "base"}
	check := func(name string, e locksteward.Evidence) {
		h := release.EvidenceHash(e)
		if other, dup := seen[h]; dup {
			t.Errorf("%s and %s have one hash", name, other)
		}
		seen[h] = name
	}
	alter := func(v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			v.SetString(v.String() + "x")
		case reflect.Int, reflect.Int64:
			v.SetInt(v.Int() + 1)
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Slice:
			v.Set(reflect.Append(v, reflect.ValueOf("x")))
		case reflect.Struct:
			v.Set(reflect.ValueOf(base.At.Add(1)))
		default:
			t.Fatalf("a field of kind %s", v.Kind())
		}
	}
	kind := reflect.TypeFor[locksteward.Evidence]()
	for i := range kind.NumField() {
		name := kind.Field(i).Name
		if name == "Holder" {
			for j := range reflect.TypeFor[locksteward.Holder]().NumField() {
				e := base
				alter(reflect.ValueOf(&e).Elem().Field(i).Field(j))
				check(name, e)
			}
			continue
		}
		e := base
		e.Findings = append([]string(nil), base.Findings...)
		alter(reflect.ValueOf(&e).Elem().Field(i))
		check(name, e)
	}
}

func TestEveryDifferenceIsSeen(t *testing.T) {
	t.Parallel()
	base := locksteward.Evidence{Type: "string", TokenDigest: "d", ExpireAt: 7, Count: 1, Library: "token", ClaimID: "c"}
	if diff := source.Differences(base, base); len(diff) != 0 {
		t.Errorf("differs from itself: %q", diff)
	}
	for name, change := range map[string]func(*locksteward.Evidence){
		"type":    func(e *locksteward.Evidence) { e.Type = "hash" },
		"digest":  func(e *locksteward.Evidence) { e.TokenDigest = "e" },
		"none":    func(e *locksteward.Evidence) { e.TokenDigest = "" },
		"expiry":  func(e *locksteward.Evidence) { e.ExpireAt++ },
		"count":   func(e *locksteward.Evidence) { e.Count++ },
		"library": func(e *locksteward.Evidence) { e.Library = "unknown" },
		"claim":   func(e *locksteward.Evidence) { e.ClaimID = "d" },
	} {
		is := base
		change(&is)
		if len(source.Differences(base, is)) == 0 {
			t.Errorf("%s: not seen", name)
		}
	}
	// A lock that could not be read in full equals nothing, not even itself.
	unread := base
	unread.TokenDigest = ""
	if len(source.Differences(unread, unread)) == 0 {
		t.Error("two unread values count as equal")
	}
}

func TestFinalStatesHaveNoNext(t *testing.T) {
	t.Parallel()
	all := map[locksteward.RequestState]bool{locksteward.RequestPending: true}
	for from, tos := range release.Next() {
		if from.Final() {
			t.Errorf("%s is final and has a next state", from)
		}
		for _, to := range tos {
			all[to] = true
		}
	}
	if len(all) != 11 {
		t.Errorf("%d states can be reached, want all 11", len(all))
	}
	for state := range all {
		if _, moves := release.Next()[state]; moves == state.Final() {
			t.Errorf("%s: final %t, moves %t", state, state.Final(), moves)
		}
	}
}

func TestConfigReportsAllProblems(t *testing.T) {
	t.Parallel()
	if err := release.DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	if err := (release.Config{}).Validate(); err != nil {
		t.Error(err)
	}
	err := release.Config{RequestTTL: time.Second, ApprovalTTL: 48 * time.Hour, ExecuteTimeout: -1}.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, line := range []string{"request_ttl: must be", "got 1s", "approval_ttl: must be", "got 48h0m0s", "execute_timeout: must be", "got -1ns"} {
		if !strings.Contains(err.Error(), line) {
			t.Errorf("%q is not in %q", line, err)
		}
	}
}

func TestDocsExplainTheStates(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../docs/release.md")
	if err != nil {
		t.Fatal(err)
	}
	for from := range release.Next() {
		for _, state := range append(release.Next()[from], from) {
			if !strings.Contains(string(raw), "| `"+string(state)+"` |") {
				t.Errorf("docs/release.md does not explain the state %s", state)
			}
		}
	}
}
