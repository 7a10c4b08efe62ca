package agent_test

import (
	"slices"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/store"
)

// meanwhile changes a request in the store while no agent runs.
func (b *bed) meanwhile(id string, change func(*locksteward.Request)) {
	b.t.Helper()
	s, err := store.Open(b.t.Context(), b.dsn)
	if err != nil {
		b.t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the agent opens it next, and would say so
	if _, err := s.UpdateRequest(b.t.Context(), id, func(r *locksteward.Request) ([]locksteward.Entry, error) {
		change(r)
		return []locksteward.Entry{{At: time.Now(), Actor: "test", Action: "test.meanwhile", Subject: id, Outcome: "done"}}, nil
	}); err != nil {
		b.t.Fatal(err)
	}
}

// about are the messages about a request, by type.
func (e *ear) about(id string) (kinds []string) {
	for _, h := range e.got() {
		if h.Release != nil && h.Release.Request != nil && h.Release.Request.ID == id {
			kinds = append(kinds, h.Type)
		}
	}
	return kinds
}

func (e *ear) awaitAbout(id string, want ...string) {
	e.t.Helper()
	testredis.Eventually(e.t, within, func() bool { return len(e.about(id)) >= len(want) }, "messages about "+id+" do not come")
	if got := e.about(id); !slices.Equal(got, want) {
		e.t.Errorf("reported %s: %q, want %q", id, got, want)
	}
}

// TestReminderIsReported: who could decide hears once more before a request ends, once
// whatever becomes of the agent, and then that it ended.
func TestReminderIsReported(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	e := newEar(t)
	b := newBed(t, target(srv.URL())+orders+receivers("ops", e.url))
	set(t, srv.Client(t), "lock:order:1", token, time.Hour)
	r, err := b.ana.CreateRequest(t.Context(), ask("lock:order:1"))
	if err != nil {
		t.Fatal(err)
	}
	e.awaitAbout(r.ID, "release.requested")
	b.stop()
	b.meanwhile(r.ID, func(r *locksteward.Request) { r.ExpiresAt = time.Now().Add(5 * time.Minute) })
	b.start()
	e.awaitAbout(r.ID, "release.requested", "release.reminder")
	h := e.awaitOf("release.reminder")
	if h.Release.Request.State != "pending" || h.Release.Text == "" || h.Loud {
		t.Errorf("reminder: %s", h.body)
	}
	for range 2 { // it does not come again with the agent
		b.stop()
		b.meanwhile(r.ID, func(*locksteward.Request) {})
		b.start()
	}
	b.stop()
	b.meanwhile(r.ID, func(r *locksteward.Request) { r.ExpiresAt = time.Now().Add(-time.Second) })
	b.start()
	e.awaitAbout(r.ID, "release.requested", "release.reminder", "release.final")
	if h := e.awaitOf("release.final"); h.Release.Request.State != "expired" {
		t.Errorf("final: %s", h.body)
	}
	if got, err := b.ana.Request(t.Context(), r.ID); err != nil || got.State != "expired" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestUnknownOutcomeIsReported: the agent died between intent and outcome, and what
// could tell is gone. It is not tried again, and people are notified to look.
func TestUnknownOutcomeIsReported(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	e := newEar(t)
	b := newBed(t, target(srv.URL())+orders+receivers("ops", e.url))
	set(t, rdb, "lock:order:1", token, time.Hour)
	r, err := b.ana.CreateRequest(t.Context(), ask("lock:order:1"))
	if err != nil {
		t.Fatal(err)
	}
	e.awaitAbout(r.ID, "release.requested")
	b.stop()
	b.meanwhile(r.ID, func(r *locksteward.Request) {
		at := time.Now()
		r.State, r.ApprovedUntil = locksteward.RequestExecuting, at.Add(time.Minute)
		r.Decisions = []locksteward.Decision{{By: "bo", Approve: true, Reason: "x", At: at, EvidenceHash: r.EvidenceHash}}
	})
	const next = "7f9c24e8-3b12-4fef-91e0-5c0f8a1b2c3d"
	set(t, rdb, "lock:order:1", next, time.Hour)
	b.start()
	e.awaitAbout(r.ID, "release.requested", "release.unknown")
	if h := e.awaitOf("release.unknown"); h.Release.Request.State != "unknown" || h.Release.Target != "main" || h.Release.Text == "" {
		t.Errorf("unknown: %s", h.body)
	}
	b.awaitMetric(`locksteward_releases_total{class="orders",outcome="unknown",target="main"} 1`)
	if rdb.Get(t.Context(), "lock:order:1").Val() != next {
		t.Error("the next holder's lock was touched")
	}
	_, err = b.bo.Approve(t.Context(), r.ID, api.Decide{Reason: "again", EvidenceHash: r.EvidenceHash})
	refusedWith(t, "approval of what is over", err, locksteward.ErrConflict, "unknown")
}

// TestAutoIsReported: what was released without a person is reported as that, and how it
// ended.
func TestAutoIsReported(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	e := newEar(t)
	b := newBed(t, target(srv.URL())+`
classes:
  - {class: orders, match: ["lock:order:*"], release: auto, dead_when: [holder/dead]}
`+receivers("ops", e.url))
	const key = "lock:order:1"
	set(t, rdb, key, token, time.Hour)
	var dead release.Dead
	testredis.Eventually(t, within, func() bool {
		l, _, err := b.agent.ReadLock(t.Context(), "main", key)
		dead = release.Dead{Lock: l, Firing: []string{"holder/dead"}, Proof: locksteward.Proven}
		return err == nil
	}, "the lock is not seen")
	list, err := b.agent.Swept(t.Context(), "main", []release.Dead{dead})
	if err != nil || len(list) != 1 || list[0].State != locksteward.RequestReleased || rdb.Exists(t.Context(), key).Val() != 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	e.awaitAbout(list[0].ID, "release.requested", "release.auto", "release.final")
	if h := e.awaitOf("release.auto"); h.Release.Actor != release.AgentName {
		t.Errorf("auto: %s", h.body)
	}
}
