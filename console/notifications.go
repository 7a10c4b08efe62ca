package console

import (
	"context"
	"fmt"
	"net/http"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// Notifications is the outbox of the agent, with its receivers.
type Notifications interface {
	// Notifications returns notifications, newest first.
	Notifications(ctx context.Context, q NotificationQuery) ([]api.Notification, error)
	// Receivers returns the receivers in the order of the configuration, then removed ones
	// with a backlog.
	Receivers(ctx context.Context) ([]api.Receiver, error)
	// Retry makes a dead letter due again, with those about the same group or request, and
	// returns their number. An unknown id is locksteward.ErrNotFound, one that was not given
	// up locksteward.ErrConflict.
	Retry(ctx context.Context, by, id string) (int64, error)
	// RetryAll makes all dead letters of a receiver due again. One that is not configured is
	// locksteward.ErrNotFound.
	RetryAll(ctx context.Context, by, receiver string) (int64, error)
	// TestReceiver makes one attempt to send a test to a receiver. An attempt that fails is
	// no error.
	TestReceiver(ctx context.Context, by, receiver string) (api.ReceiverTest, error)
}

// NotificationQuery selects notifications; zero fields select all.
type NotificationQuery struct {
	State, Receiver string
	Before          int64
	Limit           int // always positive
}

// listNotifications answers GET /api/v1/notifications.
func (s *Server) listNotifications(w http.ResponseWriter, r *http.Request, _ users.User) error {
	q := parseQuery(r, "state", "receiver", "before", "limit")
	wanted := NotificationQuery{
		State: q.oneOf("state", "waiting", "delivered", "dead"), Receiver: q.text("receiver"),
		Before: q.place("before"), Limit: q.number("limit", 100, 1, 1000),
	}
	if err := q.err(); err != nil {
		return err
	}
	limit := wanted.Limit
	wanted.Limit++ // one more shows whether there is another page
	list, err := s.deps.Notifications.Notifications(r.Context(), wanted)
	if err != nil {
		return fmt.Errorf("list notifications: %w", err)
	}
	receivers, err := s.deps.Notifications.Receivers(r.Context())
	if err != nil {
		return fmt.Errorf("list receivers: %w", err)
	}
	out := api.NotificationList{Receivers: receivers, Notifications: list}
	if len(list) > limit {
		out.Notifications = list[:limit]
		out.Next = list[limit-1].Seq
	}
	return writeJSON(w, http.StatusOK, out)
}

// retryNotification answers POST /api/v1/notifications/{id}/retry. It takes no body.
func (s *Server) retryNotification(w http.ResponseWriter, r *http.Request, who users.User) error {
	return s.retry(w, r, who, s.deps.Notifications.Retry, r.PathValue("id"))
}

// retryReceiver answers POST /api/v1/receivers/{name}/retry. It takes no body.
func (s *Server) retryReceiver(w http.ResponseWriter, r *http.Request, who users.User) error {
	return s.retry(w, r, who, s.deps.Notifications.RetryAll, r.PathValue("name"))
}

func (s *Server) retry(w http.ResponseWriter, r *http.Request, who users.User,
	act func(ctx context.Context, by, what string) (int64, error), what string,
) error {
	if err := parseQuery(r).err(); err != nil {
		return err
	}
	ctx, cancel := changing(r)
	defer cancel()
	n, err := act(ctx, who.Name, what)
	if err != nil {
		return fmt.Errorf("retry: %w", err)
	}
	s.log.Info("console change", zap.String("action", "retried"), zap.String("what", what), zap.Int64("notifications", n), zap.String("user", who.Name))
	return writeJSON(w, http.StatusOK, api.Retried{Retried: n})
}

// testReceiver answers POST /api/v1/receivers/{name}/test. It takes no body.
func (s *Server) testReceiver(w http.ResponseWriter, r *http.Request, who users.User) error {
	if err := parseQuery(r).err(); err != nil {
		return err
	}
	ctx, cancel := changing(r)
	defer cancel()
	out, err := s.deps.Notifications.TestReceiver(ctx, who.Name, r.PathValue("name"))
	if err != nil {
		return fmt.Errorf("test: %w", err)
	}
	s.log.Info("console change", zap.String("action", "tested"), zap.String("receiver", out.Receiver), zap.Bool("delivered", out.Delivered), zap.String("user", who.Name))
	return writeJSON(w, http.StatusOK, out)
}
