package formats

import (
	_ "embed" // for the script
	"strings"

	"github.com/locksteward/locksteward"
)

// Names of redis-semaphore (Ruby). With a namespaced client there is no prefix.
const (
	rubySemaphorePrefix  = "SEMAPHORE:"
	rubySemaphoreGrabbed = ":GRABBED"
)

//go:embed family_ruby_redis_semaphore.lua
var rubyRedisSemaphoreLua string

// familyRubyRedisSemaphore is redis-semaphore (Ruby): a hash of taken permits
// and the time when each was taken; free ones stand in a list that waiters pop.
// Source: dv/redis-semaphore lib/redis/semaphore.rb.
var familyRubyRedisSemaphore = &family{
	name:    "ruby-redis-semaphore",
	noStand: noStandBlocks,
	noUndo:  noUndoPermit,
	key: func(key string) bool {
		return len(key) > len(rubySemaphoreGrabbed) && strings.HasSuffix(key, rubySemaphoreGrabbed)
	},
	recognise: recogniseRubySemaphore,
	release: func(s Sample, p plan) (Command, error) {
		if len(s.Fields) != 1 {
			return Command{}, p.refuseSome(len(s.Fields), "permits")
		}
		name := strings.TrimSuffix(s.Key, rubySemaphoreGrabbed)
		args := []any{name + ":AVAILABLE", name + ":EXISTS"}
		for permit, at := range s.Fields {
			args = append(args, permit, at)
		}
		return p.command(rubyRedisSemaphoreLua, nil, args...), nil
	},
	companion: func(key string) (string, bool) {
		name, ok := strings.CutPrefix(key, rubySemaphorePrefix)
		if !ok {
			return "", false
		}
		for _, part := range []string{":AVAILABLE", ":EXISTS", ":VERSION", ":release_locks"} {
			if strings.HasSuffix(name, part) {
				// A semaphore that nobody has taken has these and no GRABBED.
				return "", true
			}
		}
		return "", false
	},
}

func recogniseRubySemaphore(s Sample) (Decoded, bool) {
	if s.Type != typeHash || s.TooLarge || len(s.Fields) == 0 || int64(len(s.Fields)) != s.Size {
		return Decoded{}, false
	}
	d := Decoded{
		Confidence: locksteward.ConfidenceMedium,
		Identity:   locksteward.IdentityStrong,
		Count:      int64(len(s.Fields)),
		Waiters:    -1, // clients in BLPOP
		TokenKind:  "a numbered permit and the time it was taken",
	}
	if strings.HasPrefix(s.Key, rubySemaphorePrefix) {
		d.Confidence = locksteward.ConfidenceHigh
	}
	for permit, value := range s.Fields {
		at, fine, ok := epochOf(value)
		if !ok || !isRubyPermit(permit) {
			return Decoded{}, false
		}
		if !fine { // the same permit may be taken twice in one second
			d.Identity = lineage(s)
		}
		if d.Acquired.IsZero() || at.Before(d.Acquired) {
			d.Acquired = at // the oldest of them
		}
	}
	return d, true
}

// isRubyPermit knows the permits that the library makes: a number from 0 on, or
// Random.rand.
func isRubyPermit(text string) bool {
	fraction, drawn := strings.CutPrefix(text, "0.")
	return len(text) <= 5 && isDigits(text) || drawn && len(fraction) <= 24 && isDigits(fraction)
}
