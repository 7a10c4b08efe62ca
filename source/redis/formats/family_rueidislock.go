package formats

import (
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// trackedRenewEvery is half of KeyValidity's default.
const trackedRenewEvery = 2500 * time.Millisecond

// familyRueidislock is rueidislock of redis/rueidis: 24 random bytes, the same
// on the keys rueidislock:0:<name> to rueidislock:2:<name>, of which a majority
// is the lock. Holder and waiters hear of a key that goes through client
// tracking, so nobody need be told.
// Source: redis/rueidis rueidislock/lock.go (keyname, try, onInvalidations).
var familyRueidislock = trackedLock("rueidislock")

// trackedLock is rueidislock's layout under prefix, which is its name too.
func trackedLock(prefix string) *family {
	return &family{
		name: prefix,
		typ:  typeString,
		key: func(key string) bool {
			rest, ok := strings.CutPrefix(key, prefix+":")
			i, lock, cut := strings.Cut(rest, ":")
			return ok && cut && isDigits(i) && lock != ""
		},
		recognise: func(s Sample) (Decoded, bool) {
			if !whole(s) || len(s.Value) != 24 || isPrintableText(string(s.Value)) {
				return Decoded{}, false
			}
			return Decoded{
				Confidence: locksteward.ConfidenceHigh,
				Identity:   locksteward.IdentityStrong,
				Count:      1,
				Waiters:    -1, // clients that track the key
				TokenKind:  "24 random bytes, as rueidislock and valkeylock write them",
				RenewEvery: trackedRenewEvery,
			}, true
		},
		release: func(s Sample, p plan) (Command, error) { return p.command(tokenLua, nil, s.Value), nil },
	}
}
