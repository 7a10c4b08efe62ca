package agent

import (
	"context"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
)

// alerts is a dispatcher with its goroutine; a reload replaces it whole.
type alerts struct {
	log        *zap.Logger
	dispatcher *alert.Dispatcher
	cancel     context.CancelFunc
	done       chan struct{}
}

func (a *Agent) newAlerts(cfg alert.Config) (*alerts, error) {
	d, err := alert.New(a.log.Named("alert"), cfg, alert.Hooks{Delivered: a.exporter.CountDelivery})
	if err != nil {
		return nil, err
	}
	for _, r := range cfg.Receivers {
		a.exporter.InitDelivery(r.Name, alert.OutcomeDelivered, string(alert.ReasonOK))
	}
	return &alerts{log: a.log, dispatcher: d, done: make(chan struct{})}, nil
}

// start delivers until stop. The end of ctx alone does not stop it: the last
// transitions of the targets come after it.
func (r *alerts) start(ctx context.Context) {
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(r.done)
		if err := r.dispatcher.Run(ctx); err != nil {
			r.log.Error("deliveries were given up", zap.Error(err))
		}
	}()
}

// stop delivers what is queued, within the dispatcher's bound.
func (r *alerts) stop() {
	r.cancel()
	<-r.done
}

// notify hands transitions to the dispatcher.
func (a *Agent) notify(ctx context.Context, transitions []locksteward.Transition) {
	if len(transitions) == 0 {
		return
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	a.alerts.dispatcher.Notify(ctx, transitions)
}
