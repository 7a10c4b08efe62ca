package release_test

import (
	"fmt"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/release"
)

// dead puts locks of a library that names its host, and returns their keys.
func (e *env) dead(t *testing.T, class string, n int) []string {
	t.Helper()
	var keys []string
	for i := range n {
		key := fmt.Sprintf("lock:%s:%d", class, i)
		e.put(t, key, fmt.Sprintf("web-3_4711_0f8fad5bd9cb469fa165708677289%03d", i), minute)
		keys = append(keys, key)
	}
	return keys
}

func bundleWord(b release.Bundle) release.Decision {
	return release.Decision{Reason: "the host is gone", EvidenceHash: b.Hash}
}

// TestBundle: one list, one approval, each lock compared on its own.
func TestBundle(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	keys := e.dead(t, "order", 4)
	e.put(t, "lock:order:other", "web-4_4711_0f8fad5bd9cb469fa165708677289999", minute)
	e.put(t, "lock:off:1", "web-3_4711_0f8fad5bd9cb469fa165708677289998", minute)
	in := release.BundleInput{
		Target: target, Host: "web-3", Reason: "web-3 is gone",
		Keys: append([]string{"lock:order:other", "lock:off:1", "lock:order:none", keys[0]}, keys...),
	}
	b, err := e.service.RequestBundle(t.Context(), ana, in)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Requests) != 4 || len(b.LeftOut) != 3 {
		t.Fatalf("%d requests, left out %v", len(b.Requests), b.LeftOut)
	}
	if b.Hash != release.BundleHash(b.Requests) || b.Requests[0].Evidence.Bundle != 4 {
		t.Errorf("bundle %+v", b)
	}
	// One of them alone is not decided on.
	_, err = e.service.Approve(t.Context(), ben, b.Requests[1].ID, yes(b.Requests[1]))
	wantError(t, err, locksteward.ErrConflict, b.ID)
	_, err = e.service.ApproveBundle(t.Context(), ana, b.ID, bundleWord(b))
	wantError(t, err, locksteward.ErrRefused, "approver")
	_, err = e.service.ApproveBundle(t.Context(), ben, b.ID, release.Decision{Reason: "x", EvidenceHash: b.Requests[0].EvidenceHash})
	wantError(t, err, locksteward.ErrConflict, "hash")
	e.renew(t, keys[1], 2*minute) // one of them lives
	e.free(t, keys[2])
	b, err = e.service.ApproveBundle(t.Context(), ben, b.ID, bundleWord(b))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []locksteward.RequestState{
		locksteward.RequestReleased, locksteward.RequestChanged, locksteward.RequestAlreadyGone, locksteward.RequestReleased,
	} {
		e.want(t, b.Requests[i], want)
	}
	if e.exists(t, keys[0]) || !e.exists(t, keys[1]) || e.exists(t, keys[3]) || !e.exists(t, "lock:order:other") {
		t.Error("not the locks that should be gone are gone")
	}
	_, err = e.service.ApproveBundle(t.Context(), ben, b.ID, bundleWord(b))
	wantError(t, err, locksteward.ErrConflict, "over already")
}

// TestBundleIsAllOrNothing: where the decision is refused for one lock, nothing is
// decided.
func TestBundleIsAllOrNothing(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	keys := append(e.dead(t, "self", 2), e.dead(t, "order", 1)...)
	b, err := e.service.RequestBundle(t.Context(), eve, release.BundleInput{Target: target, Host: "web-3", Keys: keys, Reason: "gone"})
	if err != nil || len(b.Requests) != 3 {
		t.Fatalf("%+v, %v", b, err)
	}
	_, err = e.service.ApproveBundle(t.Context(), eve, b.ID, bundleWord(b))
	wantError(t, err, locksteward.ErrRefused, "your own", "lock:order:0")
	if b, err = e.service.GetBundle(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.Requests {
		e.want(t, r, locksteward.RequestPending)
		if len(r.Decisions) > 0 {
			t.Errorf("decisions %+v", r.Decisions)
		}
	}
	if b, err = e.service.DenyBundle(t.Context(), ben, b.ID, release.Decision{Reason: "it came back"}); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.Requests {
		e.want(t, r, locksteward.RequestDenied)
	}
}

func TestBundleIsRefused(t *testing.T) {
	t.Parallel()
	e := newMemoryEnv(t)
	keys := e.dead(t, "order", 3)
	for name, c := range map[string]struct {
		actor    release.Actor
		in       release.BundleInput
		sentinel error
		word     string
	}{
		"no host":   {ana, release.BundleInput{Target: target, Keys: keys, Reason: "x"}, locksteward.ErrInvalid, "host is empty"},
		"no keys":   {ana, release.BundleInput{Target: target, Host: "web-3", Reason: "x"}, locksteward.ErrInvalid, "1 to 200"},
		"no reason": {ana, release.BundleInput{Target: target, Host: "web-3", Keys: keys}, locksteward.ErrInvalid, "reason"},
		"role":      {ben, release.BundleInput{Target: target, Host: "web-3", Keys: keys, Reason: "x"}, locksteward.ErrRefused, "requester"},
		"host":      {ana, release.BundleInput{Target: target, Host: "web-9", Keys: keys, Reason: "x"}, locksteward.ErrRefused, "web-9"},
		"target":    {ana, release.BundleInput{Target: "nowhere", Host: "web-3", Keys: keys, Reason: "x"}, locksteward.ErrNotFound, "nowhere"},
	} {
		_, err := e.service.RequestBundle(t.Context(), c.actor, c.in)
		t.Log(name, err)
		wantError(t, err, c.sentinel, c.word)
	}
	// A request that is open for one of them is not overrun, and leaves no half.
	open := e.request(t, ana, keys[2])
	_, err := e.service.RequestBundle(t.Context(), ana, release.BundleInput{Target: target, Host: "web-3", Keys: keys, Reason: "x"})
	wantError(t, err, locksteward.ErrConflict, open.ID)
	list, err := e.store.ListRequests(t.Context(), []locksteward.RequestState{locksteward.RequestPending}, "", 0)
	if err != nil || len(list) != 1 || list[0].ID != open.ID {
		t.Errorf("open requests %+v, %v", list, err)
	}
}
