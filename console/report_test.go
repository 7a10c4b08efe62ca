package console

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A report covers a day unless reported, and a misspelt question is no empty answer.
func TestReport(t *testing.T) {
	t.Parallel()
	b := setup(t, "viewer")
	for path, status := range map[string]int{
		"/api/v1/report": 200, "/api/v1/report?since=1h&target=orders&class=orders": 200,
		"/api/v1/report?since=1s": 400, "/api/v1/report?since=721h": 400, "/api/v1/report?since=yesterday": 400, "/api/v1/report?clas=orders": 400,
		"/api/v1/report?target=elsewhere": 404,
	} {
		if a := b.do("viewer", "GET", path, ""); a.status != status || status == 200 && !strings.Contains(a.body, `"holds":1200`) {
			t.Errorf("%s: %d, want %d: %s", path, a.status, status, a.body)
		}
	}
	b.world.mu.Lock()
	defer b.world.mu.Unlock()
	slices.Sort(b.world.reports)
	if want := []time.Duration{time.Hour, 24 * time.Hour}; !slices.Equal(b.world.reports, want) {
		t.Errorf("reports since %v, want %v", b.world.reports, want)
	}
}
