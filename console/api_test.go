package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

func TestLocksAreFilteredAndSorted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := aLock("lock:a", 2*time.Hour)
	other.Target, other.Class = "billing", "default"
	b.world.locks = append(b.world.locks, other)
	b.world.targets = append(b.world.targets, api.Target{Name: "billing", Up: true, DB: 0})
	for query, want := range map[string]string{
		"":                           "lock:a lock:order:42 lock:order:43 / 3",
		"?sort=age":                  "lock:a lock:order:42 lock:order:43 / 3",
		"?target=orders&sort=age":    "lock:order:42 lock:order:43 / 2",
		"?target=orders&limit=1":     "lock:order:42 / 2",
		"?class=default":             "lock:a / 1",
		"?library=locksteward":       "lock:order:43 / 1",
		"?state=firing":              "lock:order:42 / 1",
		"?state=pending":             "lock:order:43 / 1",
		"?state=clear":               "lock:a / 1",
		"?state=no-ttl":              "lock:order:42 / 1",
		"?target=orders&state=clear": " / 0",
		"?target=nowhere":            " / 0",
	} {
		list := get[api.LockList](b, "", "/api/v1/locks"+query)
		var keys []string
		for _, l := range list.Locks {
			keys = append(keys, l.Key.Key)
		}
		if got := fmt.Sprintf("%s / %d", strings.Join(keys, " "), list.Total); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}

func TestFindingsAreFilteredWorstFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for query, want := range map[string]string{
		"": "ttl/none ttl/too-long / 2", "?severity=info": "ttl/too-long / 1", "?status=firing": "ttl/none / 1",
		"?rule=ttl/none": "ttl/none / 1", "?class=orders&limit=1": "ttl/none / 2", "?q=ORDER": "ttl/none ttl/too-long / 2", "?q=nothing": " / 0", "?target=nowhere": " / 0",
	} {
		list := get[api.FindingList](b, "", "/api/v1/findings"+query)
		var rules []string
		for _, f := range list.Findings {
			rules = append(rules, f.Rule)
		}
		if got := fmt.Sprintf("%s / %d", strings.Join(rules, " "), list.Total); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	if f := get[api.FindingList](b, "", "/api/v1/findings?lang=zh&severity=critical").Findings[0]; f.Summary != "锁永不过期" || f.Evidence[0] != "PTTL 为 -1" {
		t.Errorf("summary %q, evidence %q", f.Summary, f.Evidence)
	}
}

