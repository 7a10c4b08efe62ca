package remote

import (
	"context"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/internal/cluster"
	"github.com/locksteward/locksteward/store"
)

const callWake = "wake"

// Sender is the replica that sends notifications, if it is another one.
type Sender struct {
	log    *zap.Logger
	member *cluster.Member
	due    chan struct{} // of size 1
}

// NewSender returns a Sender. Wake is called when another replica wakes this one. NewSender must be called before
// [cluster.Member.Run].
func NewSender(log *zap.Logger, member *cluster.Member, wake func()) *Sender {
	cluster.Handle(member.Peers(), callWake, func(context.Context, empty) (empty, error) {
		wake()
		return empty{}, nil
	})
	return &Sender{log: log, member: member, due: make(chan struct{}, 1)}
}

// Wake has the sender check the queue of notifications. It never blocks.
func (s *Sender) Wake() {
	select {
	case s.due <- struct{}{}:
	default:
	}
}

// Run makes the calls until ctx ends.
func (s *Sender) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.due:
		}
		to, self, ok := s.member.Owner(store.SingletonDuties)
		if !ok || self {
			continue // the next owner checks the queue when it starts
		}
		bound, cancel := context.WithTimeout(ctx, Timeout)
		_, err := cluster.Call[empty, empty](bound, s.member.Peers(), to, callWake, empty{})
		cancel()
		if err != nil && ctx.Err() == nil {
			s.log.Debug("the sender is not woken; it checks the queue later by itself", zap.Error(err))
		}
	}
}
