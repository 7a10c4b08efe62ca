package targets

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/source/redis/acl"
)

// checkRights warns, once for each target and its settings, of a Redis user that
// may do more than look: what this agent does not do, a thief of its password
// could. Nobody waits for it, and a server that does not say is left alone.
func (w *Watched) checkRights(ctx context.Context) {
	if w.rightsAsked {
		return
	}
	w.rightsAsked = true
	w.background(func() {
		masters, err := w.conn.Masters(ctx)
		for _, m := range masters {
			user := w.conn.Username()
			rights, askErr := acl.Excess(ctx, m.Client, user)
			if err = errors.Join(err, askErr); rights.Warning(user) != "" {
				// One node speaks for all: users are made alike.
				w.log.Warn("the Redis user has more rights than it needs", zap.String("user", user),
					zap.Strings("excess", rights.Excess), zap.String("hint", rights.Warning(user)))
				return
			}
		}
		if err != nil {
			w.log.Debug("rights of the Redis user are not known", zap.Error(err))
		}
	})
}
