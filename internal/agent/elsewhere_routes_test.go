package agent_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// place is what a route does on a replica that does not have the target.
type place struct {
	// ask asks the far replica for it; nil if the route is about no target.
	ask func(*testing.T, *pair)
	// why it is about none.
	why string
}

// places has every route of the API. Pages ask the same of the agent, and a person sees
// them in TestReplicasAreOneConsole of test/browser.
var places = map[string]place{
	"GET /api/v1/locks":        same("/api/v1/locks?target=main&match=lock:order:still", "lock:order:still", "ttl/none"),
	"GET /api/v1/locks/one":    same("/api/v1/locks/one?target=main&key=lock:order:still", "lock:order:still", "verdicts", "ttl/none"),
	"GET /api/v1/locks/events": same("/api/v1/locks/events?target=main&key=lock:order:still", "events"),
	"GET /api/v1/graph":        same("/api/v1/graph?target=main", "lock:order:held"),
	"GET /api/v1/findings":     same("/api/v1/findings?target=main", "lock:order:still", "ttl/none"),
	"GET /api/v1/targets":      same("/api/v1/targets", `"up": true`, "tracking"),
	"GET /api/v1/classes":      same("/api/v1/classes", "orders"),
	"GET /api/v1/report":       same("/api/v1/report?target=main", "main"),
	"GET /api/v1/requests":     {ask: func(t *testing.T, s *pair) { s.same(t, "/api/v1/requests?target=main", s.request(t, nil).ID) }},
	"GET /api/v1/requests/{id}": {ask: func(t *testing.T, s *pair) {
		s.same(t, "/api/v1/requests/"+s.request(t, nil).ID, `"pending"`)
	}},
	"GET /api/v1/requests/{id}/preview": {ask: func(t *testing.T, s *pair) {
		s.same(t, "/api/v1/requests/"+s.request(t, nil).ID+"/preview", `"found": true`, `"refusal": ""`)
	}},
	"POST /api/v1/requests/preview": {ask: func(t *testing.T, s *pair) {
		key := s.lock(t)
		far, err := s.ana.DryRun(t.Context(), ask(key))
		if err != nil || !far.Found || far.Refusal != "" || !s.there(t, key) {
			t.Errorf("%+v, %v", far, err)
		}
		near, err := s.near.ana.DryRun(t.Context(), ask(key))
		if err != nil || far.Script != near.Script || strings.Join(far.Keys, " ") != strings.Join(near.Keys, " ") {
			t.Errorf("%+v, %v; the far replica: %+v", near, err, far)
		}
	}},
	"POST /api/v1/requests": {ask: func(t *testing.T, s *pair) {
		r := s.request(t, nil)
		s.audited(t, "ana", "release.request", r.ID)
		if got, err := s.near.ana.Request(t.Context(), r.ID); err != nil || got.State != "pending" || got.Requester != "ana" {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := s.ana.CreateRequest(t.Context(), ask("lock:order:nothing")); !isProblem(err, api.CodeNotFound) {
			t.Errorf("of what is not there: %v", err)
		}
	}},
	"POST /api/v1/requests/{id}/approve": {ask: func(t *testing.T, s *pair) {
		r := s.request(t, nil)
		_, err := s.ana.Approve(t.Context(), r.ID, word(r.EvidenceHash))
		refusedWith(t, "who may not", err, locksteward.ErrRefused)
		if r, err = s.bo.Approve(t.Context(), r.ID, word(r.EvidenceHash)); err != nil || s.there(t, r.Evidence.Key.Key) {
			t.Errorf("%+v, %v", r, err)
		}
		s.done(t, r.ID, "released")
		s.audited(t, "bo", "release.approve", r.ID)
	}},
	"POST /api/v1/requests/{id}/deny": {ask: func(t *testing.T, s *pair) {
		r := s.request(t, nil)
		if _, err := s.bo.Deny(t.Context(), r.ID, word(r.EvidenceHash)); err != nil || !s.there(t, r.Evidence.Key.Key) {
			t.Error(err)
		}
		s.done(t, r.ID, "denied")
		s.audited(t, "bo", "release.deny", r.ID)
	}},
	"POST /api/v1/requests/{id}/undo": {ask: func(t *testing.T, s *pair) {
		r := s.takenOver(t)
		u, err := s.bo.Undo(t.Context(), r.ID, api.Follow{Reason: "it works after all"})
		if err != nil || !s.there(t, r.Evidence.Key.Key) {
			t.Fatalf("%+v, %v", u, err)
		}
		s.done(t, u.ID, "released")
		s.audited(t, "bo", "release.undo", u.ID)
	}},
	"POST /api/v1/requests/{id}/lift": {ask: func(t *testing.T, s *pair) {
		r := s.takenOver(t)
		l, err := s.bo.Lift(t.Context(), r.ID, api.Follow{Reason: "looked"})
		if err != nil || s.rdb.Exists(t.Context(), r.Evidence.Key.Key).Val() != 0 {
			t.Fatalf("%+v, %v", l, err)
		}
		s.done(t, l.ID, "released")
		s.audited(t, "bo", "release.lift", l.ID)
	}},
	"POST /api/v1/requests/break-glass": {ask: func(t *testing.T, s *pair) {
		key := s.lock(t)
		r, err := s.gus.BreakGlass(t.Context(), api.BreakGlass{CreateRequest: ask(key)})
		if err != nil || s.there(t, key) {
			t.Fatalf("%+v, %v", r, err)
		}
		s.done(t, r.ID, "released")
		s.audited(t, "gus", "release.break_glass", r.ID)
	}},
	"POST /api/v1/bundles": {ask: func(t *testing.T, s *pair) {
		b := s.bundle(t)
		for _, r := range b.Requests {
			s.audited(t, "ana", "release.request", r.ID)
		}
		if got, err := s.near.ana.Bundle(t.Context(), b.ID); err != nil || got.Open != 2 || got.EvidenceHash != b.EvidenceHash {
			t.Errorf("%+v, %v", got, err)
		}
	}},
	"GET /api/v1/bundles/{id}": {ask: func(t *testing.T, s *pair) {
		b := s.bundle(t)
		s.same(t, "/api/v1/bundles/"+b.ID, b.Requests[0].ID, b.Requests[1].ID)
	}},
	"POST /api/v1/bundles/{id}/approve": {ask: func(t *testing.T, s *pair) {
		b := s.bundle(t)
		w := word(b.EvidenceHash)
		w.ConfirmHolderAlive = true // it is this test
		got, err := s.bo.ApproveBundle(t.Context(), b.ID, w)
		if err != nil || got.Open != 0 {
			t.Fatalf("%+v, %v", got, err)
		}
		for _, r := range got.Requests {
			s.done(t, r.ID, "released")
			s.audited(t, "bo", "release.approve", r.ID)
			if s.rdb.Exists(t.Context(), r.Evidence.Key.Key).Val() != 0 {
				t.Errorf("%s stands", r.Evidence.Key.Key)
			}
		}
	}},
	"POST /api/v1/bundles/{id}/deny": {ask: func(t *testing.T, s *pair) {
		b := s.bundle(t)
		if _, err := s.bo.DenyBundle(t.Context(), b.ID, word(b.EvidenceHash)); err != nil {
			t.Fatal(err)
		}
		for _, r := range b.Requests {
			s.done(t, r.ID, "denied")
			s.audited(t, "bo", "release.deny", r.ID)
		}
	}},
	"GET /api/v1/release/pause": same("/api/v1/release/pause", "automatic"),
	// A pause is for all targets, and must hold on the replica that would release.
	"POST /api/v1/release/pause": {ask: func(t *testing.T, s *pair) {
		key := s.lock(t)
		if _, err := s.root.PauseReleases(t.Context(), api.PauseReleases{Scope: api.PauseAll, Reason: "INC-9"}); err != nil {
			t.Fatal(err)
		}
		_, err := s.near.client(s.near.tokens["gus"]).BreakGlass(t.Context(), api.BreakGlass{CreateRequest: ask(key)})
		if err == nil || !s.there(t, key) {
			t.Errorf("released in spite of the pause, %v", err)
		}
		if _, err := s.root.ResumeReleases(t.Context(), api.ResumeReleases{Scope: api.PauseAll, Reason: "INC-9"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.gus.BreakGlass(t.Context(), api.BreakGlass{CreateRequest: ask(key)}); err != nil || s.there(t, key) {
			t.Errorf("not released after the pause: %v", err)
		}
		s.audited(t, "root", "release.pause", "")
	}},
	"POST /api/v1/release/resume": {ask: func(t *testing.T, s *pair) {
		in := api.PauseReleases{Scope: api.PauseAutomatic, ForMs: time.Hour.Milliseconds(), Reason: "INC-9"}
		if _, err := s.root.PauseReleases(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		// It is shown within seconds; what is released alone asks the store first
		// (TestAutoNeverWithout in release).
		testredis.Eventually(t, within, func() bool {
			got, err := s.near.ana.ReleasePause(t.Context())
			return err == nil && got.Automatic.Paused && got.Automatic.By == "root"
		}, "the pause is not shown")
		if _, err := s.root.ResumeReleases(t.Context(), api.ResumeReleases{Scope: api.PauseAutomatic, Reason: "over"}); err != nil {
			t.Fatal(err)
		}
		s.audited(t, "root", "release.resume", "")
	}},
	"GET /api/v1/audit":             same("/api/v1/audit?target=main", "entries"),
	"GET /api/v1/audit/checkpoints": same("/api/v1/audit/checkpoints", "checkpoints"),
	"GET /api/v1/audit/verify":      {why: "reads the trail in the store, which all replicas have in common"},
	"GET /api/v1/audit/status":      {why: "reports the replica that is asked"},
	"POST /api/v1/audit/import":     {why: "writes into the trail in the store"},
	"GET /api/v1/notifications":     same("/api/v1/notifications", "ops"),
	// What is reported elsewhere is the work of the replica that sends, anyone who has the target.
	"POST /api/v1/notifications/{id}/retry": {why: "about a delivery: the store has it, and the replica that sends is woken"},
	"POST /api/v1/receivers/{name}/retry":   {why: "about a receiver: the store has what died, and the replica that sends is woken"},
	"POST /api/v1/receivers/{name}/test":    {why: "about a receiver: the replica that is asked tries it"},
	"GET /api/v1/silences":                  same("/api/v1/silences", "silences"),
	"POST /api/v1/silences":                 {ask: silencedFromAfar},
	"POST /api/v1/silences/{id}/expire":     {ask: silencedFromAfar},
	"POST /-/reload":                        {why: "each replica reads its own file (docs/ha.md)"},
	"POST /-/pause":                         {ask: pausedFromAfar},
	"POST /-/resume":                        {ask: pausedFromAfar},
}

func silencedFromAfar(t *testing.T, s *pair) {
	in := api.AddSilence{Matchers: []string{"target=main", "key=lock:order:nobody"}, ForMs: time.Hour.Milliseconds(), Reason: "from afar"}
	silence, err := s.bo.AddSilence(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	s.same(t, "/api/v1/silences", silence.ID)
	s.audited(t, "bo", "silence.add", "")
	if _, err := s.bo.ExpireSilence(t.Context(), silence.ID); err != nil {
		t.Fatal(err)
	}
	s.same(t, "/api/v1/silences")
	s.audited(t, "bo", "silence.end", "")
}

func pausedFromAfar(t *testing.T, s *pair) {
	about := "?target=" + url.QueryEscape("main")
	if got := s.far.call(t, "root", http.MethodPost, "/-/pause"+about); !strings.Contains(got, `"main"`) {
		t.Errorf("paused: %s", got)
	}
	s.near.awaitMetric(`locksteward_budget_paused{target="main"} 1`)
	s.same(t, "/api/v1/targets", `"by": "root"`)
	if got := s.far.call(t, "root", http.MethodPost, "/-/resume"+about); !strings.Contains(got, `"main"`) {
		t.Errorf("resumed: %s", got)
	}
	s.near.awaitMetric(`locksteward_budget_paused{target="main"} 0`)
	s.audited(t, "root", "target.pause", "")
	s.audited(t, "root", "target.resume", "")
}

// TestEveryRouteOfAnotherReplica: of the replica that does not have a target everything
// can be asked that is about it. The answer is that of the one which has it, what is to
// be done is done there, and the trail names the person.
func TestEveryRouteOfAnotherReplica(t *testing.T) {
	t.Parallel()
	routes := routesOfTheContract(t)
	if len(routes) != len(places) {
		t.Errorf("%d routes, %d places", len(routes), len(places))
	}
	s := newPair(t)
	for _, route := range routes {
		p, ok := places[route]
		if !ok || (p.ask == nil) != (p.why != "") {
			t.Errorf("%s: say in places what another replica answers, or why it is about no target", route)
			continue
		}
		if p.ask != nil {
			t.Run(strings.ReplaceAll(route, "/", "_"), func(t *testing.T) { p.ask(t, s) })
		}
	}
	if len(s.far.leads()) != 0 || len(s.near.leads()) != 1 {
		t.Error("the target moved: nothing is shown by this")
	}
}
