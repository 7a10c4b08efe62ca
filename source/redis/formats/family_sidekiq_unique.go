package formats

import (
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// sidekiqPrefix and sidekiqLocked frame a digest: uniquejobs:<digest>[:RUN]:LOCKED.
const (
	sidekiqPrefix = "uniquejobs:"
	sidekiqLocked = ":LOCKED"
)

// isSidekiqLock knows the hash that says which jobs hold a digest.
func isSidekiqLock(key string) bool {
	digest, ok := strings.CutSuffix(key, sidekiqLocked)
	return ok && isSidekiqDigest(digest)
}

// isSidekiqDigest knows uniquejobs:<md5 or sha3-256>[:RUN].
func isSidekiqDigest(key string) bool {
	digest, ok := strings.CutPrefix(key, sidekiqPrefix)
	digest = strings.TrimSuffix(digest, ":RUN")
	return ok && (len(digest) == 32 || len(digest) == 64) && isLowerHex(digest)
}

// isJobID knows Sidekiq's job id, 12 random bytes in hex.
func isJobID(text string) bool { return len(text) == 24 && isLowerHex(text) }

// sidekiqLock decodes a :LOCKED hash whose fields are job ids and whose values
// tell the time of the lock, each version in its own form. A digest that allows
// several jobs at a time has several.
func sidekiqLock(s Sample, acquired func(value string) (time.Time, bool)) (Decoded, bool) {
	if s.Type != typeHash || s.TooLarge || len(s.Fields) == 0 || int64(len(s.Fields)) != s.Size {
		return Decoded{}, false
	}
	d := Decoded{
		Confidence: locksteward.ConfidenceHigh,
		Identity:   locksteward.IdentityStrong, // a job id is drawn once and locks once
		Count:      int64(len(s.Fields)),
		Waiters:    -1, // in lists of their own
		TokenKind:  "a Sidekiq job id",
	}
	for job, value := range s.Fields {
		at, ok := acquired(value)
		if !isJobID(job) || !ok {
			return Decoded{}, false
		}
		if d.Acquired.IsZero() || at.Before(d.Acquired) {
			d.Acquired, d.Holder = at, locksteward.Holder{Session: job} // the oldest of them
		}
	}
	return d, true
}

// releaseSidekiq makes the release of a digest that one job holds.
func releaseSidekiq(script string) func(s Sample, p plan) (Command, error) {
	return func(s Sample, p plan) (Command, error) {
		if len(s.Fields) != 1 {
			return Command{}, p.refuseSome(len(s.Fields), "job locks")
		}
		args := []any{strings.TrimSuffix(s.Key, sidekiqLocked)}
		for job, value := range s.Fields {
			args = append(args, job, value)
		}
		return p.command(script, nil, args...), nil
	}
}

// sidekiqCompanion knows what stands beside a :LOCKED hash: of one digest, and
// the indexes of all.
func sidekiqCompanion(key string) (string, bool) {
	for _, part := range []string{":QUEUED", ":PRIMED", ":INFO", ""} {
		if digest, ok := strings.CutSuffix(key, part); ok && isSidekiqDigest(digest) {
			return digest + sidekiqLocked, true
		}
	}
	rest, ok := strings.CutPrefix(key, sidekiqPrefix)
	first, _, _ := strings.Cut(rest, ":")
	switch first {
	case "digests", "expiring_digests", "orphaned_digests", "changelog", "reaper", "live", "dead", "heartbeat", "working":
		return "", ok
	}
	return "", false
}
