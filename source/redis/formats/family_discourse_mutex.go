package formats

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// familyDiscourseMutex is Discourse's DistributedMutex: the second when it ends
// under <site>:<key>, with a TTL of one second more. Only the keys of the site
// "default" are claimed, the one of every installation that has a single site.
// Source: discourse/discourse lib/distributed_mutex.rb.
var familyDiscourseMutex = func() *family {
	f := stringFamily("discourse-mutex", prefixed("default:"), stringLock{
		kind: "the time when the lock ends, which names no holder",
		value: func(text string) bool {
			_, _, ok := epochOf(text)
			return ok && !strings.Contains(text, ".")
		},
		origin: originTime, confidence: locksteward.ConfidenceMedium,
	})
	decode := f.recognise
	f.recognise = func(s Sample) (Decoded, bool) {
		if s.TTL == locksteward.NoExpiry {
			return Decoded{}, false
		}
		return decode(s)
	}
	return f
}()
