package release_test

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/release"
)

// TestWeakIdentityIsConfirmed is fault 70: the next holder of a lock with a constant
// value writes the same, so who approves says that they looked, with a TTL or without.
// fault: 70
func TestWeakIdentityIsConfirmed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lock     []any // behind the key
		identity locksteward.Identity
		weak     bool
	}{
		"constant":             {[]any{"1", "px", minute}, locksteward.IdentityLineage, true},
		"constant word":        {[]any{"locked", "px", minute}, locksteward.IdentityLineage, true},
		"name":                 {[]any{"worker-1", "px", minute}, locksteward.IdentityLineage, true},
		"constant without TTL": {[]any{"1"}, locksteward.IdentityNone, true},
		"fresh":                {[]any{uuid, "px", minute}, locksteward.IdentityStrong, false},
		"fresh without TTL":    {[]any{uuid}, locksteward.IdentityStrong, false},
		"no known form":        {[]any{"a text, of no known form!", "px", minute}, locksteward.IdentityLineage, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			key := "lock:order:1"
			e.do(t, append([]any{"set", key}, c.lock...)...)
			r := e.request(t, ana, key)
			stored, err := e.service.Get(t.Context(), r.ID)
			if err != nil {
				t.Fatal(err)
			}
			if r.Evidence.Identity != c.identity || r.Evidence.WeakIdentity() != c.weak || stored.Evidence.WeakIdentity() != c.weak {
				t.Fatalf("evidence %+v, stored %+v", r.Evidence, stored.Evidence)
			}
			if warned := len(e.service.Warnings(stored)) == 1; warned != c.weak {
				t.Errorf("warnings %q", e.service.Warnings(stored))
			}
			if said := strings.Contains(string(e.lines(t, r.ID)[0].Detail), `"weak_identity":true`); said != c.weak {
				t.Errorf("the trail says %s", e.lines(t, r.ID)[0].Detail)
			}
			decision := yes(r)
			decision.ConfirmNoIdentity = false
			done, err := e.service.Approve(t.Context(), ben, r.ID, decision)
			if c.weak {
				wantError(t, err, locksteward.ErrInvalid, "--confirm-no-identity")
				if e.exec.count() != 0 || !e.exists(t, key) {
					t.Error("it was released without the confirmation")
				}
				done = e.approve(t, ben, r)
			} else if err != nil {
				t.Fatal(err)
			}
			e.want(t, done, locksteward.RequestReleased)
		})
	}
}

// TestWeakIdentityWithAHolderAlive: then the expiry is not compared either, and the
// warning does not say that it is.
func TestWeakIdentityWithAHolderAlive(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.put(t, "lock:order:1", "1", minute)
	r, err := e.service.Request(t.Context(), ana, release.RequestInput{Target: target, Key: "lock:order:1", Reason: "it hangs", HolderAlive: true})
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(e.service.Warnings(r), " ")
	if !strings.Contains(said, "cannot be distinguished from the next") || strings.Contains(said, "only its expiry") {
		t.Errorf("warnings %q", said)
	}
	decision := yes(r)
	decision.ConfirmNoIdentity = false
	_, err = e.service.Approve(t.Context(), ben, r.ID, decision)
	wantError(t, err, locksteward.ErrInvalid, "confirm_no_identity")
}

// TestWeakIdentityOfABundle: one word is for all of its locks, and confirms for those
// that need it.
func TestWeakIdentityOfABundle(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	keys := e.dead(t, "order", 1)
	e.put(t, "lock:order:weak", "web-3:4711", minute)
	b, err := e.service.RequestBundle(t.Context(), ana, release.BundleInput{Target: target, Host: "web-3", Keys: append(keys, "lock:order:weak"), Reason: "gone"})
	if err != nil || len(b.Requests) != 2 || !b.Requests[1].Evidence.WeakIdentity() {
		t.Fatalf("%+v, %v", b, err)
	}
	decision := bundleWord(b)
	decision.ConfirmNoIdentity = false
	_, err = e.service.ApproveBundle(t.Context(), ben, b.ID, decision)
	wantError(t, err, locksteward.ErrInvalid, "lock:order:weak", "confirm")
	if e.exec.count() != 0 {
		t.Error("some were released")
	}
	decision.ConfirmNoIdentity = true
	if b, err = e.service.ApproveBundle(t.Context(), ben, b.ID, decision); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.Requests {
		e.want(t, r, locksteward.RequestReleased)
	}
}

// TestWeakIdentityAndTheAgent: what compares the expiry in the script stays as
// automatic as it was.
func TestWeakIdentityAndTheAgent(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.put(t, "lock:rule:1", "1", 1000*minute)
	for range 3 {
		e.sweep(t, "hold/too-long", "", "lock:rule:1")
	}
	e.clock.add(11 * time.Minute)
	list := e.sweep(t, "hold/too-long", "", "lock:rule:1")
	if len(list) != 1 || !list[0].Evidence.WeakIdentity() {
		t.Fatalf("%+v", list)
	}
	e.want(t, list[0], locksteward.RequestReleased)
}