func TestRequestsAreFiltered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for query, want := range map[string]string{"": "r1 r0", "?state=open": "r1", "?state=released": "r0", "?target=nowhere": "", "?limit=1": "r1"} {
		var ids []string
		for _, r := range get[api.RequestList](b, "", "/api/v1/requests"+query).Requests {
			ids = append(ids, r.ID)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}

// fault: 53
func TestHostileKeysMakeTheRoundTrip(t *testing.T) {
	t.Parallel()
	for _, key := range []string{hostile, "lock: \t\"'%2f?&=#", "lock:\x00", "", "锁:订单", "lock:\\xff"} {
		t.Run(fmt.Sprintf("%q", key), func(t *testing.T) {
			t.Parallel()
			b := setup(t, "all")
			l := aLock(key, time.Minute)
			b.world.locks = append(b.world.locks, l)
			b.world.findings = append(b.world.findings, aFinding(key))
			var found bool
			for _, l := range get[api.LockList](b, "all", "/api/v1/locks").Locks {
				back, err := l.Key.Bytes()
				if err != nil {
					t.Fatal(err)
				}
				found = found || back == key
			}
			if !found {
				t.Error("the list does not have the key")
			}
			enc := api.NewKey(key)
			name, value := "key", enc.Key
			if enc.KeyB64 != "" {
				name, value = "key_b64", enc.KeyB64
			}
			one := get[api.LockDetail](b, "all", "/api/v1/locks/one?target=orders&"+name+"="+url.QueryEscape(value))
			if back, err := one.Key.Bytes(); err != nil || back != key {
				t.Errorf("got %q, %v", back, err)
			}
			if key != "" && (len(one.Verdicts) != 1 || len(one.Findings) != 1) {
				t.Errorf("%d verdicts, findings %v", len(one.Verdicts), one.Findings)
			}
			// Raw bytes in the query work too.
			raw := get[api.LockDetail](b, "all", "/api/v1/locks/one?target=orders&db=0&key="+url.QueryEscape(key))
			if back, _ := raw.Key.Bytes(); back != key {
				t.Errorf("got %q", back)
			}
			body := fmt.Sprintf(`{"target":"orders","%s":%q,"reason":"stuck"}`, name, value)
			if enc.KeyB64 == "" {
				body = `{"target":"orders","key":` + quote(key) + `,"reason":"stuck"}`
			}
			if a := b.do("all", "POST", "/api/v1/requests", body); a.status != http.StatusCreated || a.head.Get("Location") != "/api/v1/requests/r1" {
				t.Fatalf("status %d: %s", a.status, a.body)
			}
			if in := b.world.inputs[0]; in.Key != key || in.Target != "orders" || in.Reason != "stuck" {
				t.Errorf("got %+v", in)
			}
		})
	}
}

// Who makes a request learns at once that it could not be executed.
func TestCreatedRequestsWarnOfARefusal(t *testing.T) {
	t.Parallel()
	b := setup(t, "all")
	for _, refusal := range []string{"", "the user may not write it"} {
		b.world.refusal = refusal
		var warnings []string
		r, err := b.client("all").CreateRequest(t.Context(), api.CreateRequest{Target: "orders", Key: api.NewKey("lock:a"), Reason: "stuck"})
		if err != nil {
			t.Fatal(err)
		}
		warnings = append(warnings, r.Warnings...)
		bundle, err := b.client("all").CreateBundle(t.Context(), api.CreateBundle{Target: "orders", Host: "app-7", Reason: "gone"})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range bundle.Requests {
			warnings = append(warnings, r.Warnings...)
		}
		said := 0
		for _, w := range warnings {
			if w == "the release would fail: the user may not write it" {
				said++
			}
		}
		if refusal == "" && said != 0 || refusal != "" && said != 2 { // once in the bundle, whose requests are of one class
			t.Errorf("%q: warnings %q", refusal, warnings)
		}
	}
}

func TestDatabaseIsTheTargetsOwnUnlessSaid(t *testing.T) {
	t.Parallel()
	b := setup(t, "all")
	b.world.targets[0].DB = 5
	for body, want := range map[string]int{
		`{"target":"orders","key":"k","reason":"r"}`:        5,
		`{"target":"orders","db":0,"key":"k","reason":"r"}`: 0,
	} {
		b.world.inputs = nil
		if a := b.do("all", "POST", "/api/v1/requests", body); a.status != http.StatusCreated || b.world.inputs[0].DB != want {
			t.Errorf("%s: status %d, %+v", body, a.status, b.world.inputs)
		}
	}
}

func TestDecisionsReachTheService(t *testing.T) {
	t.Parallel()
	b := setup(t, "all")
	a := b.do("all", "POST", "/api/v1/requests/r1/approve", `{"reason":"seen","evidence_hash":"sha256:e1","confirm_no_identity":true}`)
	if a.status != http.StatusOK || !strings.Contains(a.body, `"state":"released"`) {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	if w := b.world.words[0]; w != (Decision{Reason: "seen", EvidenceHash: "sha256:e1", ConfirmNoIdentity: true}) {
		t.Errorf("got %+v", w)
	}
	if who := b.world.actors[0]; who.Name != "all" || len(who.Roles) != 5 {
		t.Errorf("got %+v", who)
	}
	if a := b.do("all", "POST", "/api/v1/requests/r1/deny", `{"reason":"no"}`); a.status != http.StatusOK || !strings.Contains(a.body, `"verdict":"deny"`) {
		t.Errorf("status %d: %s", a.status, a.body)
	}
}

// A person who closes the lid after approving must not stop the release halfway.
func TestAChangeOutlivesItsClient(t *testing.T) {
	t.Parallel()
	b := setup(t, "all")
	b.world.gate = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", b.url+"/api/v1/requests/r1/approve", strings.NewReader(`{"reason":"seen","evidence_hash":"e"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.tokens["all"])
	req.Header.Set("Content-Type", "application/json")
	gone := make(chan error, 1)
	go func() {
		_, err := (&http.Client{Transport: ownConnections}).Do(req) //nolint:bodyclose // there is none
		gone <- err
	}()
	eventually(t, func() bool { b.world.mu.Lock(); defer b.world.mu.Unlock(); return len(b.world.actors) == 1 })
	cancel()
	if err := <-gone; err == nil {
		t.Fatal("the client got an answer")
	}
	close(b.world.gate)
	eventually(t, func() bool { b.world.mu.Lock(); defer b.world.mu.Unlock(); return len(b.world.words) == 1 })
}

func eventually(t *testing.T, cond func() bool) {
	t.Helper()
	deadline, tick := time.After(10*time.Second), time.NewTicker(2*time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline:
			t.Fatal("it did not happen in 10 s")
		case <-tick.C:
		}
	}
}

func TestErrorsBecomeProblems(t *testing.T) {
	t.Parallel()
	b := setup(t, "all")
	for err, want := range map[error]int{
		locksteward.ErrInvalid: 400, locksteward.ErrRefused: 403, locksteward.ErrNotFound: 404, locksteward.ErrConflict: 409,
	} {
		b.world.fail = fmt.Errorf("request: %w: it was so", err)
		if p := b.do("all", "POST", "/api/v1/requests", changes["POST /api/v1/requests"]).problem(t); p.Status != want || !strings.Contains(p.Detail, "it was so") {
			t.Errorf("%v: %+v", err, p)
		}
	}
	b.world.fail = errInner
	if p := b.do("all", "POST", "/api/v1/requests", changes["POST /api/v1/requests"]).problem(t); p.Status != 500 || strings.Contains(p.Detail, "hunter2") {
		t.Errorf("%+v", p)
	}
	if b.logs.FilterMessage("console request failed").Len() != 1 {
		t.Error("an inner error is not logged")
	}
	b.world.fail = fmt.Errorf("targets[0].url: must be a URL")
	if p := b.do("all", "POST", "/-/reload", "").problem(t); p.Status != 400 || !strings.Contains(p.Detail, "targets[0].url") || !strings.Contains(p.Detail, "stays in use") {
		t.Errorf("%+v", p)
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	b := setup(t, "all")
	const create = "POST /api/v1/requests"
	for name, c := range map[string]struct {
		request, body string
		status        int
		detail        string
	}{
		"unknown path":      {"GET /api/v1/nothing", "", 404, "docs/openapi.yaml"},
		"unknown method":    {"DELETE /api/v1/locks", "", 405, "GET"},
		"get a change":      {"GET /-/reload", "", 405, "POST"},
		"unknown parameter": {"GET /api/v1/locks?clas=x", "", 400, "clas: unknown parameter"},
		"twice":             {"GET /api/v1/locks?class=x&class=y", "", 400, "2 times"},
		"all at once":       {"GET /api/v1/locks?state=odd&sort=odd&limit=0", "", 400, "state: must be firing, pending, clear, no-ttl, got \"odd\"\nsort"},
		"limit":             {"GET /api/v1/findings?limit=1e9", "", 400, "limit: must be 1 to 10000"},
		"bad query":         {"GET /api/v1/locks?%zz", "", 400, "query"},
		"lang":              {"GET /api/v1/findings?lang=fr", "", 400, "lang"},
		"no key":            {"GET /api/v1/locks/one?target=orders", "", 400, "key: is missing"},
		"no target":         {"GET /api/v1/locks/one?key=k", "", 400, "target: is missing"},
		"unknown target":    {"GET /api/v1/locks/one?target=x&key=k", "", 404, "target"},
		"unknown lock":      {"GET /api/v1/locks/one?target=orders&key=k", "", 404, "k"},
		"bad base64":        {"GET /api/v1/locks/one?target=orders&key_b64=!", "", 400, "base64"},
		"unknown request":   {"GET /api/v1/requests/zzz", "", 404, "zzz"},
		"approve unknown":   {"POST /api/v1/requests/zzz/approve", `{"reason":"r","evidence_hash":"e"}`, 404, "zzz"},
		"not json":          {create, `{`, 400, "read body"},
		"wrong type":        {create, `{"target":7}`, 400, "target"},
		"unknown field":     {create, `{"target":"orders","key":"k","reason":"r","force":true}`, 400, "force"},
		"more":              {create, `{"target":"orders","key":"k","reason":"r"}{}`, 400, "unexpected data"},
		"body base64":       {create, `{"target":"orders","key_b64":"!","reason":"r"}`, 400, "base64"},
		"no whole number":   {create, `{"target":"orders","key":"k","reason":"r","db":1.5}`, 400, "db: must be a JSON integer that fits"},
		"no word":           {create, `{"target":"orders","key":"k","reason":"r","holder_alive":"yes"}`, 400, "holder_alive: must be a JSON boolean, got string"},
		"no time":           {"POST /api/v1/release/pause", `{"scope":"all","until":"tomorrow","reason":"r"}`, 400, "tomorrow is not a time: write it like 2026-03-01T12:00:00Z"},
		"far pause":         {"POST /api/v1/release/pause", `{"scope":"all","until":"9999-12-31T23:59:59Z","reason":"r"}`, 400, "at most 90 days away"},
		"no parameters":     {"GET /api/v1/release/pause?x=1", "", 400, "x: unknown parameter; this address takes none"},
		"body no target":    {create, `{"key":"k","reason":"r"}`, 400, "target is missing"},
		"body bad target":   {create, `{"target":"x","key":"k","reason":"r"}`, 404, "target"},
		"too large":         {create, `{"target":"` + strings.Repeat("x", maxBody) + `"}`, 413, "larger"},
	} {
		method, path, _ := strings.Cut(c.request, " ")
		if p := b.do("all", method, path, c.body).problem(t); p.Status != c.status || !strings.Contains(p.Detail, c.detail) {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if len(b.world.inputs) != 0 {
		t.Errorf("bad input was taken: %+v", b.world.inputs)
	}
	if a := b.do("all", "DELETE", "/api/v1/locks", ""); !strings.Contains(a.head.Get("Allow"), "GET") {
		t.Errorf("Allow is %q", a.head.Get("Allow"))
	}
}
