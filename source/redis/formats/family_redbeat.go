package formats

import (
	"strings"
	"time"
)

// redbeatTick is beat's longest sleep (max_interval's default): the lock is
// renewed at least that often.
const redbeatTick = 5 * time.Minute

// familyRedbeat is celery-redbeat's lock of the one running scheduler:
// redis-py's under <prefix>:lock, where the prefix is "redbeat:" by default.
// Source: sibson/redbeat redbeat/schedulers.py.
var familyRedbeat = func() *family {
	f := timeUUIDFamily("redbeat", func(key string) bool {
		return strings.HasSuffix(key, ":lock") && strings.Contains(key, "redbeat")
	}, redbeatTick)
	f.companion = func(key string) (string, bool) {
		return "", key == "redbeat::schedule" || key == "redbeat::statics"
	}
	return f
}()
