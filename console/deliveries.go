package console

import (
	"context"
	"fmt"
	"net/http"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/users"
)

// Deliveries are the notifications to receivers.
type Deliveries interface {
	// Deliveries returns messages, newest first.
	Deliveries(ctx context.Context, q DeliveryQuery) ([]api.Delivery, error)
	// Receivers returns the receivers in the order of the configuration, then those
	// that are gone and for which something is kept.
	Receivers(ctx context.Context) ([]api.Receiver, error)
	// Replay sends a message again that was given up, with what was given up about the
	// same finding or request, and says how many these are. An unknown id is
	// locksteward.ErrNotFound, one that was not given up locksteward.ErrConflict.
	Replay(ctx context.Context, by, id string) (int64, error)
	// ReplayAll sends all again that was given up for a receiver. One that is not
	// configured is locksteward.ErrNotFound.
	ReplayAll(ctx context.Context, by, receiver string) (int64, error)
	// TestReceiver makes one attempt to tell a receiver that this is a test. An
	// attempt that fails is no error.
	TestReceiver(ctx context.Context, by, receiver string) (api.ReceiverTest, error)
}

// DeliveryQuery selects messages; zero fields select all.
type DeliveryQuery struct {
	State, Receiver string
	Before          int64
	Limit           int // always positive
}

// listDeliveries answers GET /api/v1/deliveries.
func (s *Server) listDeliveries(w http.ResponseWriter, r *http.Request, _ users.User) error {
	q := parseQuery(r, "state", "receiver", "before", "limit")
	wanted := DeliveryQuery{
		State: q.oneOf("state", "waiting", "delivered", "dead"), Receiver: q.text("receiver"),
		Before: q.place("before"), Limit: q.number("limit", 100, 1, 1000),
	}
	if err := q.err(); err != nil {
		return err
	}
	limit := wanted.Limit
	wanted.Limit++ // one more tells whether there is another page
	list, err := s.deps.Deliveries.Deliveries(r.Context(), wanted)
	if err != nil {
		return fmt.Errorf("list deliveries: %w", err)
	}
	receivers, err := s.deps.Deliveries.Receivers(r.Context())
	if err != nil {
		return fmt.Errorf("list receivers: %w", err)
	}
	out := api.DeliveryList{Receivers: receivers, Deliveries: list}
	if len(list) > limit {
		out.Deliveries = list[:limit]
		out.Next = list[limit-1].Seq
	}
	return writeJSON(w, http.StatusOK, out)
}

// replayDelivery answers POST /api/v1/deliveries/{id}/replay. It takes no body.
func (s *Server) replayDelivery(w http.ResponseWriter, r *http.Request, who users.User) error {
	return s.replay(w, r, who, s.deps.Deliveries.Replay, r.PathValue("id"))
}

// replayReceiver answers POST /api/v1/receivers/{name}/replay. It takes no body.
func (s *Server) replayReceiver(w http.ResponseWriter, r *http.Request, who users.User) error {
	return s.replay(w, r, who, s.deps.Deliveries.ReplayAll, r.PathValue("name"))
}

func (s *Server) replay(w http.ResponseWriter, r *http.Request, who users.User,
	act func(ctx context.Context, by, what string) (int64, error), what string,
) error {
	if err := parseQuery(r).err(); err != nil {
		return err
	}
	ctx, cancel := changing(r)
	defer cancel()
	n, err := act(ctx, who.Name, what)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	s.log.Info("console change", zap.String("action", "replayed"), zap.String("what", what), zap.Int64("messages", n), zap.String("user", who.Name))
	return writeJSON(w, http.StatusOK, api.Replayed{Replayed: n})
}

// testReceiver answers POST /api/v1/receivers/{name}/test. It takes no body.
func (s *Server) testReceiver(w http.ResponseWriter, r *http.Request, who users.User) error {
	if err := parseQuery(r).err(); err != nil {
		return err
	}
	ctx, cancel := changing(r)
	defer cancel()
	out, err := s.deps.Deliveries.TestReceiver(ctx, who.Name, r.PathValue("name"))
	if err != nil {
		return fmt.Errorf("test: %w", err)
	}
	s.log.Info("console change", zap.String("action", "tested"), zap.String("receiver", out.Receiver), zap.Bool("delivered", out.Delivered), zap.String("user", who.Name))
	return writeJSON(w, http.StatusOK, out)
}
