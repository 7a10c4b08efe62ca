package formats

import (
	_ "embed" // for the script
	"strings"

	"github.com/locksteward/locksteward"
)

// Names of python-redis-lock.
const (
	pythonRedisLockPrefix  = "lock:"
	pythonRedisLockSignals = "lock-signal:"
)

//go:embed family_python_redis_lock.lua
var pythonRedisLockLua string

// familyPythonRedisLock is python-redis-lock: base64 of 18 random bytes per Lock
// object under lock:<name>; waiters sleep in BLPOP lock-signal:<name>.
// Source: ionelmc/python-redis-lock src/redis_lock/__init__.py.
var familyPythonRedisLock = func() *family {
	f := stringFamily("python-redis-lock", prefixed(pythonRedisLockPrefix), stringLock{
		kind: "random base64 of a python-redis-lock object",
		value: func(text string) bool {
			return len(text) == 24 && !strings.ContainsAny(text, "=-_") && isRandomBase64(text)
		},
		origin:     originProcess,
		confidence: locksteward.ConfidenceMedium,
		noStand:    noStandBlocks,
	})
	f.release = func(s Sample, p plan) (Command, error) {
		name := strings.TrimPrefix(s.Key, pythonRedisLockPrefix)
		return p.command(pythonRedisLockLua, nil, s.Value, pythonRedisLockSignals+name), nil
	}
	f.companion = func(key string) (string, bool) {
		name, ok := strings.CutPrefix(key, pythonRedisLockSignals)
		if !ok || name == "" {
			return "", false
		}
		return pythonRedisLockPrefix + name, true
	}
	return f
}()
