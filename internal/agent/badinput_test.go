package agent_test

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/users"
	"github.com/locksteward/locksteward/store"
)

// bad is one request that must change nothing.
type bad struct {
	who, path, body string
	status          int
	says            string            // part of the detail
	audited         string            // the action that is refused in the audit trail
	head            map[string]string // in place of the usual headers
}

// TestBadInputChangesNothing sends what nobody should to an agent with a real
// store, release service and Redis: each is answered with the right status and a
// sentence that helps, refusals of policy stand in the audit trail, and locks,
// requests and pauses are what they were.
func TestBadInputChangesNothing(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	for _, key := range []string{"lock:order:1", "lock:order:2", "lock:order:3", "lock:order:4", "lock:order:5"} {
		set(t, rdb, key, token, 0)
	}
	set(t, rdb, "lock:off:1", token, 0)
	const classes = `
classes:
  - {class: orders, match: ["lock:order:*"], team: checkout, release: approve}
  - {class: off, match: ["lock:off:*"], release: "off"}
`
	b := newBed(t, target(srv.URL())+classes)
	for name, role := range map[string]users.Role{"dee": users.RoleAdmin, "max": users.RoleBreakGlass} {
		token, err := users.Add(filepath.Join(b.dir, "users.yaml"), name, []users.Role{role})
		if err != nil {
			t.Fatal(err)
		}
		b.tokens[name] = token
	}
	seen := func(want int) {
		testredis.Eventually(t, within, func() bool {
			list, err := b.ana.Locks(t.Context(), apiclient.LocksQuery{})
			return err == nil && list.Total == want
		}, "the locks are not seen")
	}
	seen(6)
	request := func(key string) api.Request {
		t.Helper()
		r, err := b.ana.CreateRequest(t.Context(), api.CreateRequest{Target: "main", Key: api.NewKey(key), Reason: "stuck"})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	open, released, superseded, expired := request("lock:order:1"), request("lock:order:2"), request("lock:order:3"), request("lock:order:4")
	if _, err := b.bo.Approve(t.Context(), released.ID, api.Decide{Reason: "checked", EvidenceHash: released.EvidenceHash}); err != nil {
		t.Fatal(err)
	}
	set(t, rdb, "lock:order:3", "6f2b8c1e-9d1a-4b6e-8f0a-1c2d3e4f5a6b", 0)
	request("lock:order:3")
	// Time cannot be waited for: the request's end is moved to the past.
	b.stop()
	st, err := store.Open(t.Context(), b.dsn)
	if err != nil {
		t.Fatal(err)
	}
	_, err = st.UpdateRequest(t.Context(), expired.ID, func(r *locksteward.Request) ([]locksteward.Entry, error) {
		r.ExpiresAt = time.Now().Add(-time.Hour)
		return nil, nil
	})
	if err := cmp.Or(err, st.Close()); err != nil {
		t.Fatal(err)
	}
	b.start()
	seen(5)
	testredis.Eventually(t, within, func() bool {
		r, err := b.bo.Request(t.Context(), expired.ID)
		return err == nil && r.State == "expired"
	}, "the request does not expire")

	const requests = "/api/v1/requests"
	approve := func(r api.Request) string { return requests + "/" + r.ID + "/approve" }
	word := func(r api.Request) string { return `{"reason":"ok","evidence_hash":"` + r.EvidenceHash + `"}` }
	ask := func(fields string) string { return `{"target":"main","reason":"stuck",` + fields + `}` }
	const five = `"key":"lock:order:5"`
	for name, c := range map[string]bad{
		"approving twice":        {who: "bo", path: approve(released), body: word(released), status: 409, says: "released already"},
		"approving an expired":   {who: "bo", path: approve(expired), body: word(expired), status: 409, says: "expired"},
		"approving a superseded": {who: "bo", path: approve(superseded), body: word(superseded), status: 409, says: "superseded"},
		"denying what is over":   {who: "bo", path: requests + "/" + released.ID + "/deny", body: `{"reason":"late"}`, status: 409, says: "final"},
		"approving one's own":    {who: "ana", path: approve(open), body: word(open), status: 403, says: "approver", audited: "release.approve"},
		"asking as an approver":  {who: "bo", path: requests, body: ask(five), status: 403, says: "requester", audited: "release.request"},
		"breaking glass without the role": {
			who: "ana", path: requests + "/break-glass", body: ask(five), status: 403, says: "break-glass", audited: "release.break_glass",
		},
		"breaking glass unheard": {who: "max", path: requests + "/break-glass", body: ask(five), status: 403, says: "alert.receivers", audited: "release.break_glass"},
		"pause without the role": {
			who: "bo", path: "/api/v1/release/pause", body: `{"scope":"all","reason":"r"}`, status: 403, says: "admin", audited: "release.pause",
		},
		"resume without the role":  {who: "ana", path: "/api/v1/release/resume", body: `{"scope":"all","reason":"r"}`, status: 403, says: "admin", audited: "release.resume"},
		"bundle without the role":  {who: "bo", path: "/api/v1/bundles", body: `{"target":"main","host":"h","keys":[{"key":"lock:order:5"}],"reason":"r"}`, status: 403, says: "requester", audited: "release.request"},
		"a class that is off":      {who: "ana", path: requests, body: ask(`"key":"lock:off:1"`), status: 403, says: "release: approve", audited: "release.request"},
		"reload without the role":  {who: "bo", path: "/-/reload", status: 403, says: "admin"},
		"no token":                 {path: requests, body: ask(five), status: 401, says: "token"},
		"a wrong token":            {path: requests, body: ask(five), status: 401, says: "unknown API token", head: map[string]string{"Authorization": "Bearer lsu_nobody"}},
		"a foreign origin":         {who: "ana", path: requests, body: ask(five), status: 403, says: "another web site", head: map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}},
		"a form":                   {who: "ana", path: requests, body: "target=main&key=k&reason=r", status: 415, says: "application/json", head: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}},
		"no reason":                {who: "ana", path: requests, body: `{"target":"main","key":"lock:order:5"}`, status: 400, says: "reason is empty"},
		"a blank reason":           {who: "bo", path: approve(open), body: `{"reason":" \n","evidence_hash":"` + open.EvidenceHash + `"}`, status: 400, says: "reason is empty"},
		"a long reason":            {who: "ana", path: requests, body: `{"target":"main","key":"lock:order:5","reason":"` + strings.Repeat("x", 1001) + `"}`, status: 400, says: "1000"},
		"a reason that rings":      {who: "ana", path: requests, body: `{"target":"main","key":"lock:order:5","reason":"\u0007"}`, status: 400, says: "control characters"},
		"no evidence hash":         {who: "bo", path: approve(open), body: `{"reason":"ok"}`, status: 400, says: "evidence hash is missing"},
		"another's evidence hash":  {who: "bo", path: approve(open), body: word(released), status: 409, says: "not that of request"},
		"a wrong id":               {who: "bo", path: requests + "/r-000000000000/approve", body: word(open), status: 404, says: "r-000000000000"},
		"an id that climbs":        {who: "bo", path: requests + "/..%2f..%2f-%2freload/approve", body: word(open), status: 404, says: "not found"},
		"a request that is there":  {who: "ana", path: requests, body: ask(`"key":"lock:order:1"`), status: 409, says: open.ID},
		"undoing what is open":     {who: "bo", path: requests + "/" + open.ID + "/undo", body: `{"reason":"r"}`, status: 409, says: open.ID},
		"another database":         {who: "ana", path: requests, body: ask(five + `,"db":7`), status: 404, says: "watches database"},
		"an unknown target":        {who: "ana", path: requests, body: `{"target":"nowhere","key":"k","reason":"r"}`, status: 404, says: "nowhere"},
		"no such lock":             {who: "ana", path: requests, body: ask(`"key":"lock:order:99"`), status: 404, says: "lock:order:99"},
		"an oversized body":        {who: "ana", path: requests, body: ask(`"key":"` + strings.Repeat("k", 1<<20) + `"`), status: 413, says: "larger than"},
		"an unknown field":         {who: "ana", path: requests, body: ask(five + `,"force":true`), status: 400, says: `unknown field "force"`},
		"a field in capitals":      {who: "ana", path: requests, body: `{"target":"main","KEY":"lock:order:5","reason":"r"}`, status: 400, says: `unknown field "KEY"`},
		"a field twice":            {who: "ana", path: requests, body: ask(five + `,"key":"lock:order:1"`), status: 400, says: `"key" is given twice`},
		"two keys":                 {who: "ana", path: requests, body: ask(five + `,"key_b64":"bG9jazpvcmRlcjox"`), status: 400, says: "name two keys"},
		"no base64":                {who: "ana", path: requests, body: ask(`"key_b64":"%"`), status: 400, says: "base64"},
		"a wrong type":             {who: "ana", path: requests, body: ask(`"key":7`), status: 400, says: "key: must be a JSON string"},
		"a number for a body":      {who: "ana", path: requests, body: `7`, status: 400, says: "one JSON object"},
		"null":                     {who: "ana", path: requests, body: `null`, status: 400, says: "one JSON object"},
		"nothing":                  {who: "ana", path: requests, status: 400, says: "too early"},
		"half a body":              {who: "ana", path: requests, body: `{"target":"main"`, status: 400, says: "too early"},
		"two bodies":               {who: "ana", path: requests, body: ask(five) + ask(five), status: 400, says: "unexpected data"},
		"a huge number":            {who: "ana", path: requests, body: ask(five + `,"db":1e400`), status: 400, says: "db"},
		"a fraction":               {who: "ana", path: requests, body: ask(five + `,"take_over_ms":0.5`), status: 400, says: "take_over_ms"},
		"a negative take-over":     {who: "ana", path: requests, body: ask(five + `,"take_over_ms":-1`), status: 400, says: "take_over_ms"},
		"an endless take-over":     {who: "ana", path: requests, body: ask(five + `,"take_over_ms":9223372036854775807`), status: 400, says: "take_over_ms"},
		"deep nesting":             {who: "ana", path: requests, body: ask(`"key":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000)), status: 400, says: "nested deeper"},
		"bytes that are no text":   {who: "ana", path: requests, body: ask("\"key\":\"lock:order:5\xff\""), status: 400, says: "key_b64"},
		"half a character":         {who: "ana", path: requests, body: ask(`"key":"lock:order:5\ud800"`), status: 400, says: "no character"},
		"SQL for a key":            {who: "ana", path: requests, body: ask(`"key":"'; DROP TABLE requests; --"`), status: 404, says: "DROP TABLE"},
		"SQL for an id":            {who: "bo", path: requests + "/r'%20OR%20'1'='1/approve", body: word(open), status: 404, says: "OR"},
		"HTML for a target":        {who: "ana", path: requests, body: `{"target":"<script>alert(1)</script>","key":"k","reason":"r"}`, status: 404, says: "script"},
		"a long target":            {who: "ana", path: requests, body: `{"target":"` + strings.Repeat("t", 9000) + `","key":"k","reason":"r"}`, status: 400, says: "no name has more"},
		"bundle of nobody":         {who: "ana", path: "/api/v1/bundles", body: `{"target":"main","host":"app-7","reason":"r"}`, status: 404, says: "app-7"},
		"bundle of no locks":       {who: "ana", path: "/api/v1/bundles", body: `{"target":"main","host":"app-7","keys":[],"reason":"r"}`, status: 400, says: "1 to 200"},
		"bundle of another's lock": {who: "ana", path: "/api/v1/bundles", body: `{"target":"main","host":"app-7","keys":[{"key":"lock:order:5"}],"reason":"r"}`, status: 403, says: "app-7", audited: "release.request"},
		"bundle without a host":    {who: "ana", path: "/api/v1/bundles", body: `{"target":"main","keys":[{"key":"lock:order:5"}],"reason":"r"}`, status: 400, says: "host is missing"},
		"bundle of odd keys":       {who: "ana", path: "/api/v1/bundles", body: `{"target":"main","host":"h","keys":[{"key":"a","KEY":"b"}],"reason":"r"}`, status: 400, says: `keys: [0]: "KEY" is given twice`},
		"approving no bundle":      {who: "bo", path: "/api/v1/bundles/b-nothing/approve", body: word(open), status: 404, says: "b-nothing"},
		"pause without a scope":    {who: "dee", path: "/api/v1/release/pause", body: `{"reason":"r"}`, status: 400, says: "scope: must be all or automatic"},
		"pause unexplained":        {who: "dee", path: "/api/v1/release/pause", body: `{"scope":"all","reason":""}`, status: 400, says: "reason is empty"},
		"pause by a number":        {who: "dee", path: "/api/v1/release/pause", body: `{"scope":1,"reason":"r"}`, status: 400, says: "scope: must be a JSON string"},
		"pause with two ends":      {who: "dee", path: "/api/v1/release/pause", body: `{"scope":"automatic","for_ms":1000,"until":"2030-01-01T00:00:00Z","reason":"r"}`, status: 400, says: "not both"},
		"pause in the past":        {who: "dee", path: "/api/v1/release/pause", body: `{"scope":"automatic","until":"2020-01-01T00:00:00Z","reason":"r"}`, status: 400, says: "future"},
		"pause for too long":       {who: "dee", path: "/api/v1/release/pause", body: `{"scope":"automatic","for_ms":9223372036854775807,"reason":"r"}`, status: 400, says: "for_ms"},
		"pause until never":        {who: "dee", path: "/api/v1/release/pause", body: `{"scope":"automatic","until":"tomorrow","reason":"r"}`, status: 400, says: "tomorrow"},
		"resume of nothing":        {who: "dee", path: "/api/v1/release/resume", body: `{"scope":"some","reason":"r"}`, status: 400, says: "scope: must be all or automatic"},
	} {
		before, trail := b.everythingThatCounts(), b.newestEntry()
		p := b.send(c)
		if p.Status != c.status || !strings.Contains(p.Detail, c.says) {
			t.Errorf("%s: status %d, want %d with %q: %s", name, p.Status, c.status, c.says, p.Detail)
		}
		if len(p.Detail) > 4000 {
			t.Errorf("%s: an answer of %d bytes", name, len(p.Detail))
		}
		if after := b.everythingThatCounts(); after != before {
			t.Errorf("%s: it changed\n%s\nto\n%s", name, before, after)
		}
		e := b.newestEntry()
		switch {
		case c.audited == "" && e.Seq != trail.Seq && c.status != http.StatusUnauthorized && e.Outcome != "refused":
			t.Errorf("%s: an entry of what did not happen: %+v", name, e)
		case c.audited != "" && (e.Seq != trail.Seq+1 || e.Action != c.audited || e.Outcome != "refused" || e.Actor != c.who):
			t.Errorf("%s: the newest entry is %+v, want one of a refused %s by %s", name, e, c.audited, c.who)
		}
	}
	if rdb.Exists(t.Context(), "lock:order:1", "lock:order:3", "lock:order:4", "lock:order:5", "lock:off:1").Val() != 5 {
		t.Error("a lock is gone")
	}
}

// send makes one request and returns the problem that is the answer.
func (b *bed) send(c bad) api.Problem {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, strings.TrimSuffix(b.agent.ConsoleURL(), "/")+c.path, strings.NewReader(c.body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.who != "" {
		req.Header.Set("Authorization", "Bearer "+b.tokens[c.who].Reveal())
	}
	for name, value := range c.head {
		req.Header.Set(name, value)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: within}
	resp, err := client.Do(req)
	if err != nil {
		b.t.Fatalf("%s: %v", c.path, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	var p api.Problem
	if err := json.Unmarshal(raw, &p); err != nil || resp.Header.Get("Content-Type") != api.ProblemType || p.Status != resp.StatusCode {
		b.t.Errorf("%s: status %d, no problem: %s", c.path, resp.StatusCode, raw)
		p.Status = resp.StatusCode
	}
	return p
}

// everythingThatCounts is the requests and what is stopped, as JSON.
func (b *bed) everythingThatCounts() string {
	b.t.Helper()
	list, err := b.bo.Requests(b.t.Context(), apiclient.RequestsQuery{})
	if err != nil {
		b.t.Fatal(err)
	}
	pause, err := b.bo.ReleasePause(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	raw, err := json.Marshal(struct {
		Requests []api.Request
		Pause    api.ReleasePause
	}{list.Requests, pause})
	if err != nil {
		b.t.Fatal(err)
	}
	return string(raw)
}

func (b *bed) newestEntry() api.Entry {
	b.t.Helper()
	var list api.EntryList
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: within}
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.agent.ConsoleURL()+"api/v1/audit?limit=1", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.tokens["bo"].Reveal())
	resp, err := client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &list); err != nil || len(list.Entries) != 1 {
		b.t.Fatalf("audit: %v: %s", err, raw)
	}
	return list.Entries[0]
}
