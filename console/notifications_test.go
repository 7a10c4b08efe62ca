package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// The fake's messages: one waits, one was given up, one arrived.
func (w *world) Notifications(_ context.Context, q NotificationQuery) ([]api.Notification, error) {
	all := []api.Notification{
		{
			ID: "msg_3", Seq: 3, Receiver: "ops", Type: "findings.resolved", EventID: "e3", About: "f1", Target: "orders", State: "waiting",
			Attempts: 2, Bytes: 900, CreatedAt: at, NextAt: at.Add(time.Minute), LastError: "post to https://hooks.example.org: status 503",
		},
		{
			ID: "msg_2", Seq: 2, Receiver: "ops", Type: "release.break_glass", EventID: "r1/release.break_glass", About: "r1", Target: "orders",
			State: "dead", Attempts: 1, Bytes: 1200, CreatedAt: at, DoneAt: at, LastError: "post to https://hooks.example.org: status 410",
		},
		{ID: "msg_1", Seq: 1, Receiver: "chat", Type: "findings.firing", EventID: "e1", About: "f1", Target: "orders", State: "delivered", Attempts: 1, Bytes: 900, CreatedAt: at, DoneAt: at},
	}
	out := []api.Notification{}
	for _, d := range all {
		if (q.State == "" || q.State == d.State) && (q.Receiver == "" || q.Receiver == d.Receiver) && (q.Before == 0 || d.Seq < q.Before) && len(out) < q.Limit {
			out = append(out, d)
		}
	}
	return out, w.fail
}

func (w *world) Receivers(context.Context) ([]api.Receiver, error) {
	return []api.Receiver{
		{Name: "ops", Configured: true, CircuitOpen: true, PausedUntil: at.Add(time.Minute), Waiting: 1, Dead: 1, OldestMs: 90_000},
		{Name: "chat", Configured: true},
	}, w.fail
}

func (w *world) Retry(_ context.Context, by, id string) (int64, error) {
	switch id {
	case "msg_2":
		w.mu.Lock()
		defer w.mu.Unlock()
		w.resumes = append(w.resumes, by+" replays "+id)
		return 1, w.fail
	case "msg_1":
		return 0, fmt.Errorf("message %s is delivered: %w", id, locksteward.ErrConflict)
	}
	return 0, fmt.Errorf("message %q: %w", id, locksteward.ErrNotFound)
}

func (w *world) RetryAll(_ context.Context, _, receiver string) (int64, error) {
	if receiver != "ops" {
		return 0, fmt.Errorf("receiver %q: %w", receiver, locksteward.ErrNotFound)
	}
	return 12, w.fail
}

func (w *world) TestReceiver(_ context.Context, _, receiver string) (api.ReceiverTest, error) {
	if receiver != "ops" {
		return api.ReceiverTest{}, fmt.Errorf("receiver %q: %w", receiver, locksteward.ErrNotFound)
	}
	return api.ReceiverTest{Receiver: receiver, Status: 401, Reason: "http_4xx", Error: "post to https://hooks.example.org: status 401", DurationMs: 12}, w.fail
}

func TestNotificationsArePaged(t *testing.T) {
	t.Parallel()
	b := setup(t, "viewer")
	first := get[api.NotificationList](b, "viewer", "/api/v1/notifications?limit=2")
	if len(first.Notifications) != 2 || first.Next != 2 || len(first.Receivers) != 2 {
		t.Errorf("first page %+v", first)
	}
	second := get[api.NotificationList](b, "viewer", "/api/v1/notifications?limit=2&before=2")
	if len(second.Notifications) != 1 || second.Notifications[0].ID != "msg_1" || second.Next != 0 {
		t.Errorf("second page %+v", second)
	}
	if got := get[api.NotificationList](b, "viewer", "/api/v1/notifications?state=dead&receiver=ops"); len(got.Notifications) != 1 || got.Notifications[0].ID != "msg_2" {
		t.Errorf("dead %+v", got)
	}
	for _, query := range []string{"state=gone", "limit=0", "before=x", "colour=red"} {
		if a := b.do("viewer", http.MethodGet, "/api/v1/notifications?"+query, ""); a.status != http.StatusBadRequest {
			t.Errorf("%s: status %d", query, a.status)
		}
	}
}

func TestRetryAndTestAreForAdmins(t *testing.T) {
	t.Parallel()
	b := setup(t, "viewer", "approver", "admin")
	for _, path := range []string{"/api/v1/notifications/msg_2/retry", "/api/v1/receivers/ops/retry", "/api/v1/receivers/ops/test"} {
		for user, want := range map[string]int{"": 401, "viewer": 403, "approver": 403, "admin": 200} {
			if a := b.do(user, http.MethodPost, path, "{}"); a.status != want {
				t.Errorf("%s by %q: status %d, want %d: %s", path, user, a.status, want, a.body)
			}
		}
	}
	for path, want := range map[string]int{
		"/api/v1/notifications/msg_1/retry":     409,
		"/api/v1/notifications/none/retry":      404,
		"/api/v1/receivers/nobody/retry":        404,
		"/api/v1/receivers/nobody/test":         404,
		"/api/v1/receivers/ops/test?x=1":        400,
		"/api/v1/notifications/msg_2/retry?x=1": 400,
	} {
		if a := b.do("admin", http.MethodPost, path, "{}"); a.status != want {
			t.Errorf("%s: status %d, want %d: %s", path, a.status, want, a.body)
		}
	}
	if a := b.do("admin", http.MethodPost, "/api/v1/notifications/msg_2/retry", "{}", header("Origin", "https://evil.example")); a.status != http.StatusForbidden {
		t.Errorf("from another site: status %d", a.status)
	}
	if n := strings.Join(b.world.resumes, ", "); n != "admin replays msg_2" {
		t.Errorf("replayed: %s", n)
	}
}
