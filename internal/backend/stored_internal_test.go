package backend

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/store"
)

// TestStoreFaultIsReported: a release may have been carried out and only not been
// written down; the person who approved it must not read "see the log".
func TestStoreFaultIsReported(t *testing.T) {
	t.Parallel()
	full := &store.Error{Op: "update request", Path: "x.db", Reason: "no space left", Hint: "free space", Err: errors.New("driver")}
	p := api.ProblemFor(stored(fmt.Errorf("request r-1 was carried out (released) but that could not be written down: %w", full)))
	if p.Status != http.StatusServiceUnavailable || p.Code != api.CodeUnavailable {
		t.Errorf("problem %+v", p)
	}
	for _, want := range []string{"r-1 was carried out (released)", "no space left", "free space"} {
		if !strings.Contains(p.Detail, want) {
			t.Errorf("detail %q lacks %q", p.Detail, want)
		}
	}
	// A refusal that could not be audited stays a refusal.
	if p := api.ProblemFor(stored(errors.Join(locksteward.ErrRefused, full))); p.Code != api.CodeRefused {
		t.Errorf("refusal became %+v", p)
	}
	if p := api.ProblemFor(stored(errors.New("a fault of the program"))); p.Code != api.CodeInternal {
		t.Errorf("fault became %+v", p)
	}
	if stored(nil) != nil {
		t.Error("no error became one")
	}
}
