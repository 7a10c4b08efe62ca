package agent_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testagent"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/users"
)

// A finding fires and ends while its receiver is down, and the agent is started
// anew meanwhile: the receiver is notified once, in order, under the ids that the
// messages had before.
func TestFiresWhileTheReceiverIsDown(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(t *testing.T) string{
		"sqlite":   func(*testing.T) string { return "" },
		"postgres": func(t *testing.T) string { return testpg.Start(t).DSN() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := dsn(t)
			srv := testredis.Start(t)
			rdb := srv.Client(t)
			e := newEar(t)
			e.Down()
			set(t, rdb, "lock:order:1", token, 0)
			b := newBedOn(t, target(srv.URL())+orders+receivers("ops", e.url), on)
			b.awaitMetric(`locksteward_notifications_total{outcome="retried",reason="refused",receiver="ops"}`)
			b.awaitMetric(`locksteward_notifications_queue_length{receiver="ops"} 1`)
			rdb.Del(t.Context(), "lock:order:1")
			b.awaitMetric(`locksteward_notifications_queue_length{receiver="ops"} 2`)
			var before []api.Notification // what waits is counted before it is a message
			testredis.Eventually(t, within, func() bool { before = b.deliveries("ops"); return len(before) == 2 }, "no two messages wait")
			b.stop()
			e.Up()
			b.start()
			got := e.await(2)
			if got[0].finding() != "lock:order:1 firing" || got[1].finding() != "lock:order:1 resolved" ||
				got[0].id != before[0].ID || got[1].id != before[1].ID || got[0].Seq >= got[1].Seq {
				t.Errorf("reported %s (%s), %s (%s); kept were %+v", got[0].finding(), got[0].id, got[1].finding(), got[1].id, before)
			}
			b.awaitMetric(`locksteward_notifications_queue_length{receiver="ops"} 0`)
			// One more thing is reported: what was reported before is not.
			set(t, rdb, "lock:order:2", token, 0)
			if got = e.await(3); len(got) != 3 || got[2].finding() != "lock:order:2 firing" || got[2].Seq <= got[1].Seq {
				t.Errorf("%d messages", len(got))
			}
		})
	}
}

// An agent is killed in the middle of telling: nothing is lost, nothing is reported
// under two ids, and what was under way comes again under its own.
// fault: 77
func TestKillWhileTelling(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	const locks = 24
	for n := range locks {
		set(t, rdb, fmt.Sprint("lock:order:", n), token, 0)
	}
	e := newEar(t)
	stuck := make(chan struct{}, locks)
	e.says(func(n int, _ http.ResponseWriter, r *http.Request) {
		if n > 9 {
			stuck <- struct{}{}
			<-r.Context().Done() // no answer until the agent is gone
		}
	})
	b := layBed(t, target(srv.URL())+orders+receivers("ops", e.url), "")
	one := testagent.New(t, testagent.Options{Name: "first agent", File: b.file})
	one.Begin()
	for range 4 { // as many as are under way at once
		select {
		case <-stuck:
		case <-time.After(within):
			t.Fatal("nothing is reported")
		}
	}
	if !one.Kill() {
		t.Fatal("the agent ended before it was killed")
	}
	cut := len(e.got()) - 9
	e.says(nil)
	b.start()
	ids := func(status string) (byKey map[string]map[string]int) {
		byKey = map[string]map[string]int{}
		for _, h := range e.of("") {
			if h.Status == status {
				if byKey[h.Findings[0].Key.Key] == nil {
					byKey[h.Findings[0].Key.Key] = map[string]int{}
				}
				byKey[h.Findings[0].Key.Key][h.id]++
			}
		}
		return byKey
	}
	testredis.Eventually(t, within, func() bool { return len(ids("firing")) == locks }, "fires are lost")
	b.awaitMetric(`locksteward_notifications_queue_length{receiver="ops"} 0`)
	again := 0
	for key, of := range ids("firing") {
		if len(of) != 1 {
			t.Errorf("%s fired under ids %v", key, of)
		}
		for _, n := range of {
			again += n - 1
		}
	}
	t.Logf("killed with %d messages under way; %d of %d came again", cut, again, locks)
	if again < 1 || again > cut+4 {
		t.Errorf("%d messages came again, %d were under way", again, cut)
	}
	for n := range locks {
		rdb.Del(t.Context(), fmt.Sprint("lock:order:", n))
	}
	testredis.Eventually(t, within, func() bool { return len(ids("resolved")) == locks }, "resolves are lost")
	fired := map[string]bool{}
	for _, h := range e.of("") {
		key := h.Findings[0].Key.Key
		if h.Status == "resolved" && !fired[key] {
			t.Errorf("%s: its resolve before its fire", key)
		}
		fired[key] = true
	}
}

