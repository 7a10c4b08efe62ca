package scan_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/scan"
)

var day = time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC)

func finding(n byte, rule, key, status string) api.Finding {
	return api.Finding{
		Rule: rule, Severity: "critical", Key: api.NewKey(key), Class: "default", Status: status,
		Fingerprint: strings.Repeat(string(n), 32), Evidence: []string{"hmac-sha256:feed"},
	}
}

func TestBaseline(t *testing.T) {
	t.Parallel()
	out := api.Scan{Complete: true, Findings: []api.Finding{
		finding('b', "ttl/none", "lock:2", "firing"), finding('a', "ttl/none", "lock:1", "firing"),
		finding('c', "hold/too-long", "lock:\xff", "firing"), finding('d', "ttl/none", "lock:9", "pending"),
	}}
	first := scan.Update(out, api.Baseline{}, day)
	var rules []string
	for _, f := range first.Findings {
		rules = append(rules, f.Rule+" "+f.Key.Key)
	}
	if got := strings.Join(rules, ", "); got != `hold/too-long lock:\xff, ttl/none lock:1, ttl/none lock:2` {
		t.Errorf("got %s: want it sorted, without what is pending", got)
	}
	raw, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "hmac") || !strings.Contains(string(raw), "2026-03-01") {
		t.Errorf("got %s", raw)
	}
	read, err := scan.ParseBaseline(raw)
	if err != nil || !reflect.DeepEqual(read, first) {
		t.Fatalf("read back %+v, %v", read, err)
	}

	// The next day one is gone, one is new, and one that is known is only pending.
	next := api.Scan{Complete: true, Findings: []api.Finding{
		finding('a', "ttl/none", "lock:1", "pending"), finding('c', "hold/too-long", "lock:\xff", "firing"), finding('e', "ttl/none", "lock:5", "firing"),
	}}
	scan.Compare(&next, read)
	for i, want := range []string{"known", "known", "new"} {
		if next.Findings[i].Baseline != want {
			t.Errorf("finding %d is %q, want %q", i, next.Findings[i].Baseline, want)
		}
	}
	if len(next.BaselineGone) != 1 || next.BaselineGone[0].Key.Key != "lock:2" {
		t.Errorf("gone %+v", next.BaselineGone)
	}
	second := scan.Update(next, read, day.AddDate(0, 0, 1))
	dates := map[string]string{}
	for _, f := range second.Findings {
		dates[f.Key.Key] = f.Accepted
	}
	if want := map[string]string{"lock:1": "2026-03-01", `lock:\xff`: "2026-03-01", "lock:5": "2026-03-02"}; !reflect.DeepEqual(dates, want) {
		t.Errorf("dates %v, want %v", dates, want)
	}

	// What an incomplete scan did not find may be there all the same.
	next.Complete = false
	scan.Compare(&next, read)
	if next.BaselineGone != nil || len(scan.Update(next, read, day).Findings) != 4 {
		t.Errorf("an incomplete scan forgets findings: gone %+v", next.BaselineGone)
	}
}

func TestParseBaselineRefuses(t *testing.T) {
	t.Parallel()
	ok := strings.Repeat("a", 32)
	for name, text := range map[string]string{
		"nothing": ``, "no JSON": `findings`, "another version": `{"version":2,"findings":[]}`, "no version": `{"findings":[]}`,
		"a fingerprint of another length": `{"version":1,"findings":[{"fingerprint":"aa"}]}`,
		"twice the same":                  `{"version":1,"findings":[{"fingerprint":"` + ok + `"},{"fingerprint":"` + ok + `"}]}`,
	} {
		if _, err := scan.ParseBaseline([]byte(text)); !errors.Is(err, locksteward.ErrInvalid) || !strings.Contains(err.Error(), "--update-baseline") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
