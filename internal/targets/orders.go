package targets

import (
	"context"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
)

// restoreOrders takes back in which orders classes were taken before the restart.
func (w *Watched) restoreOrders(ctx context.Context) {
	text, err := w.deps.Store.LoadOrders(ctx, w.target.Name)
	if err == nil {
		err = w.deps.Engine.RestoreOrders(w.target.Name, text)
	}
	if err != nil {
		w.log.Error("the orders of the last run are not known: inversions are found as both orders are seen again", zap.Error(err))
	}
}

// saveOrders keeps them. What fails is kept with a later sweep.
func (w *Watched) saveOrders(ctx context.Context, sweep locksteward.Sweep) {
	text, changed := w.deps.Engine.Orders(w.target.Name, sweep.At)
	if !changed {
		return
	}
	// A shutdown in between must not lose what was seen already.
	if err := w.deps.Store.SaveOrders(context.WithoutCancel(ctx), w.target.Name, text); err != nil {
		w.log.Error("the orders in which classes are taken are not saved", zap.Error(err))
	}
}
