package connect

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
)

// RedirectGoRedisLog sends what go-redis would print on stderr (broken
// connections, failovers) to log at debug level; what matters of it reaches the
// callers as errors. go-redis has one logger per process: the program calls
// this once, before the first connection.
func RedirectGoRedisLog(log *zap.Logger) {
	redis.SetLogger(goRedisLog{log: log.Named("redis")})
}

type goRedisLog struct{ log *zap.Logger }

// Printf is go-redis's logging interface.
func (l goRedisLog) Printf(_ context.Context, format string, args ...any) {
	l.log.Debug("redis client message", zap.String("text", fmt.Sprintf(format, args...)))
}
