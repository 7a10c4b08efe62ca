package model_test

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward/release/model"
)

var identities = map[string]model.Identity{"strong": model.Strong, "lineage": model.Lineage, "none": model.None}

// TestTheProtocolIsSafe goes through every state of the protocol as it is.
func TestTheProtocolIsSafe(t *testing.T) {
	t.Parallel()
	for name, id := range identities {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			got := model.Explore(id, model.Variant{})
			if got.Fault != "" {
				t.Fatal(got)
			}
			for s := model.Pending; s <= model.Unknown; s++ {
				// Whether a lock that cannot be distinguished from the next was touched, a look
				// does not tell.
				if !got.Reached[s] && (id != model.None || s != model.Failed) {
					t.Errorf("%s is never reached: the model shows less than it says", s)
				}
			}
			t.Logf("%d states in %s", got.States, time.Since(began).Round(time.Millisecond))
		})
	}
}

// TestBrokenVariantsAreFoundOut: each safeguard is needed.
// fault: 68
func TestBrokenVariantsAreFoundOut(t *testing.T) {
	t.Parallel()
	for _, v := range model.Broken() {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			found := 0
			for name, id := range identities {
				if got := model.Explore(id, v); got.Fault != "" {
					found++
					t.Logf("%s: %s", name, got)
				}
			}
			if found == 0 {
				t.Error("nothing was found: the explorer sees no difference")
			}
		})
	}
}
