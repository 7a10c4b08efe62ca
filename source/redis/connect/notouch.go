package connect

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// leaveNoTrace switches a new connection to CLIENT NO-TOUCH where the server
// has it (7.2), so that reads leave LRU and LFU data alone. It asks for the
// version first: a blind try would count as an error in the server's statistics
// on each connection. Only an error that broke the connection is returned.
func (c *Conn) leaveNoTrace(ctx context.Context, cn *redis.Conn) error {
	if c.cfg.Writes || c.noTouchRefused.Load() {
		return nil
	}
	text, err := cn.Info(ctx, "server").Result()
	if err == nil && hasNoTouch(text) {
		err = cn.Do(ctx, "client", "no-touch", "on").Err()
	}
	if _, refused := errors.AsType[redis.Error](err); refused {
		// Asking again on each connection would only fill the server's ACL LOG.
		c.noTouchRefused.Store(redis.HasErrorPrefix(err, "NOPERM"))
		return nil
	}
	return err
}

func hasNoTouch(info string) bool {
	if strings.Contains(info, "valkey_version:") {
		return true // Valkey began at 7.2
	}
	_, rest, _ := strings.Cut(info, "redis_version:")
	version, _, _ := strings.Cut(rest, "\r\n")
	parts := strings.SplitN(strings.TrimSpace(version), ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return false
	}
	minor, err := strconv.Atoi(parts[1])
	return err == nil && (major > 7 || major == 7 && minor >= 2)
}
