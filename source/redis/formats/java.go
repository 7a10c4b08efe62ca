package formats

import (
	_ "embed" // for the script
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

//go:embed spring_integration.lua
var springIntegrationLua string

// javaFormats are the lock libraries of Java and other languages of the JVM.
var javaFormats = slices.Concat(redissonSemaphoreFormats, redissonFormats, redissonRWFormats, []*Format{
	// ShedLock with a Redis provider: the value says when the lock was acquired and by
	// which host. Its key is job-lock:<environment>:<name> by default, and the value
	// alone is particular enough.
	// Source: lukas-krecan/ShedLock InternalRedisLockProvider.java.
	{
		Name: "shedlock",
		Type: typeString,
		decode: stringLock{
			kind:       "time, host and UUID, as ShedLock writes them",
			value:      func(s string) bool { _, _, ok := shedLock(s); return ok },
			origin:     originAcquisition,
			confidence: locksteward.ConfidenceHigh,
			holder:     func(s string) locksteward.Holder { _, host, _ := shedLock(s); return locksteward.Holder{Host: host} },
			acquired:   func(s string) time.Time { at, _, _ := shedLock(s); return at },
		}.decode,
		release: deleteString,
	},
	// Spring Integration's RedisLockRegistry, both kinds: the UUID of the registry
	// under <registry>:<lock>. Registries have names of their own and a UUID may be
	// anything, so only those are claimed that say spring or registry in their name;
	// others are "token".
	// Source: spring-projects/spring-integration RedisLockRegistry.java.
	{
		Name: "spring-integration",
		Type: typeString,
		matches: func(key string) bool {
			registry, lock, ok := strings.Cut(key, ":")
			return ok && lock != "" && (containsFolded(registry, "spring") || containsFolded(registry, "registry"))
		},
		decode: stringLock{
			kind:       "a UUID of a lock registry",
			value:      isUUID,
			origin:     originProcess,
			confidence: locksteward.ConfidenceMedium,
		}.decode,
		// With PUB_SUB_LOCK waiters sleep until they are notified; with SPIN_LOCK nobody
		// subscribes to the channel. The name of the key is the message.
		release: func(s Sample, p plan) (Command, error) {
			registry, _, _ := strings.Cut(s.Key, ":")
			return p.command(springIntegrationLua, nil, s.Value, registry+"-channel:"+s.Key, s.Key), nil
		},
		Grants: func(glob string) (keys, channels []string) {
			registry, _, ok := strings.Cut(glob, ":")
			switch {
			case strings.Contains(registry, "*"): // the star may match the colon
				registry, _, _ = strings.Cut(registry, "*")
				registry += "*"
			case !ok:
				return nil, nil
			}
			return nil, []string{registry + "-channel:" + glob}
		},
	},
	// redlock4j: 20 random bytes in hex, in lower case. Others write 40 hex digits too
	// (a SHA-1): it is named only where the key says redlock4j.
	// Source: tishun/redlock4j org/codarama/redlock4j/{Redlock,FairLock}.java.
	{
		Name:    "redlock4j",
		Type:    typeString,
		matches: named("redlock4j"),
		decode: stringLock{
			kind:       "20 random bytes in hex, as redlock4j writes them",
			value:      func(s string) bool { return len(s) == 40 && isLowerHex(s) && isRandomHex(s) },
			origin:     originAcquisition,
			confidence: locksteward.ConfidenceMedium,
		}.decode,
		release: deleteString,
	},
})

// shedLock splits ADDED:<RFC 3339 with ms>@<host>:<uuid>.
func shedLock(s string) (at time.Time, host string, ok bool) {
	rest, ok := strings.CutPrefix(s, "ADDED:")
	stamp, rest, found := strings.Cut(rest, "@")
	if !ok || !found || len(rest) < uuidLength+2 {
		return time.Time{}, "", false
	}
	at, err := time.Parse(time.RFC3339Nano, stamp)
	i := len(rest) - uuidLength
	if err != nil || rest[i-1] != ':' || !isUUID(rest[i:]) || at.Before(firstTime) || at.After(lastTime) {
		return time.Time{}, "", false
	}
	return at.UTC(), rest[:i-1], true
}
