package formats

import (
	"strings"
	"time"
)

// What the keys of Bull and BullMQ have in common (OptimalBits/bull lib/queue.js,
// taskforcesh/bullmq src/classes/queue-keys.ts): <prefix>:<queue>:<rest>. The
// prefix is "bull" unless configured, in braces for a Cluster.

// bullRenewEvery is half of lockDuration's default; BullMQ may renew sooner.
const bullRenewEvery = 15 * time.Second

// bullLock knows <prefix>:<queue>:<job>:lock. own says that the prefix is one of
// the libraries' own, so that the name tells whose the key is.
func bullLock(key string) (own, ok bool) {
	rest, ok := strings.CutSuffix(key, ":lock")
	if !ok || strings.Count(rest, ":") < 2 || rest[0] == ':' || rest[len(rest)-1] == ':' {
		return false, false
	}
	prefix, _, _ := strings.Cut(rest, ":")
	return isBullPrefix(prefix), true
}

func isBullPrefix(prefix string) bool {
	switch prefix {
	case "bull", "{bull}", "bullmq", "{bullmq}":
		return true
	}
	return false
}

// bullQueue splits <prefix>:<queue>:<rest> with a prefix of the libraries' own.
func bullQueue(key string) (queue, rest string, ok bool) {
	prefix, rest, ok := strings.Cut(key, ":")
	if !ok || !isBullPrefix(prefix) {
		return "", "", false
	}
	name, rest, ok := strings.Cut(rest, ":")
	return prefix + ":" + name + ":", rest, ok && name != ""
}

// bullCompanion knows what stands beside the jobs of a queue, and the jobs with
// an id that the library gave.
func bullCompanion(key string) (string, bool) {
	_, rest, ok := bullQueue(key)
	if !ok {
		return "", false
	}
	switch rest {
	case "active", "wait", "waiting-children", "paused", "id", "delayed", "prioritized", "priority", "completed", "failed",
		"stalled", "stalled-check", "repeat", "limiter", "meta", "meta-paused", "events", "pc", "marker":
		return "", true
	}
	return "", isDigits(rest)
}

// isWorkerToken knows <worker's uuid>:<number>.
func isWorkerToken(s string) bool {
	return len(s) > uuidLength+1 && isLowerUUID(s[:uuidLength]) && s[uuidLength] == ':' && isDigits(s[uuidLength+1:])
}
