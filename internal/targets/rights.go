package targets

import (
	"context"

	"go.uber.org/zap"
)

// checkRights warns, once for each target and its settings, of a user that
// may do more than look: what this agent does not do, a thief of its password
// could. Nobody waits for it, and a server that does not say is left alone.
func (w *Watched) checkRights(ctx context.Context) {
	if w.rightsAsked {
		return
	}
	w.rightsAsked = true
	w.background(func() {
		warning, err := w.conn.ExcessRights(ctx)
		switch {
		case warning != "":
			w.log.Warn("the user of the target has more rights than it needs", zap.String("user", w.cfg.Username), zap.String("hint", warning))
		case err != nil:
			w.log.Debug("the rights of the target's user are not known", zap.Error(err))
		}
	})
}
