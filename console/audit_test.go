package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/api"
)

// Every filter of the trail reaches it, and one that cannot be read is named.
func TestAuditIsFiltered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q := url.Values{
		"q": {"<script>"}, "actor": {"ana"}, "action": {"release.request"}, "target": {"orders"}, "key_b64": {"a/8="}, "subject": {"r1"},
		"since": {"2026-03-01T12:00:00.5Z"}, "until": {"1h"}, "before": {"9"}, "limit": {"7"},
	}
	get[api.EntryList](b, "", "/api/v1/audit?"+q.Encode())
	got := b.world.trails[len(b.world.trails)-1]
	until := got.Until
	got.Until = time.Time{}
	want := AuditQuery{
		Search: "<script>", Actor: "ana", Action: "release.request", Target: "orders", Key: "k\xff", Subject: "r1",
		Since: time.Date(2026, 3, 1, 12, 0, 0, 5e8, time.UTC), Before: 9, Limit: 8, // one more reports another page
	}
	if got != want || time.Since(until) < 59*time.Minute || time.Since(until) > time.Hour+time.Minute {
		t.Errorf("got %+v until %s, want %+v", got, until, want)
	}
	get[api.EntryList](b, "", "/api/v1/audit?after=0")
	if got := b.world.trails[len(b.world.trails)-1]; !got.Ascending || got.After != 0 {
		t.Errorf("got %+v", got)
	}
	for query, says := range map[string]string{
		"since=yesterday": "since", "until=x": "until", "before=-1": "before", "after=x": "after", "limit=0": "limit", "limit=10001": "limit",
		"key_b64=%25": "key_b64", "before=3&after=1": "give one of the two", "owner=ana": "owner", "actor=a&actor=b": "actor",
	} {
		if a := b.do("", "GET", "/api/v1/audit?"+query, ""); a.status != http.StatusBadRequest || !strings.Contains(a.body, says) {
			t.Errorf("%s: status %d: %s", query, a.status, a.body)
		}
	}
}

func TestAuditComesInPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	entry := b.world.entries[0]
	b.world.entries = nil
	for seq := int64(5); seq >= 1; seq-- {
		entry.Seq = seq
		b.world.entries = append(b.world.entries, entry)
	}
	for path, want := range map[string]struct {
		first, next int64
		n           int
	}{
		"?limit=2": {5, 4, 2}, "?limit=2&before=4": {3, 2, 2}, "?limit=2&before=2": {1, 0, 1}, "?limit=5": {5, 0, 5}, "?limit=2&before=1": {0, 0, 0},
		"?limit=2&after=0": {1, 2, 2}, "?limit=3&after=2": {3, 0, 3}, "?limit=2&after=2": {3, 4, 2},
	} {
		list := get[api.EntryList](b, "", "/api/v1/audit"+path)
		var first int64
		if len(list.Entries) > 0 {
			first = list.Entries[0].Seq
		}
		if first != want.first || list.Next != want.next || len(list.Entries) != want.n {
			t.Errorf("%s: %d entries from %d, next %d; want %+v", path, len(list.Entries), first, list.Next, want)
		}
	}
}

// Anyone who may read may verify; an import needs an admin, who is named to the trail.
func TestWhoMayDoWhatToTheTrail(t *testing.T) {
	t.Parallel()
	b := setup(t, "all", "viewer", "approver")
	const lines = `{"file":"night.jsonl","lines":["{}"]}`
	for _, path := range []string{"", "/checkpoints", "/verify", "/status"} {
		if a := b.do("viewer", "GET", "/api/v1/audit"+path, ""); a.status != http.StatusOK {
			t.Errorf("%s: status %d: %s", path, a.status, a.body)
		}
	}
	for _, who := range []string{"viewer", "approver"} {
		if a := b.do(who, "POST", "/api/v1/audit/import", lines); a.status != http.StatusForbidden {
			t.Errorf("%s imported: status %d: %s", who, a.status, a.body)
		}
	}
	if a := b.do("", "POST", "/api/v1/audit/import", lines); a.status != http.StatusUnauthorized {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	if len(b.world.imports) > 0 {
		t.Error("something was imported")
	}
	if a := b.do("all", "POST", "/api/v1/audit/import", lines); a.status != http.StatusOK || b.world.importers[0] != "all" || b.world.imports[0].File != "night.jsonl" {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	for body, status := range map[string]int{
		`{"lines":[]}`: http.StatusBadRequest, `{"lines":["{}"],"force":true}`: http.StatusBadRequest, `[]`: http.StatusBadRequest,
		`{"lines":["` + strings.Repeat("x", 2<<20) + `"]}`: http.StatusRequestEntityTooLarge,
	} {
		if a := b.do("all", "POST", "/api/v1/audit/import", body); a.status != status {
			t.Errorf("%.40s: status %d: %s", body, a.status, a.body)
		}
	}
}
