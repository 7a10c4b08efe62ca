package console

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/api"
)

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	b := setup(t, "admin")
	began := time.Now()
	a := b.do("admin", "POST", "/-/pause?target=orders&for=30m", "")
	if a.status != http.StatusOK || !strings.Contains(a.body, `"until"`) {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	if b.do("admin", "POST", "/-/pause", "").status != http.StatusOK || b.do("admin", "POST", "/-/resume", "").status != http.StatusOK {
		t.Error("cannot pause or resume all")
	}
	p := b.world.pauses
	if len(p) != 2 || p[0].By != "admin" || p[0].Until.Sub(p[0].Since) != 30*time.Minute || p[0].Since.Before(began.Add(-time.Second)) || !p[1].Until.IsZero() {
		t.Errorf("pauses %+v", p)
	}
	if len(b.world.resumes) != 1 || b.world.resumes[0] != "admin" {
		t.Errorf("resumed by %q", b.world.resumes)
	}
	for path, says := range map[string]string{
		"/-/pause?for=soon":     `for: must be 1s to 168h0m0s, such as 30m, got "soon"`,
		"/-/pause?for=-1m":      "for: must be",
		"/-/pause?for=10000h":   "for: must be",
		"/-/pause?why=noise":    "why: unknown parameter",
		"/-/pause?target=other": `no target is named "other"`,
		"/-/resume?for=1m":      "for: unknown parameter",
	} {
		if p := b.do("admin", "POST", path, "").problem(t); !strings.Contains(p.Detail, says) || p.Code == api.CodeInternal {
			t.Errorf("%s: %+v", path, p)
		}
	}
	if len(b.world.pauses) != 2 {
		t.Error("a wrong pause paused")
	}
}