// Two receivers, one of which takes nothing: the other is reported at once. What was
// given up is listed, with the reason, and comes in its order after a replay.
func TestDeadReceiverAndReplay(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	dead, well := newEar(t), newEar(t)
	dead.says(status(http.StatusGone))
	b := newBed(t, target(srv.URL())+orders+receivers("ops", dead.url, "chat", well.url))
	admin := b.person("root", users.RoleAdmin)
	set(t, rdb, "lock:order:1", token, 0)
	well.await(1)
	rdb.Del(t.Context(), "lock:order:1")
	if got := well.await(2); got[0].finding() != "lock:order:1 firing" || got[1].finding() != "lock:order:1 resolved" {
		t.Errorf("reported %v", got)
	}
	b.awaitMetric(`locksteward_notifications_dead{receiver="ops"} 2`)
	list := b.deliveries("ops")
	if len(list) != 2 || list[0].State != "dead" || !strings.Contains(list[0].LastError, "410") || !strings.Contains(list[1].LastError, "fire") ||
		list[0].Type != "findings.firing" || list[0].About == "" || list[0].Bytes == 0 || strings.Contains(list[0].LastError, "/hook") {
		t.Errorf("kept %+v", list)
	}
	if n := len(dead.got()); n != 1 {
		t.Errorf("%d attempts at one that says 410", n)
	}
	if _, err := b.ana.RetryNotification(t.Context(), list[0].ID); !errors.Is(err, locksteward.ErrRefused) {
		t.Errorf("replay by a requester: %v", err)
	}
	if _, err := admin.RetryNotification(t.Context(), "msg_none"); !errors.Is(err, locksteward.ErrNotFound) {
		t.Errorf("replay of nothing: %v", err)
	}
	dead.says(nil)
	// The resolve comes with its fire, whichever of the two was named.
	out, err := admin.RetryNotification(t.Context(), list[1].ID)
	if err != nil || out.Retried != 2 {
		t.Fatalf("replayed %+v, %v", out, err)
	}
	if got := dead.await(3); got[1].finding() != "lock:order:1 firing" || got[2].finding() != "lock:order:1 resolved" || got[1].id != got[0].id {
		t.Errorf("reported after the replay: %s, %s", got[1].finding(), got[2].finding())
	}
	b.awaitMetric(`locksteward_notifications_dead{receiver="ops"} 0`)
	if _, err := admin.RetryNotification(t.Context(), list[0].ID); !errors.Is(err, locksteward.ErrConflict) {
		t.Errorf("replay of what was delivered: %v", err)
	}
	if out, err := admin.RetryReceiver(t.Context(), "ops"); err != nil || out.Retried != 0 {
		t.Errorf("replay of nothing: %+v, %v", out, err)
	}
	tested, err := admin.TestReceiver(t.Context(), "chat")
	if err != nil || !tested.Delivered || tested.Reason != "ok" || well.awaitOf("test").Text == "" {
		t.Errorf("test: %+v, %v", tested, err)
	}
	dead.says(status(http.StatusUnauthorized))
	if tested, err = admin.TestReceiver(t.Context(), "ops"); err != nil || tested.Delivered || tested.Status != 401 || strings.Contains(tested.Error, "/hook") {
		t.Errorf("test: %+v, %v", tested, err)
	}
	var trail []string
	entries, err := b.ana.Audit(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries.Entries {
		if strings.HasPrefix(entry.Action, "notification.") {
			trail = append(trail, entry.Actor+" "+entry.Action+" "+entry.Subject+" "+entry.Outcome)
		}
	}
	want := "root notification.test ops failed, root notification.test chat delivered, root notification.retry " + list[1].ID + " "
	if got := strings.Join(trail, ", "); got != want {
		t.Errorf("trail: %s\nwant %s", got, want)
	}
}

// All that people must hear of releases comes, for each request in its order, and
// what is loud is marked.
func TestBreakGlassIsReported(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	e := newEar(t)
	b := newBed(t, target(srv.URL())+`
classes:
  - {class: orders, match: ["lock:order:*"], release: approve, self_approval: alert}
  - {class: jobs, match: ["lock:job:*"], release: approve, dead_when: [ttl/none]}
release: {breaker_locks: 3}
`+receivers("ops", e.url))
	eve := b.person("eve", users.RoleRequester, users.RoleApprover)
	glass := b.person("gus", users.RoleBreakGlass)
	admin := b.person("root", users.RoleAdmin)
	set(t, rdb, "lock:order:1", token, time.Hour)
	set(t, rdb, "lock:order:2", token+"2", time.Hour)

	r, err := eve.CreateRequest(t.Context(), ask("lock:order:1"))
	if err != nil {
		t.Fatal(err)
	}
	if r, err = eve.Approve(t.Context(), r.ID, api.Decide{Reason: "nobody else is here", EvidenceHash: r.EvidenceHash}); err != nil || r.State != "released" {
		t.Fatalf("%+v, %v", r, err)
	}
	set(t, rdb, "lock:order:1", token, time.Hour) // the old holder writes it again
	if h := e.awaitOf("release.resurrected"); h.Release.Request == nil || h.Release.Request.ID != r.ID || h.Loud {
		t.Errorf("resurrected: %s", h.body)
	}
	for i, kind := range []string{"release.requested", "release.self_approved", "release.final", "release.resurrected"} {
		var mine []received
		for _, h := range e.got() {
			if h.Release != nil && h.Release.Request != nil && h.Release.Request.ID == r.ID {
				mine = append(mine, h)
			}
		}
		if len(mine) != 4 || mine[i].Type != kind {
			t.Fatalf("%d events of request %s, the one at %d is not %s", len(mine), r.ID, i, kind)
		}
	}

	broken, err := glass.BreakGlass(t.Context(), api.BreakGlass{CreateRequest: ask("lock:order:2")})
	if err != nil || broken.State != "released" {
		t.Fatalf("%+v, %v", broken, err)
	}
	h := e.awaitOf("release.break_glass")
	if !h.Loud || h.Release.Actor != "gus" || h.Release.Request.ID != broken.ID || !h.Release.Request.BreakGlass || h.Release.Request.Reason != "INC-7" {
		t.Errorf("break-glass: %s", h.body)
	}

	for n := range 3 {
		set(t, rdb, fmt.Sprint("lock:job:", n), token, 0)
	}
	if h := e.awaitOf("release.breaker"); h.Release.Target != "main" || !strings.Contains(h.Release.Text, "3 locks") {
		t.Errorf("breaker: %s", h.body)
	}
	if _, err := admin.PauseReleases(t.Context(), api.PauseReleases{Scope: api.PauseAll, Reason: "INC-8"}); err != nil {
		t.Fatal(err)
	}
	if h := e.awaitOf("release.paused"); h.Release.Actor != "root" || h.Release.Request != nil {
		t.Errorf("stopped: %s", h.body)
	}
	for _, h := range e.got() {
		if strings.Contains(h.body, token) {
			t.Errorf("the token is in a message: %s", h.body)
		}
		if h.Loud != (h.Type == "release.break_glass") {
			t.Errorf("%s: loud is %t", h.Type, h.Loud)
		}
	}
}

// The pause that a receiver asks for is kept, also over a restart of the agent.
func TestRetryAfterOfAReceiver(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	e := newEar(t)
	e.says(func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	set(t, srv.Client(t), "lock:order:1", token, 0)
	b := newBed(t, target(srv.URL())+orders+receivers("ops", e.url))
	e.await(1)
	b.awaitMetric(`locksteward_notifications_total{outcome="retried",reason="http_429",receiver="ops"} 1`)
	b.stop()
	b.start()
	if got := e.await(2); got[1].id != got[0].id || got[1].at.Sub(got[0].at) < 3*time.Second {
		t.Errorf("again after %s", got[1].at.Sub(got[0].at))
	}
}

// A message of more than 64 KiB comes whole.
func TestLargeMessage(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	e := newEar(t)
	key := "lock:order:" + strings.Repeat("ü", 32<<10) + "\xff"
	set(t, srv.Client(t), key, token, 0)
	newBed(t, target(srv.URL())+orders+receivers("ops", e.url))
	h := e.await(1)[0]
	if got, err := h.Findings[0].Bytes(); err != nil || got != key || len(h.body) < 64<<10 {
		t.Errorf("got %d bytes, the key of %d bytes, %v", len(h.body), len(got), err)
	}
	t.Logf("a body of %d bytes", len(h.body))
}

// Receivers come, go and move with a reload while messages wait.
func TestReceiversChangeWithAReload(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	wrong, right, other := newEar(t), newEar(t), newEar(t)
	wrong.says(status(http.StatusNotFound))
	set(t, rdb, "lock:order:1", token, 0)
	base := target(srv.URL()) + orders
	b := newBed(t, base+receivers("ops", wrong.url, "old", wrong.url))
	wrong.await(2)
	b.write(base + receivers("new", other.url, "ops", right.url))
	if err := b.agent.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := right.await(1); got[0].finding() != "lock:order:1 firing" {
		t.Errorf("after the move: %v", got[0].finding())
	}
	testredis.Eventually(t, within, func() bool {
		list := b.deliveries("old")
		return len(list) == 1 && list[0].State == "dead" && strings.Contains(list[0].LastError, "the receiver was removed")
	}, "what waits for a receiver that is gone is not given up")
	if list := b.deliveries("new"); len(list) != 0 {
		t.Errorf("a new receiver is notified of the past: %+v", list)
	}
	rdb.Del(t.Context(), "lock:order:1")
	right.await(2)
	// It is notified of what begins, and not of the end of what it was not notified of.
	set(t, rdb, "lock:order:2", token, 0)
	if got := other.await(1)[0].finding(); got != "lock:order:2 firing" {
		t.Errorf("the new receiver was notified %v", got)
	}
	// The receiver answers before the store has it that the message was delivered.
	testredis.Eventually(t, within, func() bool {
		text := b.metrics()
		return !strings.Contains(text, `notifications_queue_length{receiver="old"}`) && strings.Contains(text, `notifications_queue_length{receiver="new"} 0`)
	}, "the metrics do not follow the reload")
	list, err := b.ana.Notifications(t.Context(), apiclient.NotificationQuery{})
	if err != nil || len(list.Receivers) != 3 || list.Receivers[0].Name != "new" || list.Receivers[2].Configured {
		t.Errorf("receivers %+v, %v", list.Receivers, err)
	}
	admin := b.person("root", users.RoleAdmin)
	if _, err := admin.RetryReceiver(t.Context(), "old"); !errors.Is(err, locksteward.ErrNotFound) {
		t.Errorf("replay for one that is gone: %v", err)
	}
}

// The findings of a target that was taken out of the configuration while no agent
// ran end, and people hear of it.
func TestTargetThatIsGoneAtTheStart(t *testing.T) {
	t.Parallel()
	srv, other := testredis.Start(t), testredis.Start(t)
	e := newEar(t)
	set(t, srv.Client(t), "lock:order:1", token, 0)
	b := newBed(t, target(srv.URL())+orders+receivers("ops", e.url))
	e.await(1)
	b.stop()
	b.write(strings.Replace(target(other.URL()), "main", "second", 1) + orders + receivers("ops", e.url))
	b.start()
	if got := e.await(2); got[1].finding() != "lock:order:1 resolved" || got[1].Findings[0].Fingerprint != got[0].Findings[0].Fingerprint {
		t.Errorf("reported %s", got[1].finding())
	}
}
