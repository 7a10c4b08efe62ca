package formats

import (
	_ "embed" // for the script
	"strings"

	"github.com/locksteward/locksteward"
)

//go:embed family_spring_integration.lua
var springIntegrationLua string

// familySpringIntegration is Spring Integration's RedisLockRegistry, both kinds:
// the UUID of the registry under <registry>:<lock>. Registries have names of
// their own and a UUID may be anything, so only those are claimed that say
// spring or registry in their name; others are "token".
// Source: spring-projects/spring-integration RedisLockRegistry.java.
var familySpringIntegration = springIntegration()

func springIntegration() *family {
	f := stringFamily("spring-integration", func(key string) bool {
		registry, lock, ok := strings.Cut(key, ":")
		return ok && lock != "" && (containsFolded(registry, "spring") || containsFolded(registry, "registry"))
	}, stringLock{
		kind: "a UUID of a lock registry", value: isUUID,
		origin: originProcess, confidence: locksteward.ConfidenceMedium,
	})
	// With PUB_SUB_LOCK waiters sleep until they are told; with SPIN_LOCK nobody
	// listens there. The name of the key is the message.
	f.release = func(s Sample, p plan) (Command, error) {
		registry, _, _ := strings.Cut(s.Key, ":")
		return p.command(springIntegrationLua, nil, s.Value, registry+"-channel:"+s.Key, s.Key), nil
	}
	return f
}
